//! Networks and virtual private clouds.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Tag, words};
use crate::id::{AclId, DomainId, NetworkId, NetworkOfferingId, ProjectId, VpcId, VpcOfferingId, ZoneId};
use crate::loose;

words! {
    /// How a network is shut off from others.
    GuestType {
        /// One account's own, behind a router.
        Isolated = "Isolated",
        /// Of several accounts.
        Shared = "Shared",
        /// Without addresses of its own.
        L2 = "L2",
    }
}

words! {
    /// What a network is doing.
    NetworkState {
        /// On paper only: until the first machine starts, and again some time after the last one stopped.
        Allocated = "Allocated",
        /// Prepared, for networks without a router.
        Setup = "Setup",
        /// Its router is being started.
        Implementing = "Implementing",
        /// Up.
        Implemented = "Implemented",
        /// Going down.
        Shutdown = "Shutdown",
        /// Deleted.
        Destroy = "Destroy",
    }
}

/// Something a network can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkService {
    /// `Lb`, `Firewall`, `SourceNat`, `UserData`, ….
    pub name: String,
    /// Who provides it.
    #[serde(default)]
    pub provider: Vec<ServiceProvider>,
}

/// Who provides a service of networks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProvider {
    /// `VirtualRouter`, `VpcVirtualRouter`, `Nsx`, ….
    pub name: String,
}

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Id of the network.
    pub id: NetworkId,
    /// Name of the network, not unique.
    pub name: Option<String>,
    /// Description of the network.
    pub displaytext: Option<String>,
    /// How it is shut off.
    pub r#type: Option<GuestType>,
    /// What it is doing.
    pub state: Option<NetworkState>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// CIDR of the network.
    pub cidr: Option<String>,
    /// Gateway.
    pub gateway: Option<IpAddr>,
    /// Netmask.
    pub netmask: Option<String>,
    /// Offering of the network.
    pub networkofferingid: Option<NetworkOfferingId>,
    /// The offering's name.
    pub networkofferingname: Option<String>,
    /// Whether machines may reach out before a rule says so.
    #[serde(default, deserialize_with = "loose::maybe_truth")]
    pub egressdefaultpolicy: Option<bool>,
    /// The virtual private cloud it is a tier of.
    pub vpcid: Option<VpcId>,
    /// The name of that.
    pub vpcname: Option<String>,
    /// Its access list, for tiers.
    pub aclid: Option<AclId>,
    /// The name of that.
    pub aclname: Option<String>,
    /// `Static` or `Dynamic` on routed networks.
    pub ip4routing: Option<String>,
    /// Whether machines can be put into it.
    #[serde(default, deserialize_with = "loose::truth")]
    pub canusefordeploy: bool,
    /// The domain of host names in it.
    pub networkdomain: Option<String>,
    /// Account that owns the network.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// What it can do.
    #[serde(default)]
    pub service: Vec<NetworkService>,
    /// Tags of the network.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

impl Network {
    /// Whether it offers a service, such as `Lb`.
    pub fn offers(&self, service: &str) -> bool {
        self.service.iter().any(|offered| offered.name == service)
    }
}

/// A rule of an access list. The lowest number that is about a packet counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkAclRule {
    /// Id of the network ACL rule.
    pub id: String,
    /// Number of the network ACL rule.
    #[serde(default, deserialize_with = "loose::number")]
    pub number: Option<i64>,
    /// `Ingress` or `Egress`.
    pub traffictype: Option<String>,
    /// `Allow` or `Deny`.
    pub action: Option<String>,
    /// `tcp`, `udp`, `icmp`, `all` or a number.
    pub protocol: Option<String>,
    /// First port; absent for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub startport: Option<u16>,
    /// Last port; absent for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub endport: Option<u16>,
    /// Sources of what comes in, targets of what goes out, separated by commas.
    pub cidrlist: Option<String>,
    /// Its list.
    pub aclid: Option<AclId>,
}

/// An access list of tiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkAclList {
    /// Id of the network ACL list.
    pub id: AclId,
    /// Name of the network ACL list.
    pub name: Option<String>,
}

words! {
    /// What a virtual private cloud is doing.
    VpcState {
        /// Usable.
        Enabled = "Enabled",
        /// Deleted or going.
        Inactive = "Inactive",
    }
}

/// A virtual private cloud. Look-ups by name find every name that contains the one asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vpc {
    /// Id of the VPC.
    pub id: VpcId,
    /// Name of the VPC.
    pub name: Option<String>,
    /// Description of the VPC.
    pub displaytext: Option<String>,
    /// CIDR of the VPC.
    pub cidr: Option<String>,
    /// What it is doing.
    pub state: Option<VpcState>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// Offering of the VPC.
    pub vpcofferingid: Option<VpcOfferingId>,
    /// The offering's name.
    pub vpcofferingname: Option<String>,
    /// Account that owns the VPC.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// Tiers of the VPC.
    #[serde(default)]
    pub network: Vec<Network>,
    /// Tags of the VPC.
    #[serde(default)]
    pub tags: Vec<Tag>,
}
