//! Clusters of a ClusterClass: makes the objects of a cluster what its topology says.
//!
//! Owns: `spec.infrastructureRef`, `spec.controlPlaneRef` and the topology labels of the Cluster, its `TopologyReconciled`
//! condition and upgrade plans, and the annotations of lifecycle hooks; the fields that it applies to the infrastructure cluster, the control plane,
//! MachineDeployments, MachinePools, MachineHealthChecks and their templates. Reads: the class with its templates, those objects,
//! MachineSets and Machines. What applying would change is asked of the API server, since only that knows defaults; what
//! extensions patch, and whether they let an operation go on, is asked of them.

mod asking;
mod class_changes;
mod compare;
mod current;
mod decide;
mod former_kinds;
mod observe;
mod observed;
mod orphans;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::Definition;
use capstan_capi_core::paused;
use capstan_capi_runtime::{Extensions, Retries};
use capstan_capi_types::core::cluster::condition;
use capstan_capi_types::core::{
    Cluster, ClusterClass, Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet, label,
};
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{
    Caches, Change, Controller, Decision, GATHER, Look, NoCall, ObserveError, View, Watches,
};
use capstan_object::{Key, Object};
use jiff::Timestamp;
use parking_lot::Mutex;

pub(crate) use current::template;
pub use observed::{DeletionHook, Difference, Observed, Topology};

use crate::FIELD_MANAGER;

#[derive(Default)]
pub struct ClusterTopologies {
    /// Comparisons that found no difference, by cluster: what they were about, and the state that was compared.
    unchanged: Mutex<BTreeMap<Key, BTreeMap<String, String>>>,
    /// Since when a cluster waits for its class to be reconciled.
    waiting: Mutex<BTreeMap<Key, Timestamp>>,
    extensions: Arc<Extensions>,
    /// Clusters whose extension did not answer.
    retries: Arc<Retries>,
}

impl ClusterTopologies {
    pub fn new(extensions: Arc<Extensions>) -> Self {
        Self { extensions, ..Self::default() }
    }
}

const CONDITIONS: [&str; 1] = [condition::TOPOLOGY_RECONCILED];

/// The class of a cluster with a topology.
pub(crate) fn class_of(cluster: &Cluster) -> Option<Key> {
    cluster.spec.topology.class_ref.key(&cluster.metadata.namespace)
}

/// Index of clusters by class.
const BY_CLASS: &str = "class";

impl Controller for ClusterTopologies {
    const NAME: &'static str = FIELD_MANAGER;
    type Kind = Cluster;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<Cluster>) {
        watches.read::<Definition>();
        watches.index::<Cluster>(BY_CLASS, |cluster| {
            class_of(cluster).into_iter().map(|class| class.to_string()).collect()
        });
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        watches.index_label::<MachineSet>(label::CLUSTER_NAME);
        watches.index_label::<MachineDeployment>(label::CLUSTER_NAME);
        watches.index_label::<MachineHealthCheck>(label::CLUSTER_NAME);
        watches.index_label::<MachinePool>(label::CLUSTER_NAME);
        watches.related::<ClusterClass>(|change, caches| match class_changes::concerns_clusters(change) {
            true => clusters_of(caches, &change.key),
            false => Vec::new(),
        });
        let retries = self.retries.clone();
        watches.related_within::<ExtensionConfig>(GATHER, move |_, _| retries.waiting());
        watches.related_within::<MachineDeployment>(GATHER, owned_changed);
        watches.related_within::<MachinePool>(GATHER, |change, caches| {
            // Versions of its nodes say when its upgrade is over.
            let versions = |pool: &Arc<MachinePool>| pool.status.versions.clone();
            if change.old.as_ref().map(versions) != change.new.as_ref().map(versions) {
                return cluster_of(change);
            }
            owned_changed(change, caches)
        });
        watches.related_within::<MachineSet>(GATHER, |change, _| {
            // Only its end matters: templates are kept as long as somebody uses them.
            if change.new.is_some() { Vec::new() } else { cluster_of(change) }
        });
        watches.related_within::<MachineHealthCheck>(GATHER, owned_changed);
        watches.related_within::<Machine>(GATHER, |change, _| {
            let version = |machine: &Arc<Machine>| machine.spec.version.clone();
            let same = change.old.as_ref().map(version) == change.new.as_ref().map(version);
            if same { Vec::new() } else { cluster_of(change) }
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &CONDITIONS
    }

    fn paused(&self, object: &Cluster, _: &View) -> Result<Option<String>, ObserveError> {
        Ok(paused::why(Some(object), &object.metadata, Cluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<Cluster>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(self, object, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    fn gone(&self, key: &Key) {
        self.retries.succeeded(key);
        self.extensions.forget(key);
        self.unchanged.lock().remove(key);
        self.class_is_ready(key);
    }
}

fn clusters_of(caches: &Caches, class: &Key) -> Vec<Key> {
    let clusters = caches.of::<Cluster>().and_then(|cache| cache.indexed(BY_CLASS, &class.to_string()));
    clusters.unwrap_or_default().iter().map(|cluster| cluster.key()).collect()
}

fn cluster_of<T: Object>(change: &Change<T>) -> Vec<Key> {
    let name = |object: &Arc<T>| {
        let labels = &object.metadata().labels;
        labels.get(label::CLUSTER_NAME).filter(|_| labels.contains_key(label::TOPOLOGY_OWNED)).cloned()
    };
    let namespace = change.key.namespace.as_str();
    change.both().filter_map(name).map(|name| Key::new(namespace, name)).collect()
}

/// The same, if the desired state of the object changed, or fields that others may change.
fn owned_changed<T: Object>(change: &Change<T>, _: &Caches) -> Vec<Key> {
    let wanted = |object: &Arc<T>| {
        let meta = object.metadata();
        (meta.generation, meta.labels.clone(), meta.annotations.clone(), meta.is_deleting())
    };
    let same = change.old.as_ref().map(wanted) == change.new.as_ref().map(wanted);
    if same { Vec::new() } else { cluster_of(change) }
}
