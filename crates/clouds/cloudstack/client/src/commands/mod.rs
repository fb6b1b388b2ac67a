//! Commands, by what they are about. Fields carry CloudStack's own names; what is `None` or empty is not sent.

mod addresses;
mod affinity;
mod events;
mod firewall;
mod identity;
mod jobs;
mod kubernetes;
mod load_balancing;
mod machines;
mod networks;
mod offerings;
mod port_forwarding;
mod server;
mod ssh_keys;
mod tags;
mod templates;
mod volumes;
mod zones;

pub use addresses::{AssociateIpAddress, DisassociateIpAddress, ListPublicIpAddresses};
pub use affinity::{CreateAffinityGroup, DeleteAffinityGroup, ListAffinityGroups, UpdateVmAffinityGroup};
pub use events::ListEvents;
pub use firewall::{
    CreateEgressFirewallRule, CreateFirewallRule, CreateRoutingFirewallRule, DeleteEgressFirewallRule,
    DeleteFirewallRule, DeleteRoutingFirewallRule, ListEgressFirewallRules, ListFirewallRules,
    ListRoutingFirewallRules,
};
pub use identity::{
    CreateProject, GetUser, GetUserKeys, ListAccounts, ListDomains, ListProjects, ListResourceLimits,
    ListUsers, UpdateResourceLimit,
};
pub use jobs::{ListAsyncJobs, QueryAsyncJobResult};
pub use kubernetes::{
    AddVirtualMachinesToKubernetesCluster, CreateKubernetesCluster, DeleteKubernetesCluster,
    ListKubernetesClusters, RemoveVirtualMachinesFromKubernetesCluster,
};
pub use load_balancing::{
    AssignToLoadBalancerRule, CreateLoadBalancerRule, DeleteLoadBalancerRule, ListLoadBalancerMembers,
    ListLoadBalancerRuleInstances, ListLoadBalancerRules, RemoveFromLoadBalancerRule, UpdateLoadBalancerRule,
};
pub use machines::{
    DeployVirtualMachine, DestroyVirtualMachine, ExpungeVirtualMachine, GetVirtualMachineUserData,
    ListVirtualMachines, NetworkAddress, RebootVirtualMachine, RecoverVirtualMachine, StartVirtualMachine,
    StopVirtualMachine, UpdateVirtualMachine,
};
pub use networks::{
    CreateNetwork, CreateVpc, DeleteNetwork, DeleteVpc, ListNetworkAclLists, ListNetworkAcls, ListNetworks,
    ListVpcs, RestartNetwork,
};
pub use offerings::{ListDiskOfferings, ListNetworkOfferings, ListServiceOfferings, ListVpcOfferings};
pub use port_forwarding::{CreatePortForwardingRule, DeletePortForwardingRule, ListPortForwardingRules};
pub use server::{ListApis, ListCapabilities};
pub use ssh_keys::{CreateSshKeyPair, DeleteSshKeyPair, ListSshKeyPairs, RegisterSshKeyPair};
pub use tags::{CreateTags, DeleteTags, ListTags, TagPair};
pub use templates::{ListTemplates, TemplateFilter};
pub use volumes::{AttachVolume, CreateVolume, DeleteVolume, DetachVolume, ListVolumes};
pub use zones::ListZones;

use serde::{Deserialize, Serialize};

use crate::id::{DomainId, ProjectId};

/// For whom something is made. Nothing given means the caller's own account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// An account, which needs a domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The account's domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domainid: Option<DomainId>,
    /// A project, which excludes an account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projectid: Option<ProjectId>,
}

impl Owner {
    /// Somebody else's account.
    pub fn account(account: impl Into<String>, domain: DomainId) -> Self {
        Self { account: Some(account.into()), domainid: Some(domain), projectid: None }
    }

    /// Nothing is given.
    pub fn is_caller(&self) -> bool {
        *self == Self::default()
    }

    /// A project.
    pub fn project(project: ProjectId) -> Self {
        Self { projectid: Some(project), ..Self::default() }
    }
}

/// Whose things are listed. Nothing given means the caller's own; what is in a project shows only to whoever names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Whose.
    #[serde(flatten)]
    pub owner: Owner,
    /// Everything that the caller may see: administrators see no one else's things without it.
    pub listall: Option<bool>,
    /// Domains below as well.
    pub isrecursive: Option<bool>,
}

impl Scope {
    /// Everything that the caller may see outside projects.
    pub fn all() -> Self {
        Self { listall: Some(true), ..Self::default() }
    }

    /// What an owner has.
    pub fn of(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }
}
