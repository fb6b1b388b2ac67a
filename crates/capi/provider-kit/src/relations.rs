//! Relations between a provider's objects and their Cluster and Machine, and the resulting watches.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, Machine, MachineAddressType, label};
use capstan_controller::{Caches, Change, ObserveError, View, Watches};
use capstan_object::{Key, Object, ObjectMeta};

use crate::InfrastructureMachine;

/// The infrastructure of a Cluster, if it has kind `C`.
pub fn infrastructure_of_cluster<C: Object>(cluster: &Cluster) -> Option<Key> {
    let reference = &cluster.spec.infrastructure_ref;
    let ours = reference.kind == C::KIND.kind && reference.api_group == C::KIND.group;
    ours.then(|| Key::new(cluster.metadata.namespace.as_str(), reference.name.as_str()))
}

/// The infrastructure of a Machine, if it has kind `M`.
pub fn infrastructure_of_machine<M: Object>(machine: &Machine) -> Option<Key> {
    let reference = &machine.spec.infrastructure_ref;
    let ours = reference.kind == M::KIND.kind && reference.api_group == M::KIND.group;
    ours.then(|| Key::new(machine.metadata.namespace.as_str(), reference.name.as_str()))
}

/// The Cluster of a provider's machine, by its Machine or else by its label.
pub fn cluster_of_machine(meta: &ObjectMeta, view: &View) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let machine = owners::of::<Machine>(meta, view)?;
    let label = meta.labels.get(label::CLUSTER_NAME);
    let Some(name) = machine.as_ref().map(|machine| &machine.spec.cluster_name).or(label) else {
        return Ok(None);
    };
    view.get(&Key::new(meta.namespace.as_str(), name.as_str()))
}

/// Watches for a controller of cluster infrastructure: its Cluster, and machines of kind `M` that are created,
/// deleted, being deleted, or change their address. [`ClusterMembers::observe`] reads from these caches.
pub fn watch_cluster<C: Object, M: InfrastructureMachine>(watches: &mut Watches<C>) {
    watches.read::<Machine>();
    watches.index_label::<M>(label::CLUSTER_NAME);
    watches.related::<Cluster>(|change, _| match paused::concerns_members(change) {
        true => change.latest().and_then(|it| infrastructure_of_cluster::<C>(it)).into_iter().collect(),
        false => Vec::new(),
    });
    watches.related::<M>(cluster_of_changed::<C, M>);
}

/// Watches for a controller of machine infrastructure: its Machine's spec and labels, and its Cluster.
pub fn watch_machine<M: Object>(watches: &mut Watches<M>) {
    watches.index_label::<M>(label::CLUSTER_NAME);
    watches.related::<Machine>(|change, _| match (&change.old, &change.new) {
        (Some(old), Some(new)) if (&old.spec, &old.metadata.labels) == (&new.spec, &new.metadata.labels) => {
            Vec::new()
        }
        _ => change.latest().and_then(|it| infrastructure_of_machine::<M>(it)).into_iter().collect(),
    });
    watches.related::<Cluster>(machines_of_changed::<M>);
}

/// The infrastructure of the current and previous cluster of a changed machine.
fn cluster_of_changed<C: Object, M: InfrastructureMachine>(change: &Change<M>, caches: &Caches) -> Vec<Key> {
    let relevant = |machine: &Arc<M>| {
        let meta = machine.metadata();
        (machine.addresses().to_vec(), meta.is_deleting(), meta.labels.clone(), meta.owner_references.clone())
    };
    if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
        return Vec::new();
    }
    let clusters = change.both().filter_map(|machine| {
        let meta = machine.metadata();
        let key = Key::new(meta.namespace.as_str(), meta.labels.get(label::CLUSTER_NAME)?.as_str());
        infrastructure_of_cluster::<C>(&*caches.get::<Cluster>(&key).ok()??)
    });
    let clusters: BTreeSet<Key> = clusters.collect();
    clusters.into_iter().collect()
}

/// A cluster's machines of kind `M`, if the change matters to them.
fn machines_of_changed<M: Object>(change: &Change<Cluster>, caches: &Caches) -> Vec<Key> {
    let Some(cluster) = change.latest().filter(|_| paused::concerns_members(change)) else {
        return Vec::new();
    };
    let meta = &cluster.metadata;
    let machines = caches
        .of::<M>()
        .and_then(|machines| machines.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
    machines.unwrap_or_default().iter().map(|machine| machine.key()).collect()
}

/// What a decision about cluster infrastructure is based on, besides the cloud.
#[derive(Debug, Clone, Default)]
pub struct ClusterMembers {
    /// The Cluster that owns it.
    pub cluster: Option<Arc<Cluster>>,
    /// Names of the cluster's machines of this provider.
    pub machines: Vec<String>,
    /// Addresses of control plane machines that are not being deleted.
    pub control_plane: BTreeSet<Ipv4Addr>,
}

impl ClusterMembers {
    pub fn observe<M: InfrastructureMachine>(meta: &ObjectMeta, view: &View) -> Result<Self, ObserveError> {
        let mut seen = Self { cluster: owners::of::<Cluster>(meta, view)?, ..Self::default() };
        // The label outlives the owner: an object that is deleted without its Cluster still waits for its machines.
        let label = meta.labels.get(label::CLUSTER_NAME);
        let Some(cluster) = seen.cluster.as_ref().map(|cluster| &cluster.metadata.name).or(label) else {
            return Ok(seen);
        };
        for machine in view.labelled::<M>(&meta.namespace, label::CLUSTER_NAME, cluster)? {
            let of_machine = machine.metadata();
            seen.machines.push(of_machine.name.clone());
            if !of_machine.is_deleting() && is_control_plane(of_machine, view)? {
                seen.control_plane.extend(internal_address(&*machine));
            }
        }
        Ok(seen)
    }
}

/// The contract puts the label on Machines; most clones have it on the infrastructure too.
fn is_control_plane(meta: &ObjectMeta, view: &View) -> Result<bool, ObserveError> {
    if meta.labels.contains_key(label::CONTROL_PLANE) {
        return Ok(true);
    }
    let owner = owners::of::<Machine>(meta, view)?;
    Ok(owner.is_some_and(|owner| owner.metadata.labels.contains_key(label::CONTROL_PLANE)))
}

fn internal_address(machine: &impl InfrastructureMachine) -> Option<Ipv4Addr> {
    let mut addresses = machine.addresses().iter();
    let internal = addresses.find(|address| address.kind == Some(MachineAddressType::InternalIP))?;
    internal.address.parse().ok()
}
