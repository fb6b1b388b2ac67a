//! What this host must have before anything on it is changed.

use std::path::Path;

use super::cgroups::Hierarchies;

/// Programs that are run.
const PROGRAMS: [&str; 7] = ["ip", "nsenter", "unshare", "setsid", "mount", "pivot_root", "hostname"];
/// File systems that are mounted.
const FILE_SYSTEMS: [&str; 5] = ["overlay", "proc", "sysfs", "tmpfs", "devpts"];

/// What this host lacks, each with what helps.
pub(super) fn needs(hierarchies: &Hierarchies) -> Vec<String> {
    let mut needs = Vec::new();
    if !rustix::process::geteuid().is_root() {
        needs.push("it takes root to make namespaces, mounts and interfaces: run as root".to_owned());
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_on(&path, program)).collect();
    if !missing.is_empty() {
        needs.push(format!(
            "{} not on PATH: install util-linux, iproute2 and hostname",
            match missing.as_slice() {
                [one] => format!("{one} is"),
                many => format!("{} are", many.join(", ")),
            }
        ));
    }
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let known: Vec<&str> = known.lines().filter_map(|line| line.split_whitespace().last()).collect();
    for system in FILE_SYSTEMS.iter().filter(|system| !known.contains(*system)) {
        needs.push(format!("the kernel has no {system}: load the module (modprobe {system})"));
    }
    for (file, feature) in [
        ("/proc/self/ns/cgroup", "namespaces of control groups"),
        ("/proc/self/ns/net", "network namespaces"),
        ("/proc/self/ns/pid", "process namespaces"),
        ("/proc/sys/net/bridge/bridge-nf-call-iptables", "br_netfilter (modprobe br_netfilter)"),
    ] {
        if !Path::new(file).exists() {
            needs.push(format!("the kernel has no {feature}"));
        }
    }
    needs.extend(hierarchies.needs());
    needs
}

fn is_on(path: &str, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}
