//! What a decision about a KVMMachine depends on.

use std::sync::Arc;

use capstan_capi_core::infrastructure::{BootData, BootDataError};
use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, Machine, label};
use capstan_controller::{ObserveError, View};
use capstan_object::Key;

use super::decide;
use crate::backend::{Id, Instance, Phase};
use crate::cluster;
use crate::types::{KVMCluster, KVMMachine};

/// What was seen beside the KVMMachine.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Machine that owns it.
    pub machine: Option<Arc<Machine>>,
    /// Its Cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The network it is to be in.
    pub network: Option<Id>,
    /// The machine on this host.
    pub instance: Option<Instance>,
    /// What the machine is to boot with; `None` while none is to be made.
    pub boot_data: Option<Result<BootData, BootDataError>>,
}

/// The cluster that an object belongs to, by its Machine or, without one, by its label.
pub(super) fn cluster_of(object: &KVMMachine, view: &View) -> Result<Option<Arc<Cluster>>, ObserveError> {
    let machine = owners::of::<Machine>(&object.metadata, view)?;
    let label = object.metadata.labels.get(label::CLUSTER_NAME);
    let Some(name) = machine.as_ref().map(|machine| &machine.spec.cluster_name).or(label) else {
        return Ok(None);
    };
    view.get(&Key::new(object.metadata.namespace.as_str(), name.as_str()))
}

pub(super) fn observe(object: &KVMMachine, view: &View) -> Result<Seen, ObserveError> {
    let cluster = cluster_of(object, view)?;
    let key = cluster.as_deref().and_then(cluster::infrastructure_of);
    let infrastructure = match key {
        Some(key) => view.get::<KVMCluster>(&key)?,
        None => None,
    };
    Ok(Seen {
        machine: owners::of::<Machine>(&object.metadata, view)?,
        network: infrastructure.and_then(|it| cluster::network_of(&it).try_into().ok()),
        cluster,
        instance: None,
        boot_data: None,
    })
}

/// Observes the boot data of a machine that may have to be made.
pub(super) async fn boot_data(object: &KVMMachine, seen: &mut Seen, view: &View) {
    let runs = seen.instance.as_ref().is_some_and(|it| it.phase != Phase::Stopped);
    let made = runs || object.status.initialization.provisioned == Some(true);
    if let (Some(machine), Some(cluster)) = (&seen.machine, &seen.cluster)
        && !made
        && !object.metadata.is_deleting()
        && decide::waits(seen, machine, cluster).is_none()
    {
        let secret = machine.spec.bootstrap.data_secret_name.clone().unwrap_or_default();
        let key = Key::new(object.metadata.namespace.as_str(), secret);
        seen.boot_data = Some(BootData::observe(&key, view).await);
    }
}
