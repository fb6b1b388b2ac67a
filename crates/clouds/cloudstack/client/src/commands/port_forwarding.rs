//! Port forwarding rules.

use serde::Serialize;

use super::Scope;
use crate::command::{jobs, lists};
use crate::id::{NetworkId, NoId, PortForwardingRuleId, PublicIpAddressId, VirtualMachineId};
use crate::model::{Done, PortForwardingRule};

/// Port forwarding rules.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListPortForwardingRules {
    /// The rule with this id.
    pub id: Option<PortForwardingRuleId>,
    /// On this address.
    pub ipaddressid: Option<PublicIpAddressId>,
    /// Of this network.
    pub networkid: Option<NetworkId>,
    /// Owner of the port forwarding rules.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Forwards ports of an address to a machine.
#[derive(Debug, Clone, Serialize)]
pub struct CreatePortForwardingRule {
    /// The address.
    pub ipaddressid: PublicIpAddressId,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// First port of the address.
    pub publicport: u16,
    /// Last port of the address.
    pub publicendport: Option<u16>,
    /// First port of the machine.
    pub privateport: u16,
    /// Last port of the machine.
    pub privateendport: Option<u16>,
    /// The machine.
    pub virtualmachineid: VirtualMachineId,
    /// The network of the machine.
    pub networkid: Option<NetworkId>,
    /// False: do not let everybody through the firewall.
    pub openfirewall: Option<bool>,
    /// Who may connect, on an address of a VPC; everybody if empty.
    pub cidrlist: Vec<String>,
}

/// Forwards them no longer.
#[derive(Debug, Clone, Serialize)]
pub struct DeletePortForwardingRule {
    /// The rule.
    pub id: PortForwardingRuleId,
}

lists! { ListPortForwardingRules: "listPortForwardingRules" => "portforwardingrule" PortForwardingRule; }
jobs! {
    CreatePortForwardingRule: "createPortForwardingRule" [PortForwardingRuleId] =>
        "portforwardingrule" PortForwardingRule;
    DeletePortForwardingRule: "deletePortForwardingRule" [NoId] => Done;
}
