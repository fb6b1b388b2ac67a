//! Volumes.

use serde::Serialize;

use super::{Owner, Scope, TagPair};
use crate::command::{calls, jobs, lists};
use crate::id::{DiskOfferingId, NoId, VirtualMachineId, VolumeId, ZoneId};
use crate::model::{Done, Volume};

/// Volumes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListVolumes {
    /// The volume with this id.
    pub id: Option<VolumeId>,
    /// Volumes with this name.
    pub name: Option<String>,
    /// `ROOT` or `DATADISK`.
    pub r#type: Option<String>,
    /// Of this machine.
    pub virtualmachineid: Option<VirtualMachineId>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// With any of these tags.
    pub tags: Vec<TagPair>,
    /// Owner of the volumes.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a volume. It takes no room until it is attached.
#[derive(Debug, Clone, Serialize)]
pub struct CreateVolume {
    /// Name of the volume, not unique.
    pub name: Option<String>,
    /// Offering of the volume.
    pub diskofferingid: DiskOfferingId,
    /// Gigabytes, if the offering leaves that open.
    pub size: Option<u64>,
    /// Where.
    pub zoneid: ZoneId,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes a volume that no machine has. Answers at once.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteVolume {
    /// The volume.
    pub id: VolumeId,
}

/// Gives a volume to a machine.
#[derive(Debug, Clone, Serialize)]
pub struct AttachVolume {
    /// The volume.
    pub id: VolumeId,
    /// The machine.
    pub virtualmachineid: VirtualMachineId,
    /// Position in the machine.
    pub deviceid: Option<u32>,
}

/// Takes a volume from its machine.
#[derive(Debug, Clone, Serialize)]
pub struct DetachVolume {
    /// The volume.
    pub id: VolumeId,
}

lists! { ListVolumes: "listVolumes" => "volume" Volume; }
calls! { DeleteVolume: "deleteVolume" => Done; }
jobs! {
    CreateVolume: "createVolume" [VolumeId] => "volume" Volume;
    AttachVolume: "attachVolume" [NoId] => "volume" Volume;
    DetachVolume: "detachVolume" [NoId] => "volume" Volume;
}
