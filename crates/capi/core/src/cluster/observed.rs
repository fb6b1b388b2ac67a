//! What a decision about a Cluster is based on.

use std::sync::Arc;

use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachinePool, MachineSet, label};
use capstan_controller::Health;
use capstan_object::OwnerReference;

use crate::contract::Lookup;

/// Observed state besides the Cluster.
#[derive(Debug, Default)]
pub struct Observed {
    pub infrastructure: Lookup,
    pub control_plane: Lookup,
    pub deployments: Vec<Arc<MachineDeployment>>,
    pub sets: Vec<Arc<MachineSet>>,
    pub pools: Vec<Arc<MachinePool>>,
    pub control_plane_machines: Vec<Arc<Machine>>,
    pub worker_machines: Vec<Arc<Machine>>,
    /// Health of the connection to the workload cluster.
    pub health: Health,
}

impl Observed {
    pub fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.control_plane_machines.iter().chain(&self.worker_machines)
    }

    /// The workers that conditions of a cluster are about: pools report on their machines themselves, as upstream.
    pub fn workers_outside_pools(&self) -> Vec<Arc<Machine>> {
        let alone = self.worker_machines.iter().filter(|machine| !is_of_pool(machine));
        alone.cloned().collect()
    }
}

/// The machine is part of a MachinePool.
pub(super) fn is_of_pool(machine: &Machine) -> bool {
    machine.metadata.labels.contains_key(label::POOL_NAME)
}

/// The object is a direct child of the cluster.
pub(super) fn is_owned(cluster: &Cluster, owners: &[OwnerReference]) -> bool {
    let ours = OwnerReference::to(cluster);
    owners.iter().any(|owner| owner.same_owner(&ours))
}

/// The cluster uses a ClusterClass.
pub(super) fn has_topology(cluster: &Cluster) -> bool {
    cluster.spec.topology != Topology::default()
}
