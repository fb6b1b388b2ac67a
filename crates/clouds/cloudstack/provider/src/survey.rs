//! What a cloud has of clusters, for whoever compares it with records. Looks and changes nothing.

use std::collections::BTreeSet;

use capstan_cloudstack_client::commands::{
    ListAffinityGroups, ListLoadBalancerRules, ListNetworks, ListPortForwardingRules, ListPublicIpAddresses,
    ListVirtualMachines, ListVolumes, ListVpcs, Scope,
};
use capstan_cloudstack_client::model::{MachineState, VolumeState};
use capstan_cloudstack_client::{Class, Client, Error, NetworkId};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackFailureDomainSpec;
use capstan_provider_kit::Secret;

use crate::clouds::{Clouds, secret_of};
use crate::error::CloudError;
use crate::isolated_network::{RULE, is_claimed, is_our_vpc, is_ours, is_tagged};
use crate::machine::{SSH, comes_along};

/// Something in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thing {
    pub id: String,
    pub name: String,
}

/// What a [`Leftover`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    /// An address that carries the mark, on a network that does not.
    Address,
    /// An affinity group with a name that providers give.
    AffinityGroup,
    /// A port that is forwarded to SSH of a machine, on a network that carries the mark.
    SshRule,
    /// The same on an existing network that clusters use. It carries no mark, so it is never removed.
    SshRuleElsewhere,
    /// A load balancer rule with the name that rules for API servers have, on a network without the mark. It carries none
    /// itself, and CAPC elsewhere gives the same name, so it is never removed.
    ApiRule,
    /// A VPC that carries the mark.
    Vpc,
    /// A data disk that came with a machine, and that no machine has. It carries no mark, so it is never removed.
    Volume,
}

impl LeftoverKind {
    /// The kind in CloudStack's words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "PublicIpAddress",
            Self::AffinityGroup => "AffinityGroup",
            Self::SshRule | Self::SshRuleElsewhere => "PortForwardingRule",
            Self::ApiRule => "LoadBalancerRule",
            Self::Vpc => "VPC",
            Self::Volume => "Volume",
        }
    }

    /// One of it, in a count.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::AffinityGroup => "affinity group",
            Self::SshRule | Self::SshRuleElsewhere => "port forwarding rule",
            Self::ApiRule => "load balancer rule",
            Self::Vpc => "VPC",
            Self::Volume => "volume",
        }
    }

    /// Why one of it is never removed here; nothing if it can be.
    pub fn kept(self) -> Option<&'static str> {
        match self {
            Self::Volume => Some("a volume carries no mark: if it is not needed, delete it in CloudStack"),
            Self::ApiRule | Self::SshRuleElsewhere => Some(
                "a rule on an existing network carries no mark: if it is not needed, delete it in CloudStack",
            ),
            Self::Address | Self::AffinityGroup | Self::SshRule | Self::Vpc => None,
        }
    }
}

/// Something beside machines and networks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leftover {
    pub kind: LeftoverKind,
    pub thing: Thing,
    /// Id of the machine that it leads to.
    pub machine: Option<String>,
}

/// What a failure domain's account has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Networks that carry the mark of what providers made.
    pub networks: Vec<Thing>,
    /// Machines in those networks: nobody else puts machines there.
    pub machines: Vec<Thing>,
    /// What else was made for clusters, or may have been left by them.
    pub others: Vec<Leftover>,
    /// Ids of all machines of the account that are not on their way out.
    pub present: BTreeSet<String>,
}

impl Clouds {
    /// Looks at the account of a failure domain with the keys of its Secret.
    pub async fn survey(
        &self,
        domain: &CloudStackFailureDomainSpec,
        keys: &Secret,
    ) -> Result<Survey, CloudError> {
        let (client, owner) = self.open(domain, keys).await?;
        let key = secret_of(&domain.acs_endpoint);
        let explain = |error: capstan_cloudstack_client::Error| CloudError::of(&error, &key);
        let scope = Scope::of(owner);
        let question = ListNetworks { scope: scope.clone(), ..ListNetworks::default() };
        let mut networks = client.list(&question).await.map_err(explain)?;
        let used = networks.iter().filter(|network| !is_ours(network) && is_claimed(&network.tags));
        let used: BTreeSet<String> = used.map(|network| network.id.to_string()).collect();
        networks.retain(is_ours);
        let details = vec!["nics".to_owned()];
        let question =
            ListVirtualMachines { details, scope: scope.clone(), ..ListVirtualMachines::default() };
        let machines = client.list(&question).await.map_err(explain)?;
        let leaving = |state: &Option<MachineState>| {
            matches!(state, Some(MachineState::Destroyed | MachineState::Expunging))
        };
        let mut survey = Survey::default();
        let marked: BTreeSet<&str> = networks.iter().map(|network| network.id.as_str()).collect();
        for machine in machines.iter().filter(|machine| !leaving(&machine.state)) {
            survey.present.insert(machine.id.as_str().to_owned());
            let inside = machine.nic.iter().filter_map(|nic| nic.networkid.as_ref());
            if inside.into_iter().any(|network| marked.contains(network.as_str())) {
                let name = machine.name.clone().unwrap_or_default();
                survey.machines.push(Thing { id: machine.id.as_str().to_owned(), name });
            }
        }
        survey.networks = networks
            .iter()
            .map(|network| Thing {
                id: network.id.as_str().to_owned(),
                name: network.name.clone().unwrap_or_default(),
            })
            .collect();
        survey.others = others(&client, &scope, (&marked, &used)).await.map_err(explain)?;
        Ok(survey)
    }
}

/// What was made beside machines and networks. What is on a marked network goes along with it, so that its addresses are
/// not listed. `used` are existing networks that carry the tag of a cluster.
async fn others(
    client: &Client,
    scope: &Scope,
    (marked, used): (&BTreeSet<&str>, &BTreeSet<String>),
) -> Result<Vec<Leftover>, Error> {
    let mut all = Vec::new();
    let mut add = |kind, id: &str, name: String, machine: Option<String>| {
        all.push(Leftover { kind, thing: Thing { id: id.to_owned(), name }, machine });
    };
    let is_marked =
        |network: &Option<NetworkId>| network.as_ref().is_some_and(|it| marked.contains(it.as_str()));
    let question = ListPublicIpAddresses { scope: scope.clone(), ..ListPublicIpAddresses::default() };
    for address in client.list(&question).await? {
        let created = is_tagged(&address.tags, names::CREATED_TAG);
        if created && !is_marked(&address.associatednetworkid) {
            add(LeftoverKind::Address, address.id.as_str(), address.ipaddress.to_string(), None);
        }
    }
    let question = ListAffinityGroups { scope: scope.clone(), ..ListAffinityGroups::default() };
    for group in client.list(&question).await? {
        if names::is_affinity_group(&group.name) {
            add(LeftoverKind::AffinityGroup, group.id.as_str(), group.name, None);
        }
    }
    let r#type = Some("DATADISK".to_owned());
    let question = ListVolumes { r#type, scope: scope.clone(), ..ListVolumes::default() };
    for volume in client.list(&question).await? {
        let there = matches!(volume.state, Some(VolumeState::Ready | VolumeState::Allocated));
        let name = volume.name.filter(|name| comes_along(name));
        if let Some(name) = name.filter(|_| there && volume.virtualmachineid.is_none()) {
            add(LeftoverKind::Volume, volume.id.as_str(), name, None);
        }
    }
    let question = ListPortForwardingRules { scope: scope.clone(), ..ListPortForwardingRules::default() };
    let rules = match client.list(&question).await {
        // A role for clusters without SSH forwarding lacks the command.
        Err(error) if error.class() == Class::Permission => Vec::new(),
        rules => rules?,
    };
    for rule in rules {
        let elsewhere = rule.networkid.as_ref().is_some_and(|network| used.contains(network.as_str()));
        let kind = match is_marked(&rule.networkid) {
            true => Some(LeftoverKind::SshRule),
            false => elsewhere.then_some(LeftoverKind::SshRuleElsewhere),
        };
        if let Some(kind) = kind.filter(|_| rule.privateport == Some(SSH)) {
            let name = format!("port {}", rule.publicport.unwrap_or_default());
            let machine = rule.virtualmachineid.map(|machine| machine.to_string());
            add(kind, rule.id.as_str(), name, machine);
        }
    }
    let question = ListLoadBalancerRules { scope: scope.clone(), ..ListLoadBalancerRules::default() };
    for rule in client.list(&question).await? {
        let name = rule.name.filter(|name| name == RULE);
        if let Some(name) = name.filter(|_| !is_marked(&rule.networkid)) {
            add(LeftoverKind::ApiRule, rule.id.as_str(), name, None);
        }
    }
    let question = ListVpcs { scope: scope.clone(), ..ListVpcs::default() };
    let vpcs = match client.list(&question).await {
        // A role for clusters outside of VPCs lacks the command.
        Err(error) if error.class() == Class::Permission => Vec::new(),
        vpcs => vpcs?,
    };
    for vpc in vpcs.into_iter().filter(is_our_vpc) {
        add(LeftoverKind::Vpc, vpc.id.as_str(), vpc.name.unwrap_or_default(), None);
    }
    Ok(all)
}
