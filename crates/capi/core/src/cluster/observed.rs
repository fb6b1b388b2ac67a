//! What a decision about a Cluster depends on.

use std::sync::Arc;

use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet};
use capstan_controller::Health;
use capstan_object::OwnerReference;

use crate::contract::Found;

/// What was seen beside the Cluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// The infrastructure object.
    pub infrastructure: Found,
    /// The control plane object.
    pub control_plane: Found,
    /// Its MachineDeployments.
    pub deployments: Vec<Arc<MachineDeployment>>,
    /// Its MachineSets.
    pub sets: Vec<Arc<MachineSet>>,
    /// Its Machines that belong to the control plane.
    pub control_plane_machines: Vec<Arc<Machine>>,
    /// Its other Machines.
    pub worker_machines: Vec<Arc<Machine>>,
    /// How the workload cluster answers.
    pub health: Health,
}

impl Seen {
    /// All machines.
    pub fn machines(&self) -> impl Iterator<Item = &Arc<Machine>> {
        self.control_plane_machines.iter().chain(&self.worker_machines)
    }
}

/// The object belongs directly to the cluster.
pub(super) fn is_owned(cluster: &Cluster, owners: &[OwnerReference]) -> bool {
    let ours = OwnerReference::to(cluster);
    owners.iter().any(|owner| owner.same_owner(&ours))
}

/// The cluster is made from a class.
pub(super) fn has_topology(cluster: &Cluster) -> bool {
    cluster.spec.topology != Topology::default()
}
