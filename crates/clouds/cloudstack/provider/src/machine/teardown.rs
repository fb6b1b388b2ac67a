//! What the destruction of a machine takes along.

use capstan_cloudstack_client::commands::ListVolumes;
use capstan_cloudstack_client::model::MachineState;
use capstan_cloudstack_client::{Error, VirtualMachineId, VolumeId};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use tokio::time::Instant;

use super::recent::Recent;
use super::{Instance, Seen, naming};
use crate::clouds::Access;
use crate::error::CloudError;

/// How a machine is destroyed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Teardown {
    /// The account may expunge machines.
    pub expunge: bool,
    /// The data disk that the machine was ordered with. Volumes that somebody attached later stay.
    pub disks: Vec<VolumeId>,
}

/// The machine that may have to be destroyed, and whether it is destroyed already.
pub(super) fn due(object: &CloudStackMachine, seen: &Seen) -> Option<(VirtualMachineId, bool)> {
    let deleting = object.metadata.is_deleting();
    let ran = naming::ran(object, seen.machine.as_deref());
    match &seen.instance {
        Instance::There { machine, .. } => {
            let is = |state: MachineState| machine.state == Some(state);
            let destroyed = is(MachineState::Destroyed) || is(MachineState::Expunging);
            let asked = deleting || !ran && (destroyed || is(MachineState::Error));
            asked.then(|| (machine.id.clone(), destroyed))
        }
        // Accounts that may not expunge do not see it any more.
        Instance::Gone if (deleting || !ran) && seen.network.is_some() => {
            Some((object.spec.instance_id.as_deref()?.into(), true))
        }
        Instance::Failed(_) if !deleting => Some((object.spec.instance_id.as_deref()?.into(), false)),
        _ => None,
    }
}

pub(super) async fn observe(
    (id, destroyed): (VirtualMachineId, bool),
    object: &CloudStackMachine,
    seen: &Instance,
    access: &Access,
    recent: &Recent<Vec<VolumeId>>,
) -> Result<Teardown, CloudError> {
    let explain = |error: Error| access.explain(&error);
    let expunge = access.cache.may_expunge(&access.client).await.map_err(explain)?;
    let disk = &object.spec.disk_offering;
    let has_disk = !disk.id.is_empty() || !disk.name.is_empty();
    // Nothing more is done about a machine that is destroyed and cannot be expunged.
    let gone = matches!(seen, Instance::Gone);
    if !has_disk || gone || destroyed && !expunge {
        return Ok(Teardown { expunge, disks: Vec::new() });
    }
    if let Some(disks) = recent.get(id.as_str()) {
        return Ok(Teardown { expunge, disks });
    }
    let question = ListVolumes {
        virtualmachineid: Some(id.clone()),
        r#type: Some("DATADISK".to_owned()),
        scope: access.scope(),
        ..ListVolumes::default()
    };
    let asked = Instant::now();
    let found = access.client.list(&question).await.map_err(explain)?;
    // CloudStack calls the disk that comes with a machine DATA and its number.
    let comes_along = |name: &str| {
        name.strip_prefix("DATA-").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let ours = found.into_iter().filter(|volume| volume.name.as_deref().is_some_and(comes_along));
    let disks: Vec<VolumeId> = ours.map(|volume| volume.id).collect();
    recent.put(id.as_str(), asked, disks.clone());
    Ok(Teardown { expunge, disks })
}
