//! What a decision about a KVMMachine is based on.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::{ObserveError, View};
use capstan_provider_kit::decisions::Silence;
use capstan_provider_kit::{BootData, BootDataError, cluster_of_machine, infrastructure_of_cluster};

use super::prerequisites;
use crate::backend::{Id, Instance, Phase};
use crate::cluster;
use crate::types::{KVMCluster, KVMMachine};

/// Observed state besides the KVMMachine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Machine that owns it.
    pub machine: Option<Arc<Machine>>,
    pub cluster: Option<Arc<Cluster>>,
    pub network: Option<Id>,
    /// The machine on this host.
    pub instance: Option<Instance>,
    /// The host does not answer: whether there is a machine is not known.
    pub silence: Option<Silence>,
    /// The boot data; `None` while no machine is to be created.
    pub boot_data: Option<Result<BootData, BootDataError>>,
}

pub(super) fn observe(object: &KVMMachine, view: &View) -> Result<Seen, ObserveError> {
    let cluster = cluster_of_machine(&object.metadata, view)?;
    let key = cluster.as_deref().and_then(infrastructure_of_cluster::<KVMCluster>);
    let infrastructure = match key {
        Some(key) => view.get::<KVMCluster>(&key)?,
        None => None,
    };
    Ok(Seen {
        machine: owners::of::<Machine>(&object.metadata, view)?,
        network: infrastructure.and_then(|it| cluster::network_of(&it).try_into().ok()),
        cluster,
        ..Seen::default()
    })
}

/// Reads the boot data of a machine that may have to be created.
pub(super) async fn boot_data(object: &KVMMachine, seen: &mut Seen, view: &View) {
    let runs = seen.instance.as_ref().is_some_and(|it| it.phase != Phase::Stopped);
    let made = runs || object.status.initialization.provisioned == Some(true);
    if let (Some(machine), Some(cluster)) = (&seen.machine, &seen.cluster)
        && !made
        && seen.silence.is_none()
        && !object.metadata.is_deleting()
        && prerequisites::waits(seen, machine, cluster).is_none()
    {
        seen.boot_data = Some(BootData::of_machine(machine, view).await);
    }
}
