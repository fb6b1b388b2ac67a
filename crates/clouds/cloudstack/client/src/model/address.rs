//! Public addresses.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Tag, words};
use crate::id::{DomainId, NetworkId, ProjectId, PublicIpAddressId, VpcId, ZoneId};
use crate::loose;

words! {
    /// Who has an address.
    AddressState {
        /// Nobody.
        Free = "Free",
        /// Being taken.
        Allocating = "Allocating",
        /// Somebody.
        Allocated = "Allocated",
        /// Being given back.
        Releasing = "Releasing",
        /// Set aside.
        Reserved = "Reserved",
    }
}

/// A public address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicIpAddress {
    /// Id of the public IP address.
    pub id: PublicIpAddressId,
    /// The address.
    pub ipaddress: IpAddr,
    /// Who has it.
    pub state: Option<AddressState>,
    /// Since when somebody has it; absent if nobody.
    #[serde(default, with = "loose::time")]
    pub allocated: Option<Timestamp>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// The network it serves.
    pub associatednetworkid: Option<NetworkId>,
    /// The public network it comes from.
    pub networkid: Option<NetworkId>,
    /// The virtual private cloud it serves.
    pub vpcid: Option<VpcId>,
    /// The address behind which a network hides: it cannot be given back while the network exists.
    #[serde(default, deserialize_with = "loose::truth")]
    pub issourcenat: bool,
    /// All of it belongs to one machine.
    #[serde(default, deserialize_with = "loose::truth")]
    pub isstaticnat: bool,
    /// Whether any rule uses it.
    #[serde(default, deserialize_with = "loose::maybe_truth")]
    pub hasrules: Option<bool>,
    /// Account that owns the public IP address.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// Tags of the public IP address.
    #[serde(default)]
    pub tags: Vec<Tag>,
}
