//! What the destruction of a machine takes along.

use capstan_cloudstack_client::commands::ListVolumes;
use capstan_cloudstack_client::model::{MachineState, Volume, VolumeState};
use capstan_cloudstack_client::{Error, VirtualMachineId, VolumeId};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use tokio::time::Instant;

use super::recent::Recent;
use super::{Instance, Seen, naming};
use crate::annotation;
use crate::clouds::Access;
use crate::error::CloudError;

/// How a machine is destroyed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Teardown {
    /// The account may expunge machines.
    pub expunge: bool,
    /// The data disk that the machine was ordered with. Volumes that somebody attached later stay.
    pub disks: Vec<VolumeId>,
    /// Data disks of a machine that is gone: whoever destroyed it left them.
    pub left: Vec<VolumeId>,
}

/// The machine was ordered with a data disk.
pub(super) fn has_disk(object: &CloudStackMachine) -> bool {
    let disk = &object.spec.disk_offering;
    !disk.id.is_empty() || !disk.name.is_empty()
}

/// Data disks on record; `None` if nobody has looked them up.
pub(crate) fn recorded(object: &CloudStackMachine) -> Option<Vec<VolumeId>> {
    let ids = object.metadata.annotations.get(annotation::DISKS)?;
    Some(ids.split(',').filter(|id| !id.is_empty()).map(Into::into).collect())
}

/// Records the data disks that go with a machine.
pub(super) fn record(object: &mut CloudStackMachine, disks: &[VolumeId]) {
    let ids: Vec<&str> = disks.iter().map(VolumeId::as_str).collect();
    object.metadata.annotations.insert(annotation::DISKS.to_owned(), ids.join(","));
}

/// A data disk that came with a machine: CloudStack calls it DATA and the machine's number.
pub(crate) fn comes_along(name: &str) -> bool {
    name.strip_prefix("DATA-").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The data disks that a machine was ordered with and still has. One that its user detached is the user's.
pub(super) async fn disks(
    id: &VirtualMachineId,
    access: &Access,
    recent: &Recent<Vec<VolumeId>>,
) -> Result<Vec<VolumeId>, Error> {
    if let Some(disks) = recent.get(id.as_str()) {
        return Ok(disks);
    }
    let question = ListVolumes {
        virtualmachineid: Some(id.clone()),
        r#type: Some("DATADISK".to_owned()),
        scope: access.scope(),
        ..ListVolumes::default()
    };
    let asked = Instant::now();
    let found = access.client.list(&question).await?;
    let ours = found.into_iter().filter(|volume| volume.name.as_deref().is_some_and(comes_along));
    let disks: Vec<VolumeId> = ours.map(|volume| volume.id).collect();
    recent.put(id.as_str(), asked, disks.clone());
    Ok(disks)
}

/// Those of the recorded disks that are still there, that no machine has and that nobody tagged. Users can write the record,
/// so that a volume with another name than CloudStack gives to disks of machines does not count. Nothing distinguishes a disk that
/// was detached before somebody destroyed the machine from one that the destruction detached: a tag on it says that it is
/// kept.
async fn left(object: &CloudStackMachine, access: &Access) -> Result<Vec<VolumeId>, Error> {
    let recorded = recorded(object).unwrap_or_default();
    if recorded.is_empty() {
        return Ok(Vec::new());
    }
    let question =
        ListVolumes { r#type: Some("DATADISK".to_owned()), scope: access.scope(), ..ListVolumes::default() };
    let found = access.client.list(&question).await?;
    let free = |volume: &Volume| {
        let there = matches!(volume.state, Some(VolumeState::Ready | VolumeState::Allocated));
        let named = volume.name.as_deref().is_some_and(comes_along);
        let kept = volume.virtualmachineid.is_some() || !volume.tags.is_empty();
        there && named && !kept && recorded.contains(&volume.id)
    };
    Ok(found.into_iter().filter(free).map(|volume| volume.id).collect())
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
        Instance::Gone if (deleting || !ran) && (seen.network.is_some() || recorded(object).is_some()) => {
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
    // Nothing more is done about a machine that is destroyed and cannot be expunged, but about what it left.
    if matches!(seen, Instance::Gone) || destroyed && !expunge {
        let left = left(object, access).await.map_err(explain)?;
        return Ok(Teardown { expunge, left, ..Teardown::default() });
    }
    if !has_disk(object) {
        return Ok(Teardown { expunge, ..Teardown::default() });
    }
    let mut disks = disks(&id, access, recent).await.map_err(explain)?;
    // Disks of other machines have such names too, and may have been attached to this one.
    if let Some(recorded) = recorded(object) {
        disks.retain(|disk| recorded.contains(disk));
    }
    Ok(Teardown { expunge, disks, ..Teardown::default() })
}
