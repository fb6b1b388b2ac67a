//! What a cluster consists of: the objects of Cluster API, from the manifests alone. Pure.
//!
//! Objects have the names and the content that EKS Anywhere gives them, so that its running clusters are the same ones.
//! Templates have their first names here; `rotation` finds the names that are in use.

mod control_plane;
mod files;
mod health_check;
mod infrastructure;
mod machine_template;
pub(crate) mod mirror;
mod node;
mod proxy;
#[cfg(test)]
pub(crate) mod tests;
mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::bootstrap::{Arg, KubeadmConfigTemplate};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{self, MachineDeployment, MachineHealthCheck};
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackMachineTemplate};
use capstan_object::ObjectMeta;

use crate::endpoint;
use crate::names::{SYSTEM_NAMESPACE, label};
use crate::release::{Release, Releases};
use crate::types::{CloudStackDatacenterConfig, CloudStackMachineConfig, Cluster, Ref};

#[derive(Debug, Clone, Copy)]
pub struct Manifests<'a> {
    pub cluster: &'a Cluster,
    pub datacenter: &'a CloudStackDatacenterConfig,
    /// By name.
    pub machine_configs: &'a BTreeMap<String, Arc<CloudStackMachineConfig>>,
    pub releases: &'a Releases,
}

/// The objects of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    pub cluster: core::Cluster,
    pub infrastructure: CloudStackCluster,
    pub control_plane: KubeadmControlPlane,
    pub control_plane_machines: CloudStackMachineTemplate,
    pub control_plane_health_check: MachineHealthCheck,
    /// In the order of the manifest.
    pub groups: Vec<GeneratedGroup>,
}

/// The objects of a worker group.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedGroup {
    pub deployment: MachineDeployment,
    pub bootstrap: KubeadmConfigTemplate,
    pub machines: CloudStackMachineTemplate,
    pub health_check: MachineHealthCheck,
}

/// Generates the objects; the error says which field of the manifest is wrong.
pub fn generate(manifests: &Manifests<'_>) -> Result<Generated, String> {
    let cluster = manifests.cluster;
    let config = manifests.machine_config(
        cluster.spec.control_plane_configuration.machine_group_ref.as_ref(),
        "spec.controlPlaneConfiguration.machineGroupRef",
    )?;
    let machines = machine_template::generate(
        cluster,
        &crate::names::control_plane_template(cluster_name(cluster)),
        config,
    );
    let groups = cluster.spec.worker_node_group_configurations.iter().enumerate();
    Ok(Generated {
        cluster: infrastructure::cluster(manifests)?,
        infrastructure: infrastructure::cloudstack_cluster(manifests)?,
        control_plane: control_plane::generate(manifests, config, &machines)?,
        control_plane_machines: machines,
        control_plane_health_check: health_check::of_control_plane(cluster),
        groups: groups
            .map(|(at, group)| workers::generate(manifests, group, at))
            .collect::<Result<_, String>>()?,
    })
}

impl<'a> Manifests<'a> {
    fn machine_config(&self, group: Option<&Ref>, path: &str) -> Result<&'a CloudStackMachineConfig, String> {
        let name = group.map_or("", |group| group.name.as_str());
        let found = self.machine_configs.get(name).map(|config| &**config);
        found.ok_or_else(|| {
            let namespace = &self.cluster.metadata.namespace;
            format!("{path}: there is no CloudStackMachineConfig {namespace}/{name}")
        })
    }

    fn release(&self, minor: &str, path: &str) -> Result<&'a Release, String> {
        self.releases.get(minor).map_err(|why| format!("{path}: {why}"))
    }

    /// Host and port of the API server.
    fn endpoint(&self) -> Result<(&'a str, u16), String> {
        let endpoint = self.cluster.spec.control_plane_configuration.endpoint.as_ref();
        let host = endpoint.map_or("", |endpoint| endpoint.host.as_str());
        endpoint::parse(host).map_err(|why| format!("spec.controlPlaneConfiguration.endpoint.host: {why}"))
    }
}

fn cluster_name(cluster: &Cluster) -> &str {
    &cluster.metadata.name
}

/// Metadata of a generated object.
pub(crate) fn metadata(cluster: &Cluster, name: &str) -> ObjectMeta {
    let mut meta = ObjectMeta::named(SYSTEM_NAMESPACE, name);
    for (key, value) in [
        (label::CLUSTER_NAME, &cluster.metadata.name),
        (label::CLUSTER_NAMESPACE, &cluster.metadata.namespace),
        (core::label::CLUSTER_NAME, &cluster.metadata.name),
    ] {
        meta.labels.insert(key.to_owned(), value.clone());
    }
    meta
}

/// What EKS Anywhere allows in TLS 1.2, for every component.
const CIPHER_SUITE: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

fn arg(name: &str, value: impl Into<String>) -> Arg {
    Arg { name: name.to_owned(), value: Some(value.into()) }
}
