//! What a cluster consists of now.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::{ControlPlane, External};
use capstan_capi_types::core::{Cluster, MachineDeployment, MachineHealthCheck, MachinePool};
use capstan_capi_types::version;

/// The objects of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Current {
    pub cluster: Cluster,
    /// The cluster names its infrastructure and its control plane.
    pub referenced: bool,
    pub infrastructure: Option<External>,
    pub control_plane: Option<External>,
    /// Template that the control plane's machines are cloned from.
    pub control_plane_machines: Option<External>,
    /// By the name in the topology.
    pub deployments: BTreeMap<String, CurrentDeployment>,
    /// By the name in the topology.
    pub pools: BTreeMap<String, CurrentPool>,
    /// By name.
    pub health_checks: BTreeMap<String, Arc<MachineHealthCheck>>,
}

#[derive(Debug, Clone)]
pub struct CurrentDeployment {
    pub object: Arc<MachineDeployment>,
    pub bootstrap: Option<External>,
    pub infrastructure: Option<External>,
    /// A machine has another version than the deployment.
    pub upgrading: bool,
}

#[derive(Debug, Clone)]
pub struct CurrentPool {
    pub object: Arc<MachinePool>,
    pub bootstrap: Option<External>,
    pub infrastructure: Option<External>,
    /// A machine has another version than the pool.
    pub upgrading: bool,
}

impl CurrentPool {
    /// From the versions that the pool reports of its nodes.
    pub fn is_upgrading(pool: &MachinePool) -> bool {
        let version = &pool.spec.template.spec.version;
        !version.is_empty() && pool.status.versions.iter().any(|found| found.version != *version)
    }
}

/// The control plane reports no version yet.
pub fn is_provisioning(control_plane: &External) -> bool {
    let version = ControlPlane(control_plane).status_version().ok().flatten();
    version.is_none_or(|version| version.is_empty())
}

/// A machine of the control plane has an older version than the control plane.
pub fn is_upgrading(control_plane: &External) -> bool {
    let contract = ControlPlane(control_plane);
    let Some(wanted) = contract.version().ok().flatten().and_then(|text| version::tolerant(&text)) else {
        return false;
    };
    let versions = contract.versions().ok().flatten().filter(|versions| !versions.is_empty());
    let reported: Vec<String> = match versions {
        Some(versions) => versions.into_iter().map(|version| version.version).collect(),
        None => contract.status_version().ok().flatten().into_iter().collect(),
    };
    reported.iter().filter_map(|text| version::tolerant(text)).any(|found| found < wanted)
}
