//! The server under the system call filter of the unit file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use super::privileges::UNIT;
use super::{Attempt, Target};
use crate::bed::Server;
use crate::bed::ports::free_port;

/// Sets the filter and runs a program.
const FILTER: &str = include_str!("filter.c");
/// What systemd allows in addition to every list of allowed calls.
const IMPLICIT: &str = "@default";

pub const ALL: &[Attempt] = &[Attempt {
    name: "system calls",
    expected: "it serves, stores and restarts with the system calls that the unit file allows, and no others",
    run: |target| Box::pin(filtered(target)),
}];

async fn filtered(target: &Target) -> Result<()> {
    let folder = target.folder.join("filtered");
    std::fs::create_dir_all(&folder)?;
    let unit = std::fs::read_to_string(crate::cargo::root().join(UNIT)).context(UNIT)?;
    let listed = output("systemd-analyze", &["syscall-filter", "--no-pager"], "systemd").await?;
    let allowed = allowed(&unit, &groups(&listed))?;
    let filter = build(&folder, &allowed).await?;

    // The filter works: it forbids mounts.
    let runs = async |arguments: &[&str]| {
        Command::new(arguments[0]).args(&arguments[1..]).output().await.map(|output| output.status.success())
    };
    let (filter, mount) = (filter.display().to_string(), ["/usr/bin/unshare", "--mount", "true"]);
    ensure!(runs(&[&filter, "/bin/sh", "-c", "exec ls /"]).await?, "no program runs under the filter");
    ensure!(runs(&mount).await?, "mounts need root");
    ensure!(!runs(&[&[&*filter][..], &mount].concat()).await?, "the filter forbids nothing");

    let script = folder.join("as-the-unit");
    let text = format!("#!/bin/sh\nexec {filter} {} \"$@\"\n", target.binary.display());
    std::fs::write(&script, text)?;
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let port = free_port()?;
    for name in ["one", "two"] {
        let mut server = Server::capstan(&folder, &script, port).await?;
        let api = server.api()?;
        let secret = json!({"metadata": {"name": name}, "stringData": {"a": "b"}});
        api.post("/api/v1/namespaces/default/secrets", &secret).await?.success()?;
        api.get("/api/v1/namespaces/default/secrets/one").await?.success()?;
        server.stop()?;
    }
    Ok(())
}

async fn output(program: &str, arguments: &[&str], package: &str) -> Result<String> {
    let ran = Command::new(program).args(arguments).output().await;
    let output = ran.with_context(|| format!("{program} is missing: install the package {package}"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compiles the filter, as the numbers of system calls are in the headers of C.
async fn build(folder: &Path, allowed: &BTreeSet<String>) -> Result<std::path::PathBuf> {
    let mut list = String::new();
    for name in allowed {
        // Not every architecture has every call.
        writeln!(list, "#ifdef SYS_{name}\nSYS_{name},\n#endif")?;
    }
    std::fs::write(folder.join("allowed.h"), list)?;
    let (source, program) = (folder.join("filter.c"), folder.join("filter"));
    std::fs::write(&source, FILTER)?;
    let paths = [&program, &source].map(|path| path.display().to_string());
    output("cc", &["-O1", "-Wall", "-Werror", "-o", &paths[0], &paths[1]], "gcc").await?;
    Ok(program)
}

/// The groups in the output of `systemd-analyze syscall-filter`.
fn groups(listed: &str) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut group = None;
    for line in listed.lines() {
        let name = line.trim();
        if line.starts_with('@') {
            group = Some(groups.entry(name.to_owned()).or_default());
        } else if !line.starts_with(' ') {
            // What follows is in no group.
            group = None;
        } else if let Some(group) = &mut group
            && !name.starts_with('#')
        {
            group.push(name.to_owned());
        }
    }
    groups
}

/// The calls that the lines `SystemCallFilter=` of a unit allow, in their order.
fn allowed(unit: &str, groups: &BTreeMap<String, Vec<String>>) -> Result<BTreeSet<String>> {
    let mut allowed = BTreeSet::new();
    expand(IMPLICIT, groups, &mut allowed)?;
    for line in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let (removes, names) = line.strip_prefix('~').map_or((false, line), |names| (true, names));
        let mut meant = BTreeSet::new();
        names.split_whitespace().try_for_each(|name| expand(name, groups, &mut meant))?;
        if removes {
            allowed.retain(|name| !meant.contains(name));
        } else {
            allowed.extend(meant);
        }
    }
    Ok(allowed)
}

fn expand(name: &str, groups: &BTreeMap<String, Vec<String>>, found: &mut BTreeSet<String>) -> Result<()> {
    if !name.starts_with('@') {
        found.insert(name.to_owned());
        return Ok(());
    }
    let members = groups.get(name).with_context(|| format!("systemd knows no group {name}"))?;
    members.iter().try_for_each(|member| expand(member, groups, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_unit_allow_and_remove_calls_in_their_order() {
        let listed = "@default\n    # Always permitted\n    exit\n\n@service\n    @io\n    kill\n    setuid\n\
                      @io\n    read\n    write\n\n@privileged\n    setuid\n    write\n\
                      # Ungrouped System Calls (known but not included in any of the groups except @known):\n    #   odd\n";
        let unit = "SystemCallFilter=@service\nSystemCallFilter=~@privileged\nSystemCallFilter=write prctl\nUser=x\n";
        let found = allowed(unit, &groups(listed)).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["exit", "kill", "prctl", "read", "write"]);
        assert!(allowed("SystemCallFilter=@other\n", &groups(listed)).is_err());
    }
}
