//! Rules on the public address of a machine's network, as far as SSH needs them: observed, and changed one by one.

use std::collections::BTreeSet;

use capstan_cloudstack_client::commands::{
    CreateFirewallRule, CreatePortForwardingRule, DeleteFirewallRule, DeletePortForwardingRule,
    ListFirewallRules, ListLoadBalancerRules, ListPortForwardingRules,
};
use capstan_cloudstack_client::model::{FirewallRule, LoadBalancerRule, PortForwardingRule};
use capstan_cloudstack_client::{Error, FirewallRuleId, VirtualMachineId};
use tokio::time::Instant;

use super::recent::Recent;
use super::ssh::SSH;
use super::ssh_record::SshRecord;
use crate::clouds::Access;
use crate::isolated_network::EVERYBODY;

/// Rules on an address. Lists that nobody needed are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AddressRules {
    /// Ports that are forwarded.
    pub forwarded: Vec<PortForwardingRule>,
    /// Load balancers.
    pub balanced: Option<Vec<LoadBalancerRule>>,
    /// Firewall rules of the address; none if they were not asked for.
    pub openings: Option<Vec<FirewallRule>>,
}

/// Rules that the decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// On this address.
    pub address: String,
    /// Load balancers too.
    pub balanced: bool,
    /// Whether firewall rules are needed too.
    pub openings: bool,
}

impl AddressRules {
    /// The rules that lead to the SSH of a machine.
    pub(super) fn of<'a>(&'a self, machine: &'a str) -> impl Iterator<Item = &'a PortForwardingRule> {
        self.forwarded.iter().filter(move |rule| {
            rule.privateport == Some(SSH)
                && rule.virtualmachineid.as_ref().is_some_and(|id| id.as_str() == machine)
        })
    }

    /// A port has a rule. CloudStack refuses a second one.
    pub(super) fn takes(&self, port: u16) -> bool {
        let forwarded = self.forwarded.iter().any(|rule| {
            let first = rule.publicport.unwrap_or_default();
            (first..=rule.publicendport.unwrap_or(first)).contains(&port)
        });
        let mut balanced = self.balanced.iter().flatten();
        forwarded || balanced.any(|rule| rule.publicport == Some(port))
    }

    /// What lets packets in to exactly this port.
    pub(super) fn openings_of(&self, port: u16) -> impl Iterator<Item = &FirewallRule> {
        let openings = self.openings.iter().flatten().filter(|rule| is_tcp(rule));
        openings
            .filter(move |rule| rule.startport == Some(port) && rule.endport.is_none_or(|end| end == port))
    }

    /// Who comes in to a port beside those who may, by rules that somebody else made.
    pub(super) fn admits_others(&self, record: &SshRecord, sources: &[String]) -> Option<String> {
        if sources == [EVERYBODY] {
            return None;
        }
        let port = record.port?;
        let leads = |rule: &&FirewallRule| {
            let first = rule.startport.unwrap_or(0);
            is_tcp(rule) && (first..=rule.endport.or(rule.startport).unwrap_or(u16::MAX)).contains(&port)
        };
        let beside = |rule: &&FirewallRule| {
            !record.openings.contains(rule.id.as_str())
                && admitted(rule).any(|who| !sources.iter().any(|source| source == who))
        };
        let shown =
            |rule: &FirewallRule| format!("{} ({})", rule.id, admitted(rule).collect::<Vec<_>>().join(","));
        let openings = self.openings.iter().flatten();
        let rules: Vec<String> = openings.filter(leads).filter(beside).map(shown).collect();
        let shown =
            || format!("firewall rules that were not created here admit others: {}", rules.join(", "));
        (!rules.is_empty()).then(shown)
    }
}

fn is_tcp(rule: &FirewallRule) -> bool {
    rule.protocol.as_deref().is_none_or(|protocol| protocol.eq_ignore_ascii_case("tcp"))
}

/// Whom a firewall rule lets in.
pub(super) fn admitted(rule: &FirewallRule) -> impl Iterator<Item = &str> {
    let list = rule.cidrlist.as_deref().filter(|list| !list.is_empty()).unwrap_or(EVERYBODY);
    list.split(',').map(str::trim)
}

/// The firewall rule that lets these in to a port, and nobody else.
pub(super) fn opening<'a>(rules: &'a AddressRules, port: u16, cidrs: &[String]) -> Option<&'a FirewallRule> {
    let same = |rule: &&FirewallRule| {
        admitted(rule).count() == cidrs.len()
            && admitted(rule).all(|who| cidrs.iter().any(|cidr| cidr == who))
    };
    rules.openings_of(port).find(same)
}

/// The rules on an address, from a moment ago if our own calls kept them up to date since.
pub(super) async fn observe(
    question: &Question,
    access: &Access,
    recent: &Recent<AddressRules>,
) -> Result<AddressRules, Error> {
    let asked = Instant::now();
    let (client, address) = (&access.client, question.address.as_str());
    let known = recent.get(address);
    let fresh = known.is_none();
    let mut rules = match known {
        Some(rules) => rules,
        None => {
            let forwarded = ListPortForwardingRules {
                ipaddressid: Some(address.into()),
                scope: access.scope(),
                ..ListPortForwardingRules::default()
            };
            AddressRules { forwarded: client.list(&forwarded).await?, ..AddressRules::default() }
        }
    };
    if question.balanced && rules.balanced.is_none() {
        let balanced = ListLoadBalancerRules {
            publicipid: Some(address.into()),
            scope: access.scope(),
            ..ListLoadBalancerRules::default()
        };
        rules.balanced = Some(client.list(&balanced).await?);
        recent.change(address, |known| known.balanced.clone_from(&rules.balanced));
    }
    if question.openings && rules.openings.is_none() {
        let openings = ListFirewallRules {
            ipaddressid: Some(address.into()),
            scope: access.scope(),
            ..ListFirewallRules::default()
        };
        rules.openings = Some(client.list(&openings).await?);
        recent.change(address, |known| known.openings.clone_from(&rules.openings));
    }
    if fresh {
        recent.put(address, asked, rules.clone());
    }
    Ok(rules)
}

/// Carries out one change of an address's rules and has what is known of them follow it.
async fn changed<T>(
    address: &str,
    recent: &Recent<AddressRules>,
    done: impl Future<Output = Result<T, Error>>,
    change: impl FnOnce(&mut AddressRules, T),
) -> Result<(), Error> {
    match done.await {
        Ok(result) => {
            recent.change(address, |known| change(known, result));
            Ok(())
        }
        Err(error) => {
            recent.forget(address);
            Err(error)
        }
    }
}

/// What is not known any more is gone, which is what was wanted.
fn gone(done: Result<(), Error>, id: &str) -> Result<(), Error> {
    match done {
        Err(error) if error.is_unknown(id) => Ok(()),
        done => done,
    }
}

/// Who a forwarding rule lets in.
#[derive(Clone, Copy)]
pub(super) struct Admitted<'a> {
    /// Everybody, by a firewall rule that comes with it.
    pub open: bool,
    /// The network, where the address is a VPC's.
    pub tier: Option<&'a str>,
    /// Sources, on a tier; everybody if empty.
    pub cidrs: &'a [String],
}

/// The rule of a tier admits these and nobody else.
pub(super) fn admits(rule: &PortForwardingRule, sources: &[String]) -> bool {
    let list = rule.cidrlist.as_deref().filter(|list| !list.trim().is_empty()).unwrap_or(EVERYBODY);
    let held: BTreeSet<&str> = list.split([',', ' ']).filter(|cidr| !cidr.is_empty()).collect();
    held == sources.iter().map(String::as_str).collect()
}

/// Forwards a port to a machine's SSH. CloudStack refuses a port that is taken.
pub(super) async fn forward(
    (address, port): (&str, u16),
    machine: &str,
    Admitted { open, tier, cidrs }: Admitted<'_>,
    access: &Access,
    recent: &Recent<AddressRules>,
) -> Result<(), Error> {
    let request = CreatePortForwardingRule {
        ipaddressid: address.into(),
        protocol: "tcp".to_owned(),
        publicport: port,
        publicendport: None,
        privateport: SSH,
        privateendport: None,
        virtualmachineid: machine.into(),
        networkid: tier.map(Into::into),
        openfirewall: Some(open),
        cidrlist: cidrs.to_vec(),
    };
    let machine: VirtualMachineId = machine.into();
    changed(address, recent, access.client.run(&request), |known, mut rule| {
        // What is known of the rule does not depend on how much of it the answer repeats.
        rule.publicport = Some(port);
        rule.privateport = Some(SSH);
        rule.virtualmachineid = Some(machine);
        rule.cidrlist = Some(cidrs.join(","));
        known.forwarded.push(rule);
        if open {
            known.openings = None;
        }
    })
    .await
}

/// Lets some in to a port, by a rule with the id that is returned.
pub(super) async fn open(
    (address, port): (&str, u16),
    cidrs: &[String],
    access: &Access,
    recent: &Recent<AddressRules>,
) -> Result<FirewallRuleId, Error> {
    let request = CreateFirewallRule {
        ipaddressid: address.into(),
        protocol: "tcp".to_owned(),
        startport: Some(port),
        endport: Some(port),
        cidrlist: cidrs.to_vec(),
        icmptype: None,
        icmpcode: None,
    };
    let mut rule = match access.client.run(&request).await {
        Ok(rule) => rule,
        Err(error) => {
            recent.forget(address);
            return Err(error);
        }
    };
    let id = rule.id.clone();
    // What is known of the rule does not depend on how much of it the answer repeats.
    (rule.protocol, rule.cidrlist) = (Some("tcp".to_owned()), Some(cidrs.join(",")));
    (rule.startport, rule.endport) = (Some(port), Some(port));
    recent.change(address, |known| known.openings.iter_mut().for_each(|all| all.push(rule.clone())));
    Ok(id)
}

/// Deletes a rule that lets packets in.
pub(super) async fn close(
    address: &str,
    rule: &str,
    access: &Access,
    recent: &Recent<AddressRules>,
) -> Result<(), Error> {
    let request = DeleteFirewallRule { id: rule.into() };
    let done = async { gone(access.client.run(&request).await.map(drop), rule) };
    changed(address, recent, done, |known, ()| {
        known.openings.iter_mut().for_each(|openings| openings.retain(|known| known.id.as_str() != rule));
    })
    .await
}

/// Deletes a rule that forwards a port.
pub(super) async fn end(
    address: &str,
    rule: &str,
    access: &Access,
    recent: &Recent<AddressRules>,
) -> Result<(), Error> {
    let request = DeletePortForwardingRule { id: rule.into() };
    let done = async { gone(access.client.run(&request).await.map(drop), rule) };
    changed(address, recent, done, |known, ()| {
        known.forwarded.retain(|known| known.id.as_str() != rule);
        // What came with it went with it.
        known.openings = None;
    })
    .await
}
