//! One machine: it boots by executing its user data.
//!
//! ```text
//!   user data    gzip, Jinja, cloud-config │ script │ Ignition
//!   cloud_init   modules in their order ──┐
//!   ignition     files, units ── systemd ─┼─▶ files, shell/ ─▶ kubeadm/ ─▶ request.rs ─▶ the cluster
//!   screen       their output, without secrets
//! ```
//!
//! Everything that can fail on the machine itself fails here, with the message of the program that would fail. Files
//! exist only during the boot: nothing reads them later.

mod cloud_init;
mod files;
mod ignition;
pub(crate) mod kubeadm;
mod metadata;
mod screen;
mod shell;
mod systemd;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use capstan_env::Env;
use capstan_user_data::UserData;
use tokio::time::Instant;

use crate::console::Console;
use crate::request::Control;
use crate::vm::{GuestFault, VmSpec};
use files::Files;
use screen::Screen;

/// A machine to boot.
pub(crate) struct Boot<'a> {
    pub(crate) vm: &'a VmSpec,
    pub(crate) address: Ipv4Addr,
    pub(crate) console: &'a Console,
    pub(crate) env: &'a Env,
    /// The network and cluster as kubeadm sees them.
    pub(crate) control: &'a dyn Control,
    /// Time of power-on.
    pub(crate) powered: Instant,
}

/// Executes the user data of a machine. Returns the name of its Node if it became one, or the console line with the
/// failure.
pub(crate) async fn boot(boot: Boot<'_>) -> Result<Option<String>, String> {
    execute(boot).await.outcome()
}

/// The machine after executing its user data.
async fn execute(boot: Boot<'_>) -> Guest<'_> {
    let metadata = metadata::of(boot.vm, boot.address);
    let mut guest = Guest::new(boot);
    let read = capstan_user_data::read(&guest.vm.user_data, &metadata);
    match read {
        Ok(parsed) => match parsed.data {
            UserData::Ignition(config) => ignition::run(&mut guest, &config).await,
            data => cloud_init::run(&mut guest, data, &parsed.warnings).await,
        },
        Err(bad) if guest.vm.user_data.trim_ascii_start().starts_with(b"{") => {
            ignition::failed(&mut guest, &bad.0);
        }
        Err(bad) => cloud_init::without_user_data(&mut guest, &bad.0),
    }
    guest
}

/// A booting machine.
struct Guest<'a> {
    vm: &'a VmSpec,
    address: Ipv4Addr,
    env: &'a Env,
    control: &'a dyn Control,
    files: Files,
    screen: Screen,
    hostname: String,
    users: BTreeSet<String>,
    /// Running units.
    services: BTreeSet<String>,
    /// Number of executed commands.
    steps: usize,
    /// Name of its Node.
    node: Option<String>,
    /// The first failure, and whether it was kubeadm's.
    failure: Option<String>,
    kubeadm_failure: Option<String>,
}

impl<'a> Guest<'a> {
    fn new(boot: Boot<'a>) -> Self {
        let Boot { vm, address, console, env, control, powered } = boot;
        let mut guest = Self {
            vm,
            address,
            env,
            control,
            files: Files::new(),
            screen: Screen::new(console.clone(), powered),
            hostname: vm.name.clone(),
            users: ["root", "daemon", "nobody", "syslog", "ubuntu", "core"].map(str::to_owned).into(),
            services: ["containerd.service", "ssh.service"].map(str::to_owned).into(),
            steps: 0,
            node: None,
            failure: None,
            kubeadm_failure: None,
        };
        guest.install();
        if vm.faults.contains(&GuestFault::DiskFull) {
            guest.files.fill_up();
        }
        guest
    }

    /// Writes the files of the image.
    fn install(&mut self) {
        let directories = [
            "/bin",
            "/dev",
            "/etc/containerd",
            "/etc/default",
            "/etc/modules-load.d",
            "/etc/ssh",
            "/etc/ssl/certs",
            "/etc/sudoers.d",
            "/etc/sysctl.d",
            "/etc/systemd/system",
            "/etc/yum.repos.d",
            "/etc/apt/apt.conf.d",
            "/home",
            "/mnt",
            "/opt",
            "/proc/sys/net/ipv4",
            "/proc/sys/net/bridge",
            "/root",
            "/run",
            "/srv",
            "/sys",
            "/tmp",
            "/usr/bin",
            "/usr/local/bin",
            "/usr/local/share/ca-certificates",
            "/usr/sbin",
            "/var/lib/cloud/instance/scripts",
            "/var/log",
            "/var/tmp",
        ];
        let mut texts = vec![
            ("/etc/hostname", format!("{}\n", self.hostname)),
            ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n".to_owned()),
            ("/etc/fstab", "LABEL=root / ext4 defaults 0 1\n".to_owned()),
            ("/etc/os-release", "NAME=\"Ubuntu\"\nID=ubuntu\nVERSION_ID=\"24.04\"\n".to_owned()),
            ("/etc/resolv.conf", "nameserver 127.0.0.53\n".to_owned()),
            ("/proc/sys/net/ipv4/ip_forward", "1\n".to_owned()),
            ("/proc/sys/net/bridge/bridge-nf-call-iptables", "1\n".to_owned()),
            ("/proc/swaps", "Filename Type Size Used Priority\n".to_owned()),
        ];
        let mut made = directories.to_vec();
        if self.vm.image.kubernetes.is_some() {
            made.extend([
                "/etc/kubernetes/manifests",
                "/etc/cni/net.d",
                "/opt/cni/bin",
                "/var/lib/kubelet",
                "/run/containerd",
            ]);
            texts.push(("/run/containerd/containerd.sock", String::new()));
        }
        // The disk is empty and much larger than the image.
        for path in made {
            let _ = self.files.make_directories(path);
        }
        for (path, text) in texts {
            let _ = self.files.write(path, text.as_bytes());
        }
        let _ = self.files.link("/run", "/var/run");
    }

    /// Kubernetes version of the image, with `v`.
    fn kubernetes(&self) -> Option<String> {
        let version = self.vm.image.kubernetes.as_deref()?;
        Some(format!("v{}", version.strip_prefix('v').unwrap_or(version)))
    }

    fn has_network(&self) -> bool {
        !self.vm.faults.contains(&GuestFault::NoNetwork)
    }

    /// Prints a failure. The first one is the result of the boot.
    fn fail(&mut self, line: &str) {
        self.screen.line(line);
        let shown = self.screen.masked(line);
        self.failure.get_or_insert(shown);
    }

    /// Result of the boot. A machine that is a Node has booted, even if something else failed.
    fn outcome(self) -> Result<Option<String>, String> {
        match (self.node, self.kubeadm_failure.or(self.failure)) {
            (Some(node), _) => Ok(Some(node)),
            (None, Some(why)) => Err(why),
            (None, None) => Ok(None),
        }
    }
}
