//! Errors of this crate. No variant carries a key, a token or the content of a Secret: errors appear in conditions
//! and logs.

use capstan_capi_core::secret::SecretError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The operating system provided no randomness.
    #[error("the operating system gave no randomness")]
    Randomness,
    #[error("private key {0}")]
    Key(&'static str),
    #[error("certificate {0}")]
    Certificate(&'static str),
    /// A certificate Secret is missing and must not be generated here.
    #[error("secret {0} is missing: provide it, or let the control plane provider create it")]
    CertificateMissing(String),
    /// A Secret lacks a key, or its value is not text.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A Secret that a field names does not exist.
    #[error("secret {0} does not exist")]
    SecretMissing(String),
    #[error("kubeconfig {0}")]
    Kubeconfig(&'static str),
    #[error("{0:?} is not a Kubernetes version such as v1.34.1")]
    Version(String),
    /// No supported kubeadm configuration API exists for the Kubernetes version.
    #[error("Kubernetes {0} is older than v1.22.0, the oldest that kubeadm v1beta3 configurations work for")]
    VersionTooOld(String),
    #[error("the machine is a worker, but its joinConfiguration has a controlPlane section")]
    WorkerWithControlPlane,
    #[error("{0} cannot be encoded")]
    Encoding(&'static str),
    /// A file's template failed.
    #[error("file {path}: template: {message}")]
    Template {
        path: String,
        /// Never contains the file's content.
        message: String,
    },
    #[error("ignition.containerLinuxConfig.additionalConfig: {0}")]
    ContainerLinuxConfig(String),
    #[error("file {path}: {message}")]
    IgnitionFile { path: String, message: &'static str },
    /// A mount refers to no filesystem of the disk setup, or is incomplete.
    #[error("mounts: {0}")]
    Mount(String),
    #[error("Corefile: {0}")]
    Corefile(String),
}
