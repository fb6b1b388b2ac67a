//! What a decision about a SimMachine depends on.

use std::sync::Arc;

use capstan_capi_core::infrastructure::{BootData, BootDataError, waits_for};
use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{ObserveError, View};
use capstan_guest::vm::Vm;
use capstan_object::Key;
use capstan_sim_site::Ground;

use super::{MACHINE_TAG, id_of};
use crate::site;
use crate::types::SimMachine;

/// What was seen beside the SimMachine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Machine that owns it.
    pub machine: Option<Arc<Machine>>,
    /// Its Cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The machine in the site.
    pub vm: Option<Vm>,
    /// What the machine is to boot with; `None` while none is to be made.
    pub boot_data: Option<Result<BootData, BootDataError>>,
}

/// The machine carries our mark.
pub(super) fn is_ours(vm: &Vm) -> bool {
    vm.tags.get(MACHINE_TAG).is_some_and(|id| *id == vm.id)
}

/// The cluster that an object belongs to, by its Machine or, without one, by its label.
pub(super) fn cluster_of(object: &SimMachine, view: &View) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let machine = owners::of::<Machine>(&object.metadata, view)?;
    let label = object.metadata.labels.get(label::CLUSTER_NAME);
    let Some(name) = machine.as_ref().map(|machine| &machine.spec.cluster_name).or(label) else {
        return Ok(None);
    };
    view.get(&Key::new(object.metadata.namespace.as_str(), name.as_str()))
}

pub(super) async fn observe(object: &SimMachine, view: &View, ground: &Ground) -> Result<Seen, ObserveError> {
    let mut seen = Seen {
        machine: owners::of::<Machine>(&object.metadata, view)?,
        cluster: cluster_of(object, view)?,
        vm: ground.vm(&id_of(object)).await.map_err(site::unseen)?,
        boot_data: None,
    };
    let unmade = seen.vm.is_none() && object.status.initialization.provisioned != Some(true);
    if let (Some(machine), Some(cluster)) = (&seen.machine, &seen.cluster)
        && unmade
        && !object.metadata.is_deleting()
        && waits_for(machine, cluster).is_none()
    {
        let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
        let key = Key::new(object.metadata.namespace.as_str(), secret);
        seen.boot_data = Some(BootData::observe(&key, view).await);
    }
    Ok(seen)
}
