//! What can be ordered.

use serde::{Deserialize, Serialize};

use super::network::NetworkService;
use super::words;
use crate::id::{DiskOfferingId, NetworkOfferingId, ServiceOfferingId, VpcOfferingId};
use crate::loose;

/// Processors and memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceOffering {
    /// Id of the service offering.
    pub id: ServiceOfferingId,
    /// Name of the service offering.
    pub name: String,
    /// Description of the service offering.
    pub displaytext: Option<String>,
    /// Processors; absent if the machine says.
    #[serde(default, deserialize_with = "loose::number")]
    pub cpunumber: Option<u32>,
    /// Megahertz of each.
    #[serde(default, deserialize_with = "loose::number")]
    pub cpuspeed: Option<u32>,
    /// Megabytes; absent if the machine says.
    #[serde(default, deserialize_with = "loose::number")]
    pub memory: Option<u64>,
    /// The machine says how many.
    #[serde(default, deserialize_with = "loose::truth")]
    pub iscustomized: bool,
    /// Restarted elsewhere when its host fails.
    #[serde(default, deserialize_with = "loose::truth")]
    pub offerha: bool,
    /// Gigabytes of the root disk, if the offering says.
    #[serde(default, deserialize_with = "loose::number")]
    pub rootdisksize: Option<u64>,
    /// `shared` or `local`.
    pub storagetype: Option<String>,
    /// `Active` or `Inactive`.
    pub state: Option<String>,
}

/// A data disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskOffering {
    /// Id of the disk offering.
    pub id: DiskOfferingId,
    /// Name of the disk offering.
    pub name: String,
    /// Description of the disk offering.
    pub displaytext: Option<String>,
    /// Gigabytes; 0 or absent if the order says.
    #[serde(default, deserialize_with = "loose::number")]
    pub disksize: Option<u64>,
    /// The order says how large.
    #[serde(default, deserialize_with = "loose::truth")]
    pub iscustomized: bool,
    /// `shared` or `local`.
    pub storagetype: Option<String>,
    /// `Active` or `Inactive`.
    pub state: Option<String>,
}

words! {
    /// How packets leave a network.
    NetworkMode {
        /// With translated addresses.
        Natted = "NATTED",
        /// As they are.
        Routed = "ROUTED",
    }
}

/// A kind of network. Look-ups by name find every name that contains the one asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkOffering {
    /// Id of the network offering.
    pub id: NetworkOfferingId,
    /// Name of the network offering.
    pub name: String,
    /// `Isolated`, `Shared` or `L2`.
    pub guestiptype: Option<super::GuestType>,
    /// Only for tiers of a virtual private cloud.
    #[serde(default, deserialize_with = "loose::truth")]
    pub forvpc: bool,
    /// Only administrators may make networks of it, as they have to name a VLAN.
    #[serde(default, deserialize_with = "loose::truth")]
    pub specifyvlan: bool,
    /// Whether machines may reach out before a rule says so.
    #[serde(default, deserialize_with = "loose::maybe_truth")]
    pub egressdefaultpolicy: Option<bool>,
    /// Whether one address may have several services, such as source NAT and a load balancer.
    #[serde(default, deserialize_with = "loose::maybe_truth")]
    pub conservemode: Option<bool>,
    /// Translated or routed.
    pub networkmode: Option<NetworkMode>,
    /// `Enabled`, `Disabled` or `Inactive`.
    pub state: Option<String>,
    /// Whether CloudStack made it itself.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isdefault: bool,
    /// What its networks can do.
    #[serde(default)]
    pub service: Vec<NetworkService>,
}

/// A kind of virtual private cloud. Look-ups by name find every name that contains the one asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcOffering {
    /// Id of the VPC offering.
    pub id: VpcOfferingId,
    /// Name of the VPC offering.
    pub name: String,
    /// `Enabled`, `Disabled` or `Inactive`.
    pub state: Option<String>,
    /// Whether CloudStack made it itself.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isdefault: bool,
    /// Translated or routed.
    pub networkmode: Option<NetworkMode>,
    /// What its tiers can do.
    #[serde(default)]
    pub service: Vec<NetworkService>,
}
