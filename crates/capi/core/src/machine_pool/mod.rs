//! MachinePool: machines that their infrastructure keeps as one group.
//!
//! ```text
//! MachinePool ─ owns ─▶ bootstrap config: one data Secret for all machines
//!      │      ─ owns ─▶ infrastructure pool: creates and deletes machines, reports their providerIDs
//!      └ a Machine for each infrastructure machine, if the provider reports such a kind
//! ```
//!
//! Owns: its finalizer, its status, `spec.providerIDList` and the name of the data Secret; the controlling owner
//! reference of its bootstrap config and infrastructure; Machines for infrastructure machines, and their `UpToDate`
//! condition; annotations of Nodes that have no Machine. Reads: its Cluster, the provider's objects through the contract,
//! its Nodes. On deletion: infrastructure and bootstrap config, Machines that are left, Nodes, finalizer.

mod decide;
mod deletion;
mod desired;
mod nodes;
mod observe;
mod observed;
mod status;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use capstan_capi_types::core::{Cluster, Machine, MachinePool, label};
use capstan_controller::{
    Caches, Change, Controller, Decision, GATHER, Look, ObserveError, Outcome, View, Wake, Watches,
};
use capstan_object::{Key, Object};

pub use observed::{Observed, ObservedNodes};

use crate::conditions::v1beta1;
use crate::contract::Definition;
use crate::machine::MachineCall;
use crate::members::{CLUSTER, of_cluster};
use crate::paused;
use crate::workload::Nodes;

pub struct MachinePools {
    nodes: Arc<Nodes>,
    wake: OnceLock<Wake>,
}

impl MachinePools {
    /// `nodes` is shared with other controllers.
    pub fn new(nodes: Arc<Nodes>) -> Self {
        Self { nodes, wake: OnceLock::new() }
    }
}

impl Controller for MachinePools {
    const NAME: &'static str = "machinepool";
    type Kind = MachinePool;
    type Seen = Observed;
    type Call = MachineCall;

    fn watches(&self, watches: &mut Watches<MachinePool>) {
        self.wake.get_or_init(|| watches.wake());
        watches
            .read::<Definition>()
            .owned_within::<Machine>(GATHER)
            .related::<Machine>(adopters)
            .related::<Cluster>(|change, caches| match paused::concerns_members(change) {
                true => of_cluster::<MachinePool>(caches, &change.key),
                false => Vec::new(),
            })
            .index::<MachinePool>(CLUSTER, |pool| vec![pool.spec.cluster_name.clone()])
            .index_label::<Machine>(label::POOL_NAME);
    }

    fn conditions(&self) -> &[&'static str] {
        status::CONDITIONS
    }

    fn paused(&self, object: &MachinePool, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = view.get::<Cluster>(&cluster_of(object))?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, MachinePool::KIND.kind))
    }

    async fn observe(&self, object: &Arc<MachinePool>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(object, view, &self.nodes, self.wake.get()).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::MACHINE_POOL, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }

    async fn call(&self, call: &MachineCall, object: &Arc<MachinePool>, view: &View) -> Outcome {
        crate::machine::make(call, &cluster_of(object), view).await
    }

    fn gone(&self, key: &Key) {
        self.nodes.forget::<MachinePool>(key);
    }
}

fn cluster_of(pool: &MachinePool) -> Key {
    Key::new(pool.metadata.namespace.clone(), pool.spec.cluster_name.clone())
}

/// The pool that a Machine without a controller is labelled with: after a restore, pools adopt their machines.
fn adopters(change: &Change<Machine>, caches: &Caches) -> Vec<Key> {
    let Some(machine) = change.new.as_ref().filter(|machine| machine.metadata.controller().is_none()) else {
        return Vec::new();
    };
    let Some(pool) = machine.metadata.labels.get(label::POOL_NAME) else { return Vec::new() };
    let pools = of_cluster::<MachinePool>(
        caches,
        &Key::new(change.key.namespace.as_str(), machine.spec.cluster_name.as_str()),
    );
    pools.into_iter().filter(|key| label::value(&key.name) == *pool).collect()
}
