//! kubeadm on one machine: reads its configuration, checks the machine, generates what is missing, and sends a
//! request to the cluster.
//!
//! ```text
//!   flags ─▶ config/ (documents, shapes, defaults, validation) ─▶ preflight ─▶ certs, kubeconfig, manifests ─▶ init │ join
//! ```
//!
//! It prints kubeadm's output, in the order of its phases.

mod certs;
mod config;
mod files;
mod flags;
mod init;
mod join;
mod keys;
mod kubeconfig;
mod manifests;
mod node;
mod patches;
mod preflight;
mod version;

use super::Guest;
use super::files::FileError;
use super::shell::{Io, Sink};
use crate::request::KubeadmError;
use flags::Flags;
use patches::PatchSet;
use version::Version;

/// Directory of kubeadm's files.
const DIRECTORY: &str = "/etc/kubernetes";
const MANIFESTS: &str = "/etc/kubernetes/manifests";

/// Why kubeadm failed: printed after `error: `.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Abort(String);

impl Abort {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// A phase that failed.
    fn phase(phase: &str, why: impl std::fmt::Display) -> Self {
        Self(format!("error execution phase {phase}: {why}"))
    }
}

impl From<KubeadmError> for Abort {
    fn from(error: KubeadmError) -> Self {
        Self::phase(error.phase, error.why)
    }
}

/// Runs a kubeadm command and returns its exit status.
pub(super) async fn run(guest: &mut Guest<'_>, arguments: &[String], io: &Io) -> i32 {
    let Some(version) = guest.kubernetes().and_then(|text| Version::parse(&text)) else {
        guest.print(&io.err, "kubeadm: the Kubernetes version of the image is invalid");
        return 1;
    };
    let (words, flags) = match Flags::parse(arguments) {
        Ok(parsed) => parsed,
        Err(why) => return ended(guest, io, Abort(why)),
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut kubeadm =
        Kubeadm { guest, out: io.out.clone(), err: io.err.clone(), version, patches: Vec::new() };
    let done = match words.as_slice() {
        ["init"] => kubeadm.init(&flags).await,
        ["join", endpoints @ ..] => kubeadm.join(&flags, endpoints).await,
        ["version"] => {
            let version = format!("v{}", kubeadm.version);
            let short = flags.get("output").is_some_and(|output| output == "short");
            kubeadm.print(&if short { version } else { format!("kubeadm version: {version}") });
            return 0;
        }
        ["config", "images", "list" | "pull"] => {
            let images = manifests::images(&serde_json::Value::Null, &format!("v{}", kubeadm.version));
            for image in images {
                kubeadm.print(&image);
            }
            return 0;
        }
        ["reset", ..] => {
            kubeadm.reset();
            return 0;
        }
        _ => {
            let command = words.first().copied().unwrap_or_default();
            Err(Abort(format!("unknown command \"{command}\" for \"kubeadm\"")))
        }
    };
    match done {
        Ok(()) => 0,
        Err(abort) => ended(guest, io, abort),
    }
}

/// Prints why kubeadm failed.
fn ended(guest: &mut Guest<'_>, io: &Io, Abort(why): Abort) -> i32 {
    let first = format!("error: {}", why.lines().next().unwrap_or_default());
    guest.print(&io.err, &format!("error: {why}"));
    guest.print(&io.err, "To see the stack trace of this error execute with --v=5 or higher");
    let shown = guest.screen.masked(&first);
    guest.kubeadm_failure.get_or_insert(shown);
    1
}

struct Kubeadm<'k, 'a> {
    guest: &'k mut Guest<'a>,
    out: Sink,
    err: Sink,
    version: Version,
    patches: Vec<PatchSet>,
}

impl Kubeadm<'_, '_> {
    fn print(&mut self, line: &str) {
        self.guest.print(&self.out, line);
    }

    /// Prints a warning in klog's format.
    fn warn(&mut self, line: &str) {
        let stamp = self.guest.env.now().strftime("W%m%d %H:%M:%S%.6f").to_string();
        self.guest.print(&self.err, &format!("{stamp}    1000 kubeadm] {line}"));
    }

    /// Writes a file of kubeadm's.
    fn put(&mut self, path: &str, content: &[u8], mode: u32) -> Result<(), FileError> {
        if mode & 0o077 == 0 {
            let text = String::from_utf8_lossy(content).into_owned();
            if text.contains("PRIVATE KEY") {
                self.guest.screen.hide(&text);
            }
        }
        self.guest.files.write_deep(path, content, mode)
    }

    fn reset(&mut self) {
        self.print("[reset] Deleting contents of directories: [/etc/kubernetes/manifests /var/lib/kubelet /etc/kubernetes/pki]");
        for directory in [MANIFESTS, "/var/lib/kubelet", "/etc/kubernetes/pki", "/var/lib/etcd"] {
            for name in self.guest.files.list(directory).unwrap_or_default() {
                // It was listed a moment ago.
                let _ = self.guest.files.remove(&format!("{directory}/{name}"), true);
            }
        }
        for file in [
            "admin.conf",
            "super-admin.conf",
            "kubelet.conf",
            "bootstrap-kubelet.conf",
            "controller-manager.conf",
            "scheduler.conf",
        ] {
            // Missing ones need not be removed.
            let _ = self.guest.files.remove(&format!("{DIRECTORY}/{file}"), false);
        }
    }
}
