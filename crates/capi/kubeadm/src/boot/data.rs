//! What a machine's boot data says, before it is written in a format.

use capstan_capi_types::bootstrap::{File, Format, KubeadmConfigSpec, User};

/// Written when kubeadm is done: the sign by which providers know.
pub(crate) const SENTINEL: &str = "echo success > /run/cluster-api/bootstrap-success.complete";

/// What kubeadm does on the machine, with its configuration.
#[derive(Clone)]
pub enum Run {
    /// Makes the first control plane node.
    Init {
        /// `ClusterConfiguration` as YAML.
        cluster_configuration: String,
        /// `InitConfiguration` as YAML.
        init_configuration: String,
    },
    /// Joins a further control plane node.
    JoinControlPlane {
        /// `JoinConfiguration` as YAML.
        join_configuration: String,
    },
    /// Joins a worker.
    JoinWorker {
        /// `JoinConfiguration` as YAML.
        join_configuration: String,
    },
}

/// Everything a machine is told at its first boot. Holds keys and tokens: there is no `Debug`.
pub struct BootData<'a> {
    /// What kubeadm does.
    pub run: Run,
    /// Files of the cluster's certificates.
    pub certificates: Vec<File>,
    /// The user's files, with their content.
    pub files: Vec<File>,
    /// Users, with their passwords.
    pub users: Vec<User>,
    /// The rest.
    pub spec: &'a KubeadmConfigSpec,
}

impl BootData<'_> {
    /// The format that the specification asks for.
    pub fn format(&self) -> Format {
        self.spec.format.unwrap_or(Format::CloudConfig)
    }

    /// kubeadm's flags after its configuration.
    pub(crate) fn verbosity(&self) -> String {
        self.spec.verbosity.map_or(String::new(), |level| format!(" --v {level}"))
    }

    /// Certificates first, so that a user's file of the same path wins.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &File> {
        self.certificates.iter().chain(&self.files)
    }
}
