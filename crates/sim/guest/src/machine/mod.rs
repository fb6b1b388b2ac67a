//! One machine: it boots by executing its user data.
//!
//! ```text
//!   user data    gzip, Jinja, cloud-config │ script │ Ignition
//!   cloud_init   modules in their order ──┐
//!   ignition     files, units ── systemd ─┼─▶ files, shell/ ─▶ kubeadm/ ─▶ request.rs ─▶ the cluster
//!   screen       what all of them print, without secrets
//! ```
//!
//! Everything that can be wrong on the machine itself is found here, and said on its console as the program that
//! would find it says it. Files live as long as the boot: nothing reads them later.

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

use capstan_apiserver::env::Env;
use capstan_user_data::UserData;
use tokio::time::Instant;

use crate::console::Console;
use crate::request::Control;
use crate::vm::{GuestFault, VmSpec};
use files::Files;
use screen::Screen;

/// A machine that boots.
pub(crate) struct Boot<'a> {
    /// What it is.
    pub(crate) vm: &'a VmSpec,
    /// Its address.
    pub(crate) address: Ipv4Addr,
    /// Where it prints.
    pub(crate) console: &'a Console,
    /// Time and randomness.
    pub(crate) env: &'a Env,
    /// What its kubeadm reaches.
    pub(crate) control: &'a dyn Control,
    /// When it was switched on.
    pub(crate) powered: Instant,
}

/// Executes the user data of a machine. Answers the name of its Node if it became one, or the line of the console
/// that says what went wrong.
pub(crate) async fn boot(boot: Boot<'_>) -> Result<Option<String>, String> {
    execute(boot).await.outcome()
}

/// The machine after its user data was executed.
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

/// A machine while it boots.
struct Guest<'a> {
    vm: &'a VmSpec,
    address: Ipv4Addr,
    env: &'a Env,
    control: &'a dyn Control,
    files: Files,
    screen: Screen,
    hostname: String,
    users: BTreeSet<String>,
    /// Units that run.
    services: BTreeSet<String>,
    /// Commands that its scripts have run.
    steps: usize,
    /// The Node that it has become.
    node: Option<String>,
    /// What failed first, and whether that was kubeadm.
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

    /// Puts on the disk what the image has.
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
        // The disk is empty and far larger than what is put on it.
        for path in made {
            let _ = self.files.make_directories(path);
        }
        for (path, text) in texts {
            let _ = self.files.write(path, text.as_bytes());
        }
        let _ = self.files.link("/run", "/var/run");
    }

    /// Version of Kubernetes on the image, with `v`.
    fn kubernetes(&self) -> Option<String> {
        let version = self.vm.image.kubernetes.as_deref()?;
        Some(format!("v{}", version.strip_prefix('v').unwrap_or(version)))
    }

    fn has_network(&self) -> bool {
        !self.vm.faults.contains(&GuestFault::NoNetwork)
    }

    /// Prints a line that says what went wrong. The first one is what is told of the boot.
    fn fail(&mut self, line: &str) {
        self.screen.line(line);
        let shown = self.screen.masked(line);
        self.failure.get_or_insert(shown);
    }

    /// How the boot ended. A machine that is a Node has booted, whatever failed around it.
    fn outcome(self) -> Result<Option<String>, String> {
        match (self.node, self.kubeadm_failure.or(self.failure)) {
            (Some(node), _) => Ok(Some(node)),
            (None, Some(why)) => Err(why),
            (None, None) => Ok(None),
        }
    }
}
