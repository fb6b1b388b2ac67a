//! Volumes.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Tag, words};
use crate::id::{DiskOfferingId, DomainId, ProjectId, VirtualMachineId, VolumeId, ZoneId};
use crate::loose;

words! {
    /// What a volume is doing.
    VolumeState {
        /// On paper only, until it is attached for the first time.
        Allocated = "Allocated",
        /// Being made.
        Creating = "Creating",
        /// There.
        Ready = "Ready",
        /// Deleted, still taking room.
        Destroy = "Destroy",
        /// Its room is being given back.
        Expunging = "Expunging",
        /// Gone.
        Expunged = "Expunged",
    }
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Id of the volume.
    pub id: VolumeId,
    /// Name of the volume, not unique.
    pub name: Option<String>,
    /// `ROOT` or `DATADISK`.
    pub r#type: Option<String>,
    /// What it is doing.
    pub state: Option<VolumeState>,
    /// Bytes.
    #[serde(default, deserialize_with = "loose::number")]
    pub size: Option<u64>,
    /// The machine that has it.
    pub virtualmachineid: Option<VirtualMachineId>,
    /// Position in the machine.
    #[serde(default, deserialize_with = "loose::number")]
    pub deviceid: Option<u32>,
    /// Offering of the volume.
    pub diskofferingid: Option<DiskOfferingId>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// When it was made.
    #[serde(default, with = "loose::time")]
    pub created: Option<Timestamp>,
    /// Since when a machine has it.
    #[serde(default, with = "loose::time")]
    pub attached: Option<Timestamp>,
    /// Account that owns the volume.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// Tags of the volume.
    #[serde(default)]
    pub tags: Vec<Tag>,
}
