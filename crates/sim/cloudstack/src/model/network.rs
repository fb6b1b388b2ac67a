//! Networks, addresses and rules.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::compute::Vm;
use super::identity::Account;
use super::place::{NetworkOffering, VpcOffering, Zone};
use super::table::Key;

/// A guest network.
pub(crate) struct Network {
    pub(crate) name: String,
    pub(crate) display_text: String,
    pub(crate) account: Key<Account>,
    pub(crate) zone: Key<Zone>,
    pub(crate) offering: Key<NetworkOffering>,
    pub(crate) state: NetworkState,
    pub(crate) cidr: Option<Ipv4Net>,
    pub(crate) gateway: Option<Ipv4Addr>,
    pub(crate) vlan: Option<u32>,
    pub(crate) vpc: Option<Key<Vpc>>,
    pub(crate) acl: Option<Key<Acl>>,
    /// Nics that it ever had: the last byte of the next MAC address.
    pub(crate) nics: u32,
}

/// How far a network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkState {
    Allocated,
    Implemented,
    Shutdown,
}

impl NetworkState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Allocated => "Allocated",
            Self::Implemented => "Implemented",
            Self::Shutdown => "Shutdown",
        }
    }
}

/// An address of a zone's public range.
pub(crate) struct PublicIp {
    pub(crate) zone: Key<Zone>,
    pub(crate) address: Ipv4Addr,
    pub(crate) held: Option<HeldIp>,
}

/// Who holds an address.
pub(crate) struct HeldIp {
    pub(crate) account: Key<Account>,
    pub(crate) allocated: jiff::Timestamp,
    pub(crate) network: Option<Key<Network>>,
    pub(crate) vpc: Option<Key<Vpc>>,
    pub(crate) source_nat: bool,
    pub(crate) state: &'static str,
    /// A system VM has it; nobody is shown it.
    pub(crate) system: bool,
    /// Machine that every packet goes to.
    pub(crate) static_nat: Option<Key<Vm>>,
}

/// Ports, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) start: u16,
    pub(crate) end: u16,
}

impl Ports {
    pub(crate) fn overlap(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// A load balancer rule.
pub(crate) struct LbRule {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) account: Key<Account>,
    pub(crate) ip: Key<PublicIp>,
    pub(crate) network: Key<Network>,
    pub(crate) public_port: u16,
    pub(crate) private_port: u16,
    pub(crate) algorithm: String,
    pub(crate) protocol: Option<String>,
    pub(crate) cidrs: Option<String>,
    pub(crate) active: bool,
    pub(crate) members: Vec<Key<Vm>>,
}

/// A rule of the firewall. What comes in comes by an address, but for routed networks.
pub(crate) struct FirewallRule {
    pub(crate) account: Key<Account>,
    pub(crate) network: Key<Network>,
    pub(crate) ip: Option<Key<PublicIp>>,
    pub(crate) egress: bool,
    pub(crate) protocol: String,
    pub(crate) ports: Option<Ports>,
    pub(crate) icmp: Option<(i64, i64)>,
    pub(crate) cidrs: Vec<String>,
    pub(crate) destinations: Vec<String>,
    /// The rule that it was opened for, and goes with.
    pub(crate) opened_for: Option<OpenedFor>,
}

/// A rule that opened the firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenedFor {
    LoadBalancer(Key<LbRule>),
    PortForwarding(Key<PortForwarding>),
}

/// A port of an address that leads to a machine.
pub(crate) struct PortForwarding {
    pub(crate) account: Key<Account>,
    pub(crate) ip: Key<PublicIp>,
    pub(crate) network: Key<Network>,
    pub(crate) vm: Key<Vm>,
    pub(crate) protocol: String,
    pub(crate) public: Ports,
    pub(crate) private: Ports,
    /// Who may connect; everybody if empty. In force on addresses of VPCs only.
    pub(crate) cidrs: Vec<String>,
}

pub(crate) struct Vpc {
    pub(crate) name: String,
    pub(crate) display_text: String,
    pub(crate) account: Key<Account>,
    pub(crate) zone: Key<Zone>,
    pub(crate) cidr: Ipv4Net,
    pub(crate) offering: Key<VpcOffering>,
}

/// An access list of tiers; without a VPC it is for all of them.
pub(crate) struct Acl {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) vpc: Option<Key<Vpc>>,
}

/// A rule of an access list. The first that matches counts.
pub(crate) struct AclRule {
    pub(crate) acl: Key<Acl>,
    pub(crate) number: i64,
    pub(crate) egress: bool,
    pub(crate) allow: bool,
    pub(crate) protocol: String,
    pub(crate) ports: Option<Ports>,
    pub(crate) icmp: Option<(i64, i64)>,
    pub(crate) cidrs: Vec<String>,
    pub(crate) reason: Option<String>,
}
