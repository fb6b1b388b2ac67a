//! What machines leave on a host: processes, namespaces, interfaces, mounts, cgroups, files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// Part of the names of our cgroups.
const GROUP: &str = "capstan-kvm";

/// Everything of ours on the host, one line each.
pub fn look(state: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut note = |kind: &str, what: &str| {
        found.insert(format!("{kind} {what}"));
    };
    for process in std::fs::read_dir("/proc")?.flatten() {
        let groups = std::fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
        let words = std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default();
        let ours = state.to_string_lossy();
        let balancer = words.contains("kvm-balancer") && words.contains(&*ours);
        if groups.contains(GROUP) || balancer {
            note("process", &process.file_name().to_string_lossy());
        }
    }
    for name in output("ip", &["netns", "list"])?.lines().filter(|line| line.starts_with("cap")) {
        note("network namespace", name.split_whitespace().next().unwrap_or(name));
    }
    for line in output("ip", &["-o", "link", "show"])?.lines() {
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        if name.starts_with("cap-") {
            note("interface", name.trim_end_matches(':'));
        }
    }
    for line in std::fs::read_to_string("/proc/self/mountinfo")?.lines() {
        if line.contains(&*state.to_string_lossy()) || line.contains("/run/netns/cap") {
            note("mount", line);
        }
    }
    for folder in ["machines", "networks"] {
        for entry in std::fs::read_dir(state.join(folder)).into_iter().flatten().flatten() {
            note("folder", &entry.path().to_string_lossy());
        }
    }
    groups(Path::new("/sys/fs/cgroup"), 0, &mut |path| note("cgroup", path));
    Ok(found)
}

/// Our cgroups, at any depth.
fn groups(folder: &Path, depth: usize, note: &mut impl FnMut(&str)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().contains(GROUP) {
            note(&entry.path().to_string_lossy());
        } else if depth < 6 {
            groups(&entry.path(), depth + 1, note);
        }
    }
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    ensure!(output.status.success(), "{program} {} failed", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails if something is there that was not there before.
pub fn gone(before: &BTreeSet<String>, state: &Path) -> Result<()> {
    let now = look(state)?;
    let left: Vec<&str> = now.difference(before).map(String::as_str).collect();
    ensure!(left.is_empty(), "{} leftovers:\n{}", left.len(), left.join("\n"));
    Ok(())
}
