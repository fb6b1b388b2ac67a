//! `Machine`: from bootstrap data and infrastructure to a node, and its deletion.
//!
//! Owns: the Machine's finalizer, its cluster label, the fields it copies from its bootstrap and infrastructure
//! objects, its status; the controlling owner reference of those objects; labels, annotations and taints of its Node
//! that come from the Machine. Reads: its Cluster and owners, its bootstrap and infrastructure objects through the
//! contract, its Node. If its owner wants it updated in place, an extension is asked until it is done. On deletion: hooks, drain, volumes, hooks, infrastructure, bootstrap data, Node, finalizer.

mod call;
mod decide;
mod deletion_stage;
pub mod drain;
mod in_place;
mod observe;
mod observed;
mod status;
#[cfg(test)]
mod tests;
mod volumes;

use std::sync::{Arc, OnceLock};

use capstan_capi_types::core::cluster::condition as cluster_condition;
use capstan_capi_types::core::machine::condition as own;
use capstan_capi_types::core::{
    Cluster, Machine, MachineDeployment, MachineDrainRule, MachineSet, annotation, condition, label,
};
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{
    Caches, Change, Controller, Decision, GATHER, Look, ObserveError, Outcome, View, Wake, Watches,
};
use capstan_object::{Conditions, Key, Object};
use jiff::SignedDuration;

pub(crate) use call::make;
pub use call::{Evicted, MachineCall, PodName};
pub use decide::SyncedKeys;
pub(crate) use decide::UNINITIALIZED;
pub use observed::{Observed, ObservedNode, Update};

use crate::conditions::v1beta1;
use crate::contract::Definition;
use crate::in_place::Updater;
use crate::paused;
use crate::workload::Nodes;

#[derive(Debug, Clone)]
pub struct Settings {
    /// How long the last known state of nodes in an unreachable workload cluster is kept in conditions.
    pub grace: SignedDuration,
    /// Labels and annotations that are synced to nodes beside those that always are.
    pub synced: SyncedKeys,
}

impl Default for Settings {
    /// Upstream's.
    fn default() -> Self {
        Self { grace: SignedDuration::from_mins(5), synced: SyncedKeys::default() }
    }
}

pub struct MachineController {
    nodes: Arc<Nodes>,
    settings: Settings,
    wake: OnceLock<Wake>,
    updater: Option<Arc<dyn Updater>>,
}

impl MachineController {
    /// `nodes` is shared with other controllers.
    pub fn new(nodes: Arc<Nodes>, settings: Settings) -> Self {
        Self { nodes, settings, wake: OnceLock::new(), updater: None }
    }

    /// Has an extension update machines in place whose owner asks for it.
    #[must_use]
    pub fn updating(self, updater: Arc<dyn Updater>) -> Self {
        Self { updater: Some(updater), ..self }
    }
}

/// The conditions this controller writes. It writes `UpToDate` for machines of MachineDeployments only; control
/// planes write it for theirs. `HealthCheckSucceeded` and `OwnerRemediated` are written by others.
const CONDITIONS: [&str; 10] = [
    condition::PAUSED,
    condition::AVAILABLE,
    condition::READY,
    condition::BOOTSTRAP_CONFIG_READY,
    condition::INFRASTRUCTURE_READY,
    own::NODE_READY,
    own::NODE_HEALTHY,
    condition::DELETING,
    own::UPDATING,
    own::UP_TO_DATE,
];

impl Controller for MachineController {
    const NAME: &'static str = "machine";
    type Kind = Machine;
    type Seen = Observed;
    type Call = MachineCall;

    fn watches(&self, watches: &mut Watches<Machine>) {
        self.wake.get_or_init(|| watches.wake());
        watches.read::<Definition>().read::<MachineDrainRule>();
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        watches.index_label::<Machine>(label::DEPLOYMENT_NAME);
        watches.index_label::<Machine>(label::SET_NAME);
        watches.related::<Cluster>(|change, caches| {
            if !cluster_matters(change) {
                return Vec::new();
            }
            labelled(caches, &change.key.namespace, label::CLUSTER_NAME, &change.key.name)
        });
        if let Some(updater) = self.updater.clone() {
            watches.related_within::<ExtensionConfig>(GATHER, move |_, _| updater.waiting());
        }
        // For the taint of nodes of an old revision.
        watches.related::<MachineSet>(|change, caches| {
            let relevant = |set: &Arc<MachineSet>| {
                let revision = set.metadata.annotations.get(annotation::REVISION).cloned();
                (revision, set.metadata.labels.get(label::DEPLOYMENT_NAME).cloned())
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            let value = label::value(&change.key.name);
            labelled(caches, &change.key.namespace, label::SET_NAME, &value)
        });
        // For `UpToDate`, and for that taint.
        watches.related::<MachineDeployment>(|change, caches| {
            let relevant = |deployment: &Arc<MachineDeployment>| {
                let revision = deployment.metadata.annotations.get(annotation::REVISION).cloned();
                (revision, deployment.spec.template.clone(), deployment.spec.rollout.after)
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            labelled(caches, &change.key.namespace, label::DEPLOYMENT_NAME, &change.key.name)
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &Machine, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = view.get::<Cluster>(&cluster_of(object))?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, Machine::KIND.kind))
    }

    async fn observe(&self, object: &Arc<Machine>, view: &View) -> Result<Observed, ObserveError> {
        let mut seen = observe::observe(object, view, &self.nodes, self.wake.get()).await?;
        if let Some(updater) = &self.updater {
            seen.update = in_place::ask(object, &seen, updater.as_ref(), view).await?;
        }
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look, &self.settings);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::MACHINE, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }

    async fn call(&self, call: &MachineCall, object: &Arc<Machine>, view: &View) -> Outcome {
        call::make(call, &cluster_of(object), view).await
    }

    fn gone(&self, key: &Key) {
        self.nodes.forget::<Machine>(key);
        if let Some(updater) = &self.updater {
            updater.forget(key);
        }
    }
}

fn cluster_of(machine: &Machine) -> Key {
    Key::new(machine.metadata.namespace.clone(), machine.spec.cluster_name.clone())
}

fn labelled(caches: &Caches, namespace: &str, label: &str, value: &str) -> Vec<Key> {
    let machines = caches.of::<Machine>().and_then(|cache| cache.labelled(namespace, label, value));
    machines.unwrap_or_default().iter().map(|machine| machine.key()).collect()
}

/// Whether a change of a Cluster matters to its machines: paused, deleted, initialized, reachable.
fn cluster_matters(change: &Change<Cluster>) -> bool {
    let relevant = |cluster: &Arc<Cluster>| {
        let holds = |kind| cluster.status.conditions.is_condition_true(kind);
        (
            cluster.spec.paused,
            cluster.metadata.is_deleting(),
            cluster.status.initialization.clone(),
            holds(cluster_condition::CONTROL_PLANE_INITIALIZED),
            holds(cluster_condition::REMOTE_CONNECTION_PROBE),
        )
    };
    change.old.as_ref().map(relevant) != change.new.as_ref().map(relevant)
}
