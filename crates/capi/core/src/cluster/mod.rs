//! `Cluster`: connects infrastructure, control plane and workers, and reports their state.
//!
//! Owns: the Cluster's finalizer, its endpoint, its status, the operation on it; the owner reference and the cluster label of the
//! infrastructure and control plane objects. Reads: those objects through the contract, the cluster's
//! MachineDeployments, MachineSets, MachinePools and Machines, and the health of the workload cluster. On deletion: workers, then
//! the control plane, then the infrastructure, then the finalizer.

mod decide;
mod deletion;
mod observe;
mod observed;
mod operation;
mod probe;
mod replicas;
mod status;
#[cfg(test)]
mod tests;
mod unfinished;

use std::sync::{Arc, OnceLock};

use capstan_capi_types::core::cluster::condition as own;
use capstan_capi_types::core::{
    Cluster, Machine, MachineDeployment, MachinePool, MachineSet, condition, label,
};
use capstan_controller::{
    Caches, Change, Controller, Decision, GATHER, Look, NoCall, ObserveError, View, Watches, Workloads,
};
use capstan_object::kstatus::condition::RECONCILING;
use capstan_object::{Key, Object};
use jiff::SignedDuration;

pub use observed::Observed;

use crate::conditions::v1beta1;
use crate::contract::Definition;
use crate::paused;
use crate::workload::Nodes;

pub struct ClusterController {
    /// How long a workload cluster may be unreachable before it counts as not connected.
    grace: SignedDuration,
    /// Node caches shared with other controllers.
    nodes: Option<Arc<Nodes>>,
    workloads: OnceLock<Arc<dyn Workloads>>,
}

impl ClusterController {
    /// With upstream's grace period of five minutes.
    pub fn new() -> Self {
        Self::with_grace(SignedDuration::from_mins(5))
    }

    pub fn with_grace(grace: SignedDuration) -> Self {
        Self { grace, nodes: None, workloads: OnceLock::new() }
    }

    /// Drops the shared Node caches of deleted clusters.
    #[must_use]
    pub fn sharing(self, nodes: Arc<Nodes>) -> Self {
        Self { nodes: Some(nodes), ..self }
    }
}

impl Default for ClusterController {
    fn default() -> Self {
        Self::new()
    }
}

const CONDITIONS: [&str; 17] = [
    condition::PAUSED,
    condition::INFRASTRUCTURE_READY,
    own::CONTROL_PLANE_AVAILABLE,
    own::CONTROL_PLANE_INITIALIZED,
    own::CONTROL_PLANE_MACHINES_READY,
    own::CONTROL_PLANE_MACHINES_UP_TO_DATE,
    own::WORKERS_AVAILABLE,
    own::WORKER_MACHINES_READY,
    own::WORKER_MACHINES_UP_TO_DATE,
    own::REMOTE_CONNECTION_PROBE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
    condition::DELETING,
    condition::AVAILABLE,
    RECONCILING,
];

impl Controller for ClusterController {
    const NAME: &'static str = "cluster";
    type Kind = Cluster;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<Cluster>) {
        watches.read::<Definition>();
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        watches.index_label::<MachineSet>(label::CLUSTER_NAME);
        watches.index_label::<MachineDeployment>(label::CLUSTER_NAME);
        watches.index_label::<MachinePool>(label::CLUSTER_NAME);
        // Batched: their conditions are aggregated.
        watches.related_within::<MachineDeployment>(GATHER, |change, _| {
            cluster_of(change, |object| &object.spec.cluster_name)
        });
        watches.related_within::<MachineSet>(GATHER, |change, _| {
            cluster_of(change, |object| &object.spec.cluster_name)
        });
        watches.related_within::<MachinePool>(GATHER, |change, _| {
            cluster_of(change, |object| &object.spec.cluster_name)
        });
        watches.related_within::<Machine>(GATHER, machine_matters);
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &Cluster, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(Some(object), &object.metadata, Cluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<Cluster>, view: &View) -> Result<Observed, ObserveError> {
        if let Some(workloads) = view.workloads() {
            self.workloads.get_or_init(|| workloads.clone());
        }
        observe::observe(object, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look, self.grace);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::CLUSTER, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }

    fn gone(&self, key: &Key) {
        if let Some(nodes) = &self.nodes {
            nodes.leave(key);
        }
        if let Some(workloads) = self.workloads.get() {
            workloads.forget(key);
        }
    }
}

fn cluster_of<T: Object>(change: &Change<T>, name: impl Fn(&T) -> &String) -> Vec<Key> {
    let latest = change.latest().filter(|object| !name(object).is_empty());
    latest.map(|object| Key::new(object.metadata().namespace.clone(), name(object))).into_iter().collect()
}

/// A machine triggers its cluster only when it is created, deleted, or changes in a field that the cluster aggregates.
fn machine_matters(change: &Change<Machine>, _: &Caches) -> Vec<Key> {
    let relevant = |machine: &Machine| {
        let conditions = machine
            .status
            .conditions
            .iter()
            .map(|condition| (condition.kind.clone(), condition.status, condition.message.clone()));
        (
            machine.status.node_ref.name.clone(),
            machine.status.node_info.as_ref().map(|info| info.kubelet_version.clone()),
            machine.metadata.owner_references.clone(),
            machine.metadata.labels.clone(),
            conditions.collect::<Vec<_>>(),
        )
    };
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if relevant(old) == relevant(new) => Vec::new(),
        _ => cluster_of(change, |machine| &machine.spec.cluster_name),
    }
}
