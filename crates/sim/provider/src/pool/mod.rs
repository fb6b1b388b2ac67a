//! `SimMachinePool`: as many SimMachines as its MachinePool wants.
//!
//! Owns: SimMachinePools, their finalizer, provider ids and status; the SimMachines of the pool, which the SimMachine
//! controller creates in the site like any other. Reads: the MachinePool that owns it, its Cluster, the Machines that
//! the MachinePool keeps for the SimMachines. A machine is deleted by way of its Machine, so that its node is drained.

mod decide;
mod member;
mod observe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, MachinePool, condition, label};
use capstan_controller::{
    Caches, Change, Controller, Decision, GATHER, Look, NoCall, ObserveError, View, Watches,
};
use capstan_object::{Key, Object};

use crate::types::{SimMachine, SimMachinePool};

pub use observe::{Member, Seen};

/// Keeps a SimMachinePool until its machines are gone.
pub const FINALIZER: &str = "simmachinepool.infrastructure.cluster.x-k8s.io";

/// Kubernetes version of the machine, on SimMachines of pools: the MachinePool's may have changed since.
pub const VERSION: &str = "infrastructure.cluster.x-k8s.io/simmachinepool-version";

#[derive(Debug, Clone, Copy, Default)]
pub struct SimMachinePools;

impl Controller for SimMachinePools {
    const NAME: &'static str = "simmachinepool";
    type Kind = SimMachinePool;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<SimMachinePool>) {
        watches
            .owned_within::<SimMachine>(GATHER)
            .related::<MachinePool>(|change, _| {
                change.latest().and_then(|pool| infrastructure_of(pool)).into_iter().collect()
            })
            .related_within::<Machine>(GATHER, pool_of_machine)
            .related::<Cluster>(|change, caches| match paused::concerns_members(change) {
                true => of_cluster(caches, &change.key),
                false => Vec::new(),
            })
            .index_label::<SimMachinePool>(label::CLUSTER_NAME)
            .index_label::<SimMachine>(label::POOL_NAME)
            .index_label::<Machine>(label::POOL_NAME);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    fn paused(&self, object: &SimMachinePool, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = observe::cluster_of(object, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, SimMachinePool::KIND.kind))
    }

    async fn observe(&self, object: &Arc<SimMachinePool>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}

/// The infrastructure of a MachinePool, if it is a SimMachinePool.
fn infrastructure_of(pool: &MachinePool) -> Option<Key> {
    let reference = &pool.spec.template.spec.infrastructure_ref;
    let kind = SimMachinePool::KIND;
    let ours = reference.kind == kind.kind && reference.api_group == kind.group;
    ours.then(|| Key::new(pool.metadata.namespace.as_str(), reference.name.as_str()))
}

/// The pool of a Machine that changed in what the pool reads of it.
fn pool_of_machine(change: &Change<Machine>, caches: &Caches) -> Vec<Key> {
    let matters = |machine: &Arc<Machine>| {
        (machine.metadata.is_deleting(), member::is_ready(machine), member::is_unwanted(machine))
    };
    if change.old.as_ref().map(matters) == change.new.as_ref().map(matters) {
        return Vec::new();
    }
    let Some(machine) = change.latest() else { return Vec::new() };
    let owner = machine.metadata.controller().filter(|owner| owner.kind == MachinePool::KIND.kind);
    let Some(owner) = owner else { return Vec::new() };
    let pool = caches.get::<MachinePool>(&Key::new(change.key.namespace.as_str(), owner.name.as_str()));
    pool.ok().flatten().and_then(|pool| infrastructure_of(&pool)).into_iter().collect()
}

fn of_cluster(caches: &Caches, cluster: &Key) -> Vec<Key> {
    let pools = caches
        .of::<SimMachinePool>()
        .and_then(|pools| pools.labelled(&cluster.namespace, label::CLUSTER_NAME, &cluster.name));
    pools.unwrap_or_default().iter().map(|pool| pool.key()).collect()
}
