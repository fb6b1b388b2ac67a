//! What a decision about a SimMachinePool is based on.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, MachinePool, label};
use capstan_controller::{ObserveError, View};
use capstan_object::{Key, Object};

use crate::types::{SimMachine, SimMachinePool};

/// A machine of the pool.
#[derive(Debug, Clone)]
pub struct Member {
    pub infrastructure: Arc<SimMachine>,
    /// The Machine that the MachinePool keeps for it.
    pub machine: Option<Arc<Machine>>,
}

/// Observed state besides the SimMachinePool.
#[derive(Debug, Default)]
pub struct Seen {
    /// The MachinePool that owns it.
    pub pool: Option<Arc<MachinePool>>,
    pub cluster: Option<Arc<Cluster>>,
    /// Sorted by name.
    pub members: Vec<Member>,
    /// Machines whose SimMachine is gone.
    pub abandoned: Vec<Arc<Machine>>,
}

/// The cluster of the MachinePool, or else of the label.
pub(super) fn cluster_of(object: &SimMachinePool, view: &View) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let meta = &object.metadata;
    let pool = owners::of::<MachinePool>(meta, view)?;
    let label = meta.labels.get(label::CLUSTER_NAME);
    let Some(name) = pool.as_ref().map(|pool| &pool.spec.cluster_name).or(label) else { return Ok(None) };
    view.get(&Key::new(meta.namespace.as_str(), name.as_str()))
}

pub(super) fn observe(object: &Arc<SimMachinePool>, view: &View) -> Result<Seen, ObserveError> {
    let meta = &object.metadata;
    let mut seen = Seen {
        pool: owners::of::<MachinePool>(meta, view)?,
        cluster: cluster_of(object, view)?,
        ..Seen::default()
    };
    let mut owned = view.owned_by::<SimMachine>(&meta.uid)?;
    let mut machines = Vec::new();
    if let Some(pool) = &seen.pool {
        let value = label::value(&pool.metadata.name);
        // After a restore they may have lost their owner.
        let mut orphans = view.labelled::<SimMachine>(&meta.namespace, label::POOL_NAME, &value)?;
        orphans.retain(|machine| {
            let metadata = &machine.metadata;
            metadata.labels.get(label::CLUSTER_NAME) == Some(&pool.spec.cluster_name)
                && !metadata.owner_references.iter().any(|owner| owner.kind == SimMachinePool::KIND.kind)
        });
        owned.extend(orphans);
        machines = view.labelled::<Machine>(&meta.namespace, label::POOL_NAME, &value)?;
        machines.retain(|machine| {
            let reference = &machine.spec.infrastructure_ref;
            machine.metadata.is_owned_by(&pool.metadata.uid)
                && reference.kind == SimMachine::KIND.kind
                && reference.api_group == SimMachine::KIND.group
        });
    }
    owned.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for infrastructure in owned {
        let name = &infrastructure.metadata.name;
        let at = machines.iter().position(|machine| machine.spec.infrastructure_ref.name == *name);
        let machine = at.map(|at| machines.swap_remove(at));
        seen.members.push(Member { infrastructure, machine });
    }
    seen.abandoned = machines;
    Ok(seen)
}
