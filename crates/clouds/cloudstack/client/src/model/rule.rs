//! Rules on public addresses and networks.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Tag, VirtualMachine, words};
use crate::id::{
    DomainId, FirewallRuleId, LoadBalancerRuleId, NetworkId, PortForwardingRuleId, ProjectId,
    PublicIpAddressId, VirtualMachineId, ZoneId,
};
use crate::loose;

words! {
    /// Whether a rule is in force.
    RuleState {
        /// Written down.
        Staged = "Staged",
        /// Accepted. A load balancer stays so until its first member is assigned.
        Add = "Add",
        /// In force.
        Active = "Active",
        /// Being taken back.
        Revoke = "Revoke",
        /// Being deleted.
        Deleting = "Deleting",
    }
}

/// A load balancer rule: one port of a public address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancerRule {
    /// Id of the load balancer rule.
    pub id: LoadBalancerRuleId,
    /// Name of the load balancer rule, not unique.
    pub name: Option<String>,
    /// `roundrobin`, `leastconn` or `source`.
    pub algorithm: Option<String>,
    /// The port of the address.
    #[serde(default, deserialize_with = "loose::number")]
    pub publicport: Option<u16>,
    /// The port of the members.
    #[serde(default, deserialize_with = "loose::number")]
    pub privateport: Option<u16>,
    /// `tcp`, …; absent if none was given.
    pub protocol: Option<String>,
    /// The address.
    pub publicip: Option<IpAddr>,
    /// The address's id.
    pub publicipid: Option<PublicIpAddressId>,
    /// The network of the members.
    pub networkid: Option<NetworkId>,
    /// Who may use it, separated by spaces although given with commas.
    pub cidrlist: Option<String>,
    /// Whether it is in force.
    pub state: Option<RuleState>,
    /// Where it is.
    pub zoneid: Option<ZoneId>,
    /// Account that owns the load balancer rule.
    pub account: Option<String>,
    /// The domain of that account.
    pub domainid: Option<DomainId>,
    /// The project, if it is in one.
    pub projectid: Option<ProjectId>,
    /// Tags of the load balancer rule.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

/// A member of a load balancer rule, with the addresses it is reached at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancerMember {
    /// The machine.
    pub loadbalancerruleinstance: VirtualMachine,
    /// IP addresses of the load balancer member.
    #[serde(default)]
    pub lbvmipaddresses: Vec<IpAddr>,
}

/// A firewall rule, for what comes in or what goes out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// Id of the firewall rule.
    pub id: FirewallRuleId,
    /// `tcp`, `udp`, `icmp` or `all`.
    pub protocol: Option<String>,
    /// First port; absent for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub startport: Option<u16>,
    /// Last port; absent for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub endport: Option<u16>,
    /// Type of ICMP, -1 for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub icmptype: Option<i32>,
    /// Code of ICMP, -1 for all.
    #[serde(default, deserialize_with = "loose::number")]
    pub icmpcode: Option<i32>,
    /// Sources, separated by commas.
    pub cidrlist: Option<String>,
    /// Targets, separated by commas, of what goes out.
    pub destcidrlist: Option<String>,
    /// The address, of what comes in.
    pub ipaddressid: Option<PublicIpAddressId>,
    /// The network.
    pub networkid: Option<NetworkId>,
    /// Whether it is in force.
    pub state: Option<RuleState>,
    /// `Ingress` or `Egress`.
    pub traffictype: Option<String>,
    /// Tags of the firewall rule.
    #[serde(default)]
    pub tags: Vec<Tag>,
}

/// A port forwarding rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortForwardingRule {
    /// Id of the port forwarding rule.
    pub id: PortForwardingRuleId,
    /// `tcp` or `udp`.
    pub protocol: Option<String>,
    /// First port of the address.
    #[serde(default, deserialize_with = "loose::number")]
    pub publicport: Option<u16>,
    /// Last port of the address.
    #[serde(default, deserialize_with = "loose::number")]
    pub publicendport: Option<u16>,
    /// First port of the machine.
    #[serde(default, deserialize_with = "loose::number")]
    pub privateport: Option<u16>,
    /// Last port of the machine.
    #[serde(default, deserialize_with = "loose::number")]
    pub privateendport: Option<u16>,
    /// The address.
    pub ipaddressid: Option<PublicIpAddressId>,
    /// The machine.
    pub virtualmachineid: Option<VirtualMachineId>,
    /// The machine's address.
    pub vmguestip: Option<IpAddr>,
    /// The network.
    pub networkid: Option<NetworkId>,
    /// Sources.
    pub cidrlist: Option<String>,
    /// Whether it is in force.
    pub state: Option<RuleState>,
    /// Tags of the port forwarding rule.
    #[serde(default)]
    pub tags: Vec<Tag>,
}
