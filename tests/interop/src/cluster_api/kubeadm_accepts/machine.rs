//! The boot data of a machine, rendered by the functions of the bootstrap controller.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use capstan_capi_kubeadm::bootstrap_data::{self, BootstrapData, KubeadmCommand};
use capstan_capi_kubeadm::certificates::{
    CertificateLocation, KeyPair, KeySettings, Keys, Purpose, SystemKeys, locations_for_control_plane,
};
use capstan_capi_kubeadm::config;
use capstan_capi_types::bootstrap::{EncryptionAlgorithmType, KubeadmConfigSpec};
use capstan_capi_types::core::Cluster;
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Init,
    JoinControlPlane,
    JoinWorker,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Init, Self::JoinControlPlane, Self::JoinWorker];
}

pub struct Certificates(BTreeMap<Purpose, KeyPair>);

impl Certificates {
    /// Creates the certificates that the spec requires. The client certificate for an external etcd, which a user
    /// provides, is any key pair here.
    pub fn make(spec: &KubeadmConfigSpec) -> Result<Self> {
        let settings = KeySettings::of(&spec.cluster_configuration, EncryptionAlgorithmType::EcdsaP256);
        let seed = SystemKeys.seed("suite")?;
        let make = |purpose| {
            let pair = KeyPair::make(purpose, settings, &seed, Timestamp::now())?;
            Ok((purpose, pair))
        };
        let purposes = Purpose::MADE.into_iter().chain([Purpose::ApiServerEtcdClient]);
        Ok(Self(purposes.map(make).collect::<Result<_>>()?))
    }

    /// Replaces the CA's key by another one.
    pub fn with_foreign_ca_key(mut self) -> Result<Self> {
        let other = Self::make(&KubeadmConfigSpec::default())?;
        let foreign = other.0[&Purpose::ClusterCa].key.clone();
        self.0.get_mut(&Purpose::ClusterCa).context("no CA")?.key = foreign;
        Ok(self)
    }

    pub fn ca(&self) -> &str {
        &self.0[&Purpose::ClusterCa].certificate
    }
}

/// Renders the boot data of a machine.
pub fn boot_data(
    role: Role,
    cluster: &Cluster,
    spec: &KubeadmConfigSpec,
    version: &str,
    certificates: &Certificates,
) -> Result<Vec<u8>> {
    let mut files = bootstrap_data::resolve_files(&spec.files, &BTreeMap::new(), Some(version))?;
    let mut join = bootstrap_data::with_discovery(&spec.join_configuration, cluster, certificates.ca())?
        .context("the cluster has no endpoint")?;
    if bootstrap_data::uses_token(&join) {
        join.discovery.bootstrap_token.token = "abcdef.0123456789abcdef".to_owned();
    }
    files.extend(bootstrap_data::discovery_kubeconfig(&join.discovery.file));
    let run = match role {
        Role::Init => KubeadmCommand::Init {
            cluster_configuration: config::cluster_configuration(spec, cluster, version)?,
            init_configuration: config::init_configuration(&spec.init_configuration, version)?,
        },
        Role::JoinControlPlane => KubeadmCommand::JoinControlPlane {
            join_configuration: config::join_configuration(
                &bootstrap_data::as_control_plane(&join),
                version,
            )?,
        },
        Role::JoinWorker => KubeadmCommand::JoinWorker {
            join_configuration: config::join_configuration(&bootstrap_data::as_worker(&join)?, version)?,
        },
    };
    let certificates = if role == Role::JoinWorker {
        Vec::new()
    } else {
        let files = |location: CertificateLocation| location.files(&certificates.0[&location.purpose]);
        locations_for_control_plane(&spec.cluster_configuration).into_iter().flat_map(files).collect()
    };
    let users = bootstrap_data::resolve_users(&spec.users, &BTreeMap::new())?;
    Ok(BootstrapData { run, certificates, files, users, spec }.render()?)
}
