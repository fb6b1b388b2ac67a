//! Load balancer rules.

use serde::Serialize;

use super::Scope;
use crate::command::{jobs, lists};
use crate::id::{LoadBalancerRuleId, NetworkId, NoId, PublicIpAddressId, VirtualMachineId, ZoneId};
use crate::model::{Done, LoadBalancerMember, LoadBalancerRule, VirtualMachine};

/// Load balancer rules.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListLoadBalancerRules {
    /// The rule with this id.
    pub id: Option<LoadBalancerRuleId>,
    /// Rules with this name.
    pub name: Option<String>,
    /// On this address.
    pub publicipid: Option<PublicIpAddressId>,
    /// Of this network.
    pub networkid: Option<NetworkId>,
    /// That this machine is a member of.
    pub virtualmachineid: Option<VirtualMachineId>,
    /// In this zone.
    pub zoneid: Option<ZoneId>,
    /// Owner of the load balancer rules.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes a rule. Without a protocol it cannot be changed later.
#[derive(Debug, Clone, Serialize)]
pub struct CreateLoadBalancerRule {
    /// `roundrobin`, `leastconn` or `source`.
    pub algorithm: String,
    /// Name of the load balancer rule, not unique.
    pub name: String,
    /// Description of the load balancer rule.
    pub description: Option<String>,
    /// The port of the address.
    pub publicport: u16,
    /// The port of the members.
    pub privateport: u16,
    /// The address.
    pub publicipid: Option<PublicIpAddressId>,
    /// The network of the members.
    pub networkid: Option<NetworkId>,
    /// `tcp`, ….
    pub protocol: Option<String>,
    /// Who may use it; everybody if empty.
    pub cidrlist: Vec<String>,
    /// False: do not let everybody through the firewall. In a virtual private cloud there is none.
    pub openfirewall: Option<bool>,
}

/// Changes a rule.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateLoadBalancerRule {
    /// The rule.
    pub id: LoadBalancerRuleId,
    /// Another name.
    pub name: Option<String>,
    /// Another algorithm.
    pub algorithm: Option<String>,
    /// Description of the load balancer rule.
    pub description: Option<String>,
}

/// Deletes a rule, and the firewall rule that came with it.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteLoadBalancerRule {
    /// The rule.
    pub id: LoadBalancerRuleId,
}

/// Members of a rule.
#[derive(Debug, Clone, Serialize)]
pub struct ListLoadBalancerRuleInstances {
    /// The rule.
    pub id: LoadBalancerRuleId,
    /// False: machines that could become members.
    pub applied: Option<bool>,
}

/// Members of a rule and the addresses they are reached at.
#[derive(Debug, Clone, Serialize)]
pub struct ListLoadBalancerMembers {
    /// The rule.
    pub id: LoadBalancerRuleId,
    lbvmips: bool,
}

impl ListLoadBalancerMembers {
    /// Members of this rule.
    pub fn new(id: LoadBalancerRuleId) -> Self {
        Self { id, lbvmips: true }
    }
}

/// Adds members. One that is a member already fails the whole command.
#[derive(Debug, Clone, Serialize)]
pub struct AssignToLoadBalancerRule {
    /// The rule.
    pub id: LoadBalancerRuleId,
    /// The machines.
    pub virtualmachineids: Vec<VirtualMachineId>,
}

/// Removes members. Ones that are none count as removed.
#[derive(Debug, Clone, Serialize)]
pub struct RemoveFromLoadBalancerRule {
    /// The rule.
    pub id: LoadBalancerRuleId,
    /// The machines.
    pub virtualmachineids: Vec<VirtualMachineId>,
}

lists! {
    ListLoadBalancerRules: "listLoadBalancerRules" => "loadbalancerrule" LoadBalancerRule;
    ListLoadBalancerRuleInstances: "listLoadBalancerRuleInstances" => "loadbalancerruleinstance" VirtualMachine;
    ListLoadBalancerMembers: "listLoadBalancerRuleInstances" => "lbrulevmidip" LoadBalancerMember;
}
jobs! {
    CreateLoadBalancerRule: "createLoadBalancerRule" [LoadBalancerRuleId] => "loadbalancer" LoadBalancerRule;
    UpdateLoadBalancerRule: "updateLoadBalancerRule" [NoId] => "loadbalancer" LoadBalancerRule;
    DeleteLoadBalancerRule: "deleteLoadBalancerRule" [NoId] => Done;
    AssignToLoadBalancerRule: "assignToLoadBalancerRule" [NoId] => Done;
    RemoveFromLoadBalancerRule: "removeFromLoadBalancerRule" [NoId] => Done;
}
