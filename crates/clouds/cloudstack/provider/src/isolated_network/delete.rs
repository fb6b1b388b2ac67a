//! The end of a CloudStackIsolatedNetwork.

use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_client::model::{FirewallRule, LoadBalancerRule, Network};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::names::finalizer::ISOLATED_NETWORK as FINALIZER;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Look, Note};
use capstan_object::ConditionStatus::False;
use capstan_object::Conditions;

use super::decide::{Decision, ask, ready};
use super::mark::{is_ours, is_tagged};
use super::{Facts, IsolatedNetworks, Made, NetworkCall, RULE};
use crate::{annotation, balancers};

pub(super) fn delete(
    look: &Look<IsolatedNetworks>,
    facts: &Facts,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    let Some(network) = &facts.network else {
        decision.remove_finalizer(FINALIZER);
        return;
    };
    decision.object.status.ready = false;
    let id = network.id.to_string();
    let own_tag = names::cluster_tag(&cluster.metadata.uid);
    let prefix = names::cluster_tag("");
    let others = network.tags.iter().any(|tag| {
        let key = tag.key.to_lowercase();
        key.starts_with(&prefix.to_lowercase()) && key != own_tag.to_lowercase()
    });
    if is_ours(network) && !others {
        let call = NetworkCall::Delete { network: id };
        let failure = look.failure_of(&call).map(|failure| failure.error.message.clone());
        ask(look, decision, reason::DELETING, vec![call]);
        if let Some(message) = failure {
            // The server does not say why, but there is one everyday reason.
            let message = format!(
                "{message}; CloudStack keeps a network until its last machine is expunged, which for accounts that may \
                 not expunge themselves takes up to expunge.delay and expunge.interval; it is tried again"
            );
            ready(look, decision, ConditionState::new(False, reason::DELETING, message));
        }
        return;
    }
    let mut calls = undo(look, facts, network, &own_tag, others);
    let keep = keeps_balancers(cluster);
    if !keep {
        calls.extend(unbalanced(look, facts, cluster));
    }
    if !calls.is_empty() {
        return ask(look, decision, reason::DELETING, calls);
    }
    // Told on an object that is still there: with the finalizer go its events.
    let kept = if keep { kept(look, facts) } else { Vec::new() };
    let message = format!("kept, as {} asks: {}", annotation::KEEP_LOAD_BALANCERS, kept.join(", "));
    let told = look.object.status.conditions.condition(condition::READY);
    if !kept.is_empty() && told.is_none_or(|told| told.message != message) {
        for one in kept {
            decision.note(Note::normal("LoadBalancerKept", "Delete", one));
        }
        decision.again_in(Duration::ZERO);
        return ready(look, decision, ConditionState::new(False, reason::DELETING, message));
    }
    decision.remove_finalizer(FINALIZER);
}

/// The user wants load balancers to outlive the cluster.
fn keeps_balancers(cluster: &CloudStackCluster) -> bool {
    cluster.metadata.annotations.get(annotation::KEEP_LOAD_BALANCERS).is_some_and(|value| value == "true")
}

/// What the cloud controller inside the cluster made and is left, by name, id and address.
fn kept(look: &Look<IsolatedNetworks>, facts: &Facts) -> Vec<String> {
    let known = balancers::known(&look.object.metadata);
    let theirs = facts.rules.iter().filter(|rule| known.contains_key(rule.id.as_str()));
    let shown = theirs.map(|rule| {
        let address = rule.publicip.map_or_else(|| "an unknown address".to_owned(), |ip| ip.to_string());
        let port = rule.publicport.map(|port| format!(":{port}")).unwrap_or_default();
        let name = rule.name.as_deref().unwrap_or_default();
        format!("load balancer rule {name} ({}) on {address}{port}", rule.id)
    });
    shown.collect()
}

/// What was made in a network that stays.
fn undo(
    look: &Look<IsolatedNetworks>,
    facts: &Facts,
    network: &Network,
    own_tag: &str,
    shared: bool,
) -> Vec<NetworkCall> {
    let made = Made::of(&look.object.metadata);
    let status = &look.object.status;
    let mut calls = Vec::new();
    // CAPC recorded its rule in the status and gave it a name, but did not delete it.
    let ours = |rule: &&LoadBalancerRule| {
        let recorded = status.load_balancer_rule_id == rule.id.as_str() && rule.name.as_deref() == Some(RULE);
        recorded || made.rule.as_deref() == Some(rule.id.as_str())
    };
    calls.extend(
        facts.rules.iter().filter(ours).map(|rule| NetworkCall::Unbalance { rule: rule.id.to_string() }),
    );
    let opened = facts.openings.iter().filter(|rule| made.openings.contains(rule.id.as_str()));
    calls.extend(opened.map(|rule| NetworkCall::Close { rule: rule.id.to_string() }));
    let let_out = facts.exits.iter().filter(|rule| made.exit.as_deref() == Some(rule.id.as_str()));
    calls.extend(let_out.map(|rule| NetworkCall::KeepIn { rule: rule.id.to_string() }));
    for address in facts.addresses.iter().filter(|address| !address.issourcenat) {
        let tagged = |key: &str| address.tags.iter().any(|tag| tag.key.eq_ignore_ascii_case(key));
        let by_us = made.address.as_deref() == Some(address.id.as_str());
        if by_us || tagged(names::CREATED_TAG) && tagged(own_tag) {
            calls.push(NetworkCall::Release { address: address.id.to_string() });
        }
    }
    if shared && is_tagged(network, own_tag) {
        calls.push(NetworkCall::Untag { id: network.id.to_string(), tag: own_tag.to_owned() });
    }
    calls
}

/// What the cloud controller inside the cluster made in a network that stays: rules, what lets packets in to them, and
/// addresses that nothing else is on. An address that somebody had before the cluster came is somebody's.
fn unbalanced(look: &Look<IsolatedNetworks>, facts: &Facts, cluster: &CloudStackCluster) -> Vec<NetworkCall> {
    let known = balancers::known(&look.object.metadata);
    let (theirs, others): (Vec<_>, Vec<_>) =
        facts.rules.iter().partition(|rule| known.contains_key(rule.id.as_str()));
    let mut calls = Vec::new();
    for rule in theirs {
        calls.push(NetworkCall::Unbalance { rule: rule.id.to_string() });
        let leads_in = |opening: &&FirewallRule| {
            opening.ipaddressid == rule.publicipid
                && opening.startport == rule.publicport
                && opening.endport.or(opening.startport) == rule.publicport
        };
        let openings = facts.openings.iter().filter(leads_in);
        calls.extend(openings.map(|opening| NetworkCall::Close { rule: opening.id.to_string() }));
    }
    let since = cluster.metadata.creation_timestamp.as_ref().map(|created| created.timestamp());
    let free = facts.addresses.iter().filter(|address| {
        let came_later = address.allocated.zip(since).is_some_and(|(allocated, since)| allocated >= since);
        let used = others.iter().any(|rule| rule.publicipid.as_ref() == Some(&address.id));
        let ours = known.values().any(|known| *known == address.id.as_str());
        ours && came_later && !used && !address.issourcenat && !address.isstaticnat
    });
    calls.extend(free.map(|address| NetworkCall::Release { address: address.id.to_string() }));
    calls
}
