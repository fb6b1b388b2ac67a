//! Preflight checks of the machine.

use std::collections::BTreeSet;

use super::config::{Cluster, Join, Node};
use super::{Abort, Kubeadm, MANIFESTS};

/// Requirements of a control plane.
const CORES: u32 = 2;
const MEMORY_MIB: u64 = 1700;

/// Results of checks: name, message, and whether it is an error.
#[derive(Default)]
pub(super) struct Checks {
    found: Vec<(String, String, bool)>,
}

impl Checks {
    fn error(&mut self, name: &str, what: String) {
        self.found.push((name.to_owned(), what, true));
    }

    fn warning(&mut self, name: &str, what: String) {
        self.found.push((name.to_owned(), what, false));
    }
}

fn in_name(path: &str) -> String {
    path.replace(['/', '.'], "-")
}

impl Kubeadm<'_, '_> {
    pub(super) fn check_init(&self, cluster: &Cluster, node: &Node) -> Checks {
        let mut checks = Checks::default();
        self.check_control_plane(&mut checks);
        if let Some(version) = cluster.version() {
            if version.major() > self.version.major() || version.minor() > self.version.minor() {
                checks.warning(
                    "KubernetesVersion",
                    format!(
                        "Kubernetes version is greater than kubeadm version. Please consider to upgrade kubeadm. Kubernetes \
                         version: {version}. Kubeadm version: {}.{}.x",
                        self.version.major(),
                        self.version.minor()
                    ),
                );
            }
            if self.version.major() > version.major() || self.version.minor() > version.minor() {
                checks.error(
                    "KubeletVersion",
                    format!(
                        "the kubelet version is higher than the control plane version. This is not a supported version skew \
                         and may lead to a malfunctional cluster. Kubelet version: \"{}\" Control plane version: \"{version}\"",
                        self.version
                    ),
                );
            }
        }
        self.check_node(&mut checks, node);
        if cluster.has_local_etcd() {
            let directory = cluster.text("/etcd/local/dataDir");
            let held = self.guest.files.list(directory).unwrap_or_default();
            if held.iter().any(|name| name != "lost+found") {
                checks.error(
                    &format!("DirAvailable-{}", in_name(directory)),
                    format!("{directory} is not empty"),
                );
            }
        }
        for field in ["caFile", "certFile", "keyFile"] {
            let path = cluster.text(&format!("/etcd/external/{field}"));
            if !path.is_empty() && !self.guest.files.exists(path) {
                checks.error("ExternalEtcdClientCertificates", format!("{path} doesn't exist"));
            }
        }
        checks
    }

    pub(super) fn check_join(&self, join: &Join) -> Checks {
        let mut checks = Checks::default();
        for name in ["kubelet.conf", "bootstrap-kubelet.conf"] {
            self.check_absent(&mut checks, &format!("/etc/kubernetes/{name}"));
        }
        self.check_node(&mut checks, &join.node_registration);
        if join.control_plane.is_none() {
            self.check_absent(&mut checks, &join.ca_cert_path);
        } else {
            self.check_control_plane(&mut checks);
        }
        checks
    }

    fn check_control_plane(&self, checks: &mut Checks) {
        let vm = self.guest.vm;
        if vm.cpus < CORES {
            checks.error(
                "NumCPU",
                format!("the number of available CPUs {} is less than the required {CORES}", vm.cpus),
            );
        }
        if vm.memory_mib < MEMORY_MIB {
            checks.error(
                "Mem",
                format!("the system RAM ({} MB) is less than the minimum {MEMORY_MIB} MB", vm.memory_mib),
            );
        }
        for component in ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"] {
            self.check_absent(checks, &format!("{MANIFESTS}/{component}.yaml"));
        }
    }

    fn check_absent(&self, checks: &mut Checks, path: &str) {
        if self.guest.files.exists(path) {
            checks.error(&format!("FileAvailable-{}", in_name(path)), format!("{path} already exists"));
        }
    }

    fn check_node(&self, checks: &mut Checks, node: &Node) {
        let socket = node.cri_socket.trim_start_matches("unix:").trim_start_matches("//");
        let containerd = self.guest.services.contains("containerd.service");
        if !self.guest.files.exists(socket) || !containerd {
            checks.error(
                "CRI",
                format!(
                    "could not connect to the container runtime: failed to create new CRI runtime service: validate service \
                     connection: connection error: desc = \"transport: Error while dialing: dial unix {socket}: connect: no \
                     such file or directory\""
                ),
            );
        }
        let forwarding = "/proc/sys/net/ipv4/ip_forward";
        if self.guest.files.text(forwarding).is_ok_and(|held| held.trim() != "1") {
            checks.error(
                &format!("FileContent-{}", in_name(forwarding)),
                format!("{forwarding} contents are not set to 1"),
            );
        }
        if node.name != self.guest.hostname.to_lowercase() {
            checks.warning("Hostname", format!("hostname \"{}\" could not be reached", node.name));
        }
    }

    /// Prints the results; errors that are not ignored end kubeadm.
    pub(super) fn conclude(&mut self, checks: Checks, ignored: &BTreeSet<String>) -> Result<(), Abort> {
        let mut fatal = Vec::new();
        for (name, what, is_error) in checks.found {
            if is_error && !ignored.contains("all") && !ignored.contains(&name.to_lowercase()) {
                fatal.push(format!("\t[ERROR {name}]: {what}"));
            } else {
                self.guest.print(&self.err, &format!("\t[WARNING {name}]: {what}"));
            }
        }
        if fatal.is_empty() {
            return Ok(());
        }
        self.guest.print(&self.err, "[preflight] Some fatal errors occurred:");
        for line in &fatal {
            self.guest.print(&self.err, line);
        }
        self.guest.print(
            &self.err,
            "[preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`",
        );
        // kubeadm's last line does not name the errors: the first one is reported instead.
        let first = fatal[0].trim().to_owned();
        self.guest.kubeadm_failure.get_or_insert(format!("error execution phase preflight: {first}"));
        Err(Abort::phase("preflight", "preflight checks failed"))
    }
}

/// Checks that are only warnings, in lower case.
pub(super) fn ignored(flag: &[String], configured: &[String]) -> Result<BTreeSet<String>, Abort> {
    let ignored: BTreeSet<String> = flag.iter().chain(configured).map(|name| name.to_lowercase()).collect();
    if ignored.contains("all") && ignored.len() > 1 {
        let all: Vec<&str> = ignored.iter().map(String::as_str).collect();
        return Err(Abort(format!(
            "ignore-preflight-errors: Invalid value: {:?}: don't specify individual checks if 'all' is used",
            all.join(",")
        )));
    }
    Ok(ignored)
}
