//! What a machine's boot data says, before it is written in a format: the part of `kubeadm`'s run it is for,
//! files with their content, users with their passwords.

mod discovery_file;
mod join;
mod resolve;
mod template;

pub use discovery_file::discovery_kubeconfig;
pub use join::{as_control_plane, as_worker, token, uses_token, with_discovery};
pub use resolve::{needed_secrets, resolve_files, resolve_users};

use capstan_capi_types::bootstrap::{File, Format, KubeadmConfigSpec, User};

use crate::{Error, cloud_config, ignition};

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
    /// The data in the format that the specification asks for.
    pub fn render(&self) -> Result<Vec<u8>, Error> {
        match self.format() {
            Format::CloudConfig => Ok(cloud_config::render(self).into_bytes()),
            Format::Ignition => ignition::render(self),
        }
    }

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
