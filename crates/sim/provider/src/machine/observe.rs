//! What a decision about a SimMachine is based on.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, MachinePool};
use capstan_controller::{ObserveError, View};
use capstan_guest::vm::Vm;
use capstan_provider_kit::decisions::{Silence, waits_for};
use capstan_provider_kit::{BootData, BootDataError, cluster_of_machine};
use capstan_sim_site::SiteHandle;

use super::id_of;
use crate::pool::VERSION;
use crate::site;
use crate::types::SimMachine;

/// Observed state besides the SimMachine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Machine that owns it.
    pub machine: Option<Arc<Machine>>,
    pub cluster: Option<Arc<Cluster>>,
    /// The machine in the site.
    pub vm: Option<Vm>,
    /// The site does not answer: whether there is a machine is not known.
    pub silence: Option<Silence>,
    /// Address of the site, if it is in another process.
    pub url: Option<Arc<str>>,
    /// The boot data; `None` while no machine is to be created.
    pub boot_data: Option<Result<BootData, BootDataError>>,
}

/// The Machine that owns it. A Machine of a pool has no boot data and no version of its own: it gets the pool's.
fn machine_of(object: &SimMachine, view: &View) -> Result<Option<Arc<Machine>>, ObserveError> {
    let Some(machine) = owners::of::<Machine>(&object.metadata, view)? else { return Ok(None) };
    let Some(pool) = owners::of::<MachinePool>(&machine.metadata, view)? else { return Ok(Some(machine)) };
    let mut machine = Arc::unwrap_or_clone(machine);
    let template = &pool.spec.template.spec;
    machine.spec.bootstrap.data_secret_name = template.bootstrap.data_secret_name.clone();
    let version = object.metadata.annotations.get(VERSION).unwrap_or(&template.version);
    machine.spec.version = version.clone();
    Ok(Some(Arc::new(machine)))
}

pub(super) async fn observe(
    object: &SimMachine,
    view: &View,
    site: &SiteHandle,
) -> Result<Seen, ObserveError> {
    let mut seen = Seen {
        machine: machine_of(object, view)?,
        cluster: cluster_of_machine(&object.metadata, view)?,
        ..Seen::default()
    };
    match site.vm(&id_of(object)).await {
        Ok(vm) => seen.vm = vm,
        Err(error) => seen.silence = Some(site::silence(&error).observed(&object.metadata)?),
    }
    let unmade =
        seen.vm.is_none() && seen.silence.is_none() && object.status.initialization.provisioned != Some(true);
    if let (Some(machine), Some(cluster)) = (&seen.machine, &seen.cluster)
        && unmade
        && !object.metadata.is_deleting()
        && waits_for(machine, cluster).is_none()
    {
        seen.boot_data = Some(BootData::of_machine(machine, view).await);
    }
    Ok(seen)
}
