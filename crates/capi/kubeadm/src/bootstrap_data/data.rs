//! The content of bootstrap data, independent of its format.

use capstan_capi_types::bootstrap::{File, Format, KubeadmConfigSpec, User};

/// Run after kubeadm succeeds; providers watch for the file.
pub(crate) const SENTINEL: &str = "echo success > /run/cluster-api/bootstrap-success.complete";

/// Which kubeadm command the machine runs, and its configuration.
#[derive(Clone)]
pub enum KubeadmCommand {
    /// `kubeadm init` on the first control plane node.
    Init {
        /// `ClusterConfiguration` as YAML.
        cluster_configuration: String,
        /// `InitConfiguration` as YAML.
        init_configuration: String,
    },
    /// `kubeadm join` as a control plane node.
    JoinControlPlane {
        /// `JoinConfiguration` as YAML.
        join_configuration: String,
    },
    /// `kubeadm join` as a worker.
    JoinWorker {
        /// `JoinConfiguration` as YAML.
        join_configuration: String,
    },
}

/// Everything in a machine's bootstrap data. No `Debug`: it contains keys and tokens.
pub struct BootstrapData<'a> {
    pub run: KubeadmCommand,
    pub certificates: Vec<File>,
    /// User files with their content resolved.
    pub files: Vec<File>,
    pub users: Vec<User>,
    pub spec: &'a KubeadmConfigSpec,
}

impl BootstrapData<'_> {
    pub fn format(&self) -> Format {
        self.spec.format.unwrap_or(Format::CloudConfig)
    }

    /// Flags of the kubeadm command after `--config`.
    pub(crate) fn verbosity(&self) -> String {
        self.spec.verbosity.map_or(String::new(), |level| format!(" --v {level}"))
    }

    /// Certificates first, so a user's file at the same path overwrites them.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &File> {
        self.certificates.iter().chain(&self.files)
    }
}
