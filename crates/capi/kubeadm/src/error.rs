//! What can go wrong. No variant carries a key, a token or the content of a Secret: an error is shown in
//! conditions and logs.

use capstan_capi_core::secret::SecretError;

/// Why boot data, certificates or a control plane could not be worked out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operating system gave no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
    /// A private key cannot be made, read or used.
    #[error("private key {0}")]
    Key(&'static str),
    /// A certificate cannot be made or read.
    #[error("certificate {0}")]
    Certificate(&'static str),
    /// A Secret with a certificate is missing and may not be made here.
    #[error("secret {0} is missing: provide it, or let the control plane provider make it")]
    CertificateMissing(String),
    /// A Secret lacks a key, or holds something else than text in it.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A Secret that a field names does not exist.
    #[error("secret {0} does not exist")]
    SecretMissing(String),
    /// A kubeconfig cannot be read.
    #[error("kubeconfig {0}")]
    Kubeconfig(&'static str),
    /// A Kubernetes version cannot be read.
    #[error("{0:?} is no Kubernetes version such as v1.34.1")]
    Version(String),
    /// A Kubernetes version that no supported kubeadm configuration exists for.
    #[error("Kubernetes {0} is older than v1.22.0, the oldest that kubeadm v1beta3 configurations work for")]
    VersionTooOld(String),
    /// A worker is configured as a control plane node.
    #[error("the machine is a worker, but its joinConfiguration has a controlPlane section")]
    WorkerWithControlPlane,
    /// Something cannot be written as YAML or JSON.
    #[error("{0} cannot be encoded")]
    Encoding(&'static str),
    /// The template of a file cannot be used.
    #[error("file {path}: template: {message}")]
    Template {
        /// Path of the file.
        path: String,
        /// What is wrong; never the file's content.
        message: String,
    },
    /// An additional Container Linux Config cannot be used.
    #[error("ignition.containerLinuxConfig.additionalConfig: {0}")]
    ContainerLinuxConfig(String),
    /// A file of the boot data cannot be put into Ignition.
    #[error("file {path}: {message}")]
    IgnitionFile {
        /// Path of the file.
        path: String,
        /// What is wrong.
        message: &'static str,
    },
    /// A mount names no file system of the disk setup, or lacks a part.
    #[error("mounts: {0}")]
    Mount(String),
    /// A Corefile cannot be read or migrated.
    #[error("Corefile: {0}")]
    Corefile(String),
}
