//! Firewall rules: what comes in to an address, what goes out of a network, and both on routed networks.

use serde::Serialize;

use super::Scope;
use crate::command::{jobs, lists};
use crate::id::{FirewallRuleId, NetworkId, NoId, PublicIpAddressId};
use crate::model::{Done, FirewallRule};

/// What comes in.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListFirewallRules {
    /// The rule with this id.
    pub id: Option<FirewallRuleId>,
    /// On this address.
    pub ipaddressid: Option<PublicIpAddressId>,
    /// On addresses of this network.
    pub networkid: Option<NetworkId>,
    /// Owner of the firewall rules.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Lets something in. No sources: everybody; no ports: all.
#[derive(Debug, Clone, Serialize)]
pub struct CreateFirewallRule {
    /// The address.
    pub ipaddressid: PublicIpAddressId,
    /// `tcp`, `udp` or `icmp`.
    pub protocol: String,
    /// First port.
    pub startport: Option<u16>,
    /// Last port; the first if none.
    pub endport: Option<u16>,
    /// Sources.
    pub cidrlist: Vec<String>,
    /// Type of ICMP, -1 for all.
    pub icmptype: Option<i32>,
    /// Code of ICMP, -1 for all.
    pub icmpcode: Option<i32>,
}

/// Lets it in no longer.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteFirewallRule {
    /// The rule.
    pub id: FirewallRuleId,
}

/// What goes out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListEgressFirewallRules {
    /// The rule with this id.
    pub id: Option<FirewallRuleId>,
    /// Of this network.
    pub networkid: Option<NetworkId>,
    /// Owner of the egress firewall rules.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Lets something out, or stops it where everything may go out.
#[derive(Debug, Clone, Serialize)]
pub struct CreateEgressFirewallRule {
    /// The network.
    pub networkid: NetworkId,
    /// `tcp`, `udp`, `icmp` or `all`.
    pub protocol: String,
    /// First port.
    pub startport: Option<u16>,
    /// Last port; the first if none.
    pub endport: Option<u16>,
    /// Sources, in the network.
    pub cidrlist: Vec<String>,
    /// Targets.
    pub destcidrlist: Vec<String>,
    /// Type of ICMP, -1 for all.
    pub icmptype: Option<i32>,
    /// Code of ICMP, -1 for all.
    pub icmpcode: Option<i32>,
}

/// Takes a rule about what goes out back.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteEgressFirewallRule {
    /// The rule.
    pub id: FirewallRuleId,
}

/// Rules of a routed network.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListRoutingFirewallRules {
    /// The rule with this id.
    pub id: Option<FirewallRuleId>,
    /// Of this network.
    pub networkid: Option<NetworkId>,
    /// Owner of the routing firewall rules.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a rule of a routed network.
#[derive(Debug, Clone, Serialize)]
pub struct CreateRoutingFirewallRule {
    /// The network.
    pub networkid: NetworkId,
    /// `tcp`, `udp`, `icmp` or `all`.
    pub protocol: String,
    /// First port.
    pub startport: Option<u16>,
    /// Last port; the first if none.
    pub endport: Option<u16>,
    /// Sources.
    pub cidrlist: Vec<String>,
    /// Targets.
    pub destcidrlist: Vec<String>,
    /// Type of ICMP, -1 for all.
    pub icmptype: Option<i32>,
    /// Code of ICMP, -1 for all.
    pub icmpcode: Option<i32>,
    /// `ingress` or `egress`.
    pub traffictype: Option<String>,
}

/// Takes a rule of a routed network back.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteRoutingFirewallRule {
    /// The rule.
    pub id: FirewallRuleId,
}

lists! {
    ListFirewallRules: "listFirewallRules" => "firewallrule" FirewallRule;
    ListEgressFirewallRules: "listEgressFirewallRules" => "firewallrule" FirewallRule;
    ListRoutingFirewallRules: "listRoutingFirewallRules" => "firewallrule" FirewallRule;
}
jobs! {
    CreateFirewallRule: "createFirewallRule" [FirewallRuleId] => "firewallrule" FirewallRule;
    DeleteFirewallRule: "deleteFirewallRule" [NoId] => Done;
    CreateEgressFirewallRule: "createEgressFirewallRule" [FirewallRuleId] => "firewallrule" FirewallRule;
    DeleteEgressFirewallRule: "deleteEgressFirewallRule" [NoId] => Done;
    CreateRoutingFirewallRule: "createRoutingFirewallRule" [FirewallRuleId] => "firewallrule" FirewallRule;
    DeleteRoutingFirewallRule: "deleteRoutingFirewallRule" [NoId] => Done;
}
