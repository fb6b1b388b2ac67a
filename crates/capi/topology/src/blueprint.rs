//! A class with its templates, and the topology that a cluster wants of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::External;
use capstan_capi_types::core::ClusterClass;
use capstan_capi_types::core::cluster_class::{MachineDeploymentClass, MachinePoolClass};
use capstan_capi_types::core::topology::Topology;

/// ClusterClass and templates of a cluster.
#[derive(Debug, Clone)]
pub struct Blueprint {
    pub class: Arc<ClusterClass>,
    /// With the defaults of the class's variables.
    pub topology: Topology,
    pub infrastructure: External,
    pub control_plane: External,
    /// Template of the control plane's machines, if it has any.
    pub control_plane_machines: Option<External>,
    /// Templates of workers by class.
    pub deployments: BTreeMap<String, WorkerTemplates>,
    pub pools: BTreeMap<String, WorkerTemplates>,
}

#[derive(Debug, Clone)]
pub struct WorkerTemplates {
    pub bootstrap: External,
    pub infrastructure: External,
}

impl Blueprint {
    pub fn deployment_class(&self, name: &str) -> Option<(&MachineDeploymentClass, &WorkerTemplates)> {
        let class = self.class.spec.workers.machine_deployments.iter().find(|class| class.class == name)?;
        Some((class, self.deployments.get(name)?))
    }

    pub fn pool_class(&self, name: &str) -> Option<(&MachinePoolClass, &WorkerTemplates)> {
        let class = self.class.spec.workers.machine_pools.iter().find(|class| class.class == name)?;
        Some((class, self.pools.get(name)?))
    }
}
