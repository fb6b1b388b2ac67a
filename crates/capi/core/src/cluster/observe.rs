//! What a Cluster's decision stands on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet, label};
use capstan_controller::{Health, ObserveError, View};
use capstan_object::{Object, OwnerReference};

use crate::contract::{Found, look_up};

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

pub(super) async fn observe(cluster: &Arc<Cluster>, view: &View) -> Result<Seen, ObserveError> {
    let meta = &cluster.metadata;
    let key = cluster.key();
    let machines = view.labelled::<Machine>(&meta.namespace, label::CLUSTER_NAME, &meta.name)?;
    let (control_plane_machines, worker_machines) =
        machines.into_iter().partition(|machine| machine.metadata.labels.contains_key(label::CONTROL_PLANE));
    let mut health = Health::default();
    if let Some(workloads) = view.workloads() {
        // Asking for it is what probes it; how that went shows in its health.
        if cluster.spec.control_plane_endpoint.is_valid() && !meta.is_deleting() {
            drop(workloads.client(&key).await);
        }
        health = workloads.health(&key);
    }
    Ok(Seen {
        infrastructure: look_up(view, &cluster.spec.infrastructure_ref, &meta.namespace).await?,
        control_plane: look_up(view, &cluster.spec.control_plane_ref, &meta.namespace).await?,
        deployments: view.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name)?,
        sets: view.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name)?,
        control_plane_machines,
        worker_machines,
        health,
    })
}
