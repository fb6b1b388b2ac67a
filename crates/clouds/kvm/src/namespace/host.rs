//! Requirements of the host, checked before anything is changed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Settings;
use super::cgroups::Hierarchies;
use super::run::at;
use crate::backend::BackendError;

const PROGRAMS: [&str; 7] = ["ip", "nsenter", "unshare", "setsid", "mount", "pivot_root", "hostname"];
const FILE_SYSTEMS: [&str; 5] = ["overlay", "proc", "sysfs", "tmpfs", "devpts"];
/// Required capabilities, which root in a container may lack.
const CAPABILITIES: [(u32, &str); 4] =
    [(12, "CAP_NET_ADMIN"), (18, "CAP_SYS_CHROOT"), (21, "CAP_SYS_ADMIN"), (27, "CAP_MKNOD")];
/// Files that exist if the kernel has a feature.
const FEATURES: [(&str, &str); 5] = [
    ("/proc/self/ns/cgroup", "namespaces of cgroups"),
    ("/proc/self/ns/mnt", "mount namespaces"),
    ("/proc/self/ns/net", "network namespaces"),
    ("/proc/self/ns/pid", "process namespaces"),
    ("/proc/sys/net/bridge/bridge-nf-call-iptables", "br_netfilter (modprobe br_netfilter)"),
];

/// Requirements of a host.
#[derive(Debug, Clone)]
struct HostFacts {
    is_root: bool,
    /// Bit mask, as in /proc.
    capabilities: u64,
    /// Programs that are not on PATH.
    missing: Vec<&'static str>,
    /// File systems that the kernel supports.
    file_systems: Vec<String>,
    /// Features that the kernel lacks.
    lacking: Vec<&'static str>,
    /// Machines and images are on different file systems.
    apart: bool,
}

impl HostFacts {
    fn of_host(settings: &Settings) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let path = std::env::var("PATH").unwrap_or_default();
        let known = read("/proc/filesystems");
        let names = known.lines().filter_map(|line| line.split_whitespace().last());
        let devices = (device(&settings.state), device(&settings.images));
        Self {
            is_root: rustix::process::geteuid().is_root(),
            capabilities: capabilities
                .and_then(|it| u64::from_str_radix(it.trim(), 16).ok())
                .unwrap_or_default(),
            missing: PROGRAMS.into_iter().filter(|program| !is_on(&path, program)).collect(),
            file_systems: names.map(str::to_owned).collect(),
            lacking: FEATURES.iter().filter(|(file, _)| !Path::new(file).exists()).map(|it| it.1).collect(),
            apart: matches!(devices, (Some(one), Some(other)) if one != other),
        }
    }

    fn needs(&self) -> Vec<String> {
        let mut needs = Vec::new();
        if !self.is_root {
            needs.push("it takes root to make namespaces, mounts and interfaces: run as root".to_owned());
        }
        let has = |number: u32| self.capabilities & (1 << number) != 0;
        let denied: Vec<&str> =
            CAPABILITIES.iter().filter(|(number, _)| !has(*number)).map(|it| it.1).collect();
        if self.is_root && !denied.is_empty() {
            needs.push(format!(
                "root has no {} here: leave the container, or run a privileged one",
                denied.join(", ")
            ));
        }
        if !self.missing.is_empty() {
            let are = if self.missing.len() == 1 { "is" } else { "are" };
            let missing = self.missing.join(", ");
            needs.push(format!("{missing} {are} not on PATH: install util-linux, iproute2 and hostname"));
        }
        for system in FILE_SYSTEMS.iter().filter(|system| !self.file_systems.iter().any(|it| it == *system)) {
            needs.push(format!("the kernel has no {system}: load the module (modprobe {system})"));
        }
        needs.extend(self.lacking.iter().map(|feature| format!("the kernel has no {feature}")));
        if self.apart {
            needs.push(
                "machines and node images are on two file systems, and layers are linked between them: put \
                 --kvm-state and --kvm-images on one"
                    .to_owned(),
            );
        }
        needs
    }
}

/// Unmet requirements of the host, each with a remedy.
pub(super) fn needs(settings: &Settings, hierarchies: &Hierarchies) -> Vec<String> {
    let mut needs = HostFacts::of_host(settings).needs();
    needs.extend(hierarchies.needs());
    needs
}

/// The `/proc/cpuinfo` for machines, if it must differ from the host's.
pub(super) fn cpuinfo_for_kubelet() -> Result<Option<String>, BackendError> {
    let path = Path::new("/proc/cpuinfo");
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    Ok(cfg!(target_arch = "x86_64").then(|| with_clock_speed(&text)).flatten())
}

/// A kubelet on x86_64 exits if the CPU frequency is missing, as on User Mode Linux. BogoMIPS replaces it.
fn with_clock_speed(cpuinfo: &str) -> Option<String> {
    let has = |name: &str| cpuinfo.lines().any(|line| line.starts_with(name));
    let line = |line: &str| match line.strip_prefix("bogomips") {
        Some(value) => format!("cpu MHz{value}\n{line}\n"),
        None => format!("{line}\n"),
    };
    (!has("cpu MHz")).then(|| cpuinfo.lines().map(line).collect())
}

fn is_on(path: &str, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| folder.join(program).is_file())
}

/// The device of the file system of a directory, which may not exist yet.
fn device(folder: &Path) -> Option<u64> {
    folder.ancestors().find_map(|folder| Some(std::fs::metadata(folder).ok()?.dev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmet_requirements_are_reported_with_a_remedy() {
        let good = HostFacts {
            is_root: true,
            capabilities: u64::MAX,
            missing: Vec::new(),
            file_systems: FILE_SYSTEMS.map(str::to_owned).to_vec(),
            lacking: Vec::new(),
            apart: false,
        };
        assert_eq!(good.needs(), Vec::<String>::new());
        for (facts, words) in [
            (HostFacts { is_root: false, capabilities: 0, ..good.clone() }, "run as root"),
            (HostFacts { capabilities: !(1 << 21), ..good.clone() }, "root has no CAP_SYS_ADMIN here"),
            (HostFacts { missing: vec!["ip"], ..good.clone() }, "ip is not on PATH: install"),
            (
                HostFacts { missing: vec!["ip", "mount"], ..good.clone() },
                "ip, mount are not on PATH: install",
            ),
            (HostFacts { file_systems: good.file_systems[1..].to_vec(), ..good.clone() }, "modprobe overlay"),
            (HostFacts { lacking: vec![FEATURES[4].1], ..good.clone() }, "modprobe br_netfilter"),
            (HostFacts { apart: true, ..good.clone() }, "put --kvm-state and --kvm-images on one"),
        ] {
            let needs = facts.needs();
            assert!(needs.len() == 1 && needs[0].contains(words), "{needs:?} instead of {words}");
        }
    }

    #[test]
    fn machines_always_have_a_cpu_frequency() {
        let reported = "processor\t: 0\ncpu MHz\t\t: 2400.000\nbogomips\t: 4800.00\n";
        assert_eq!(with_clock_speed(reported), None);
        let user_mode = "processor\t: 0\nmodel name\t: UML\nbogomips\t: 4800.00\n\n";
        let expected = "processor\t: 0\nmodel name\t: UML\ncpu MHz\t: 4800.00\nbogomips\t: 4800.00\n\n";
        assert_eq!(with_clock_speed(user_mode).as_deref(), Some(expected));
    }
}
