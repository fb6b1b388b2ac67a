//! The end of a CloudStackIsolatedNetwork.

use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_client::model::{FirewallRule, LoadBalancerRule, Network, Tag};
use capstan_cloudstack_types::names::finalizer::ISOLATED_NETWORK as FINALIZER;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Look, Note, Wait};
use capstan_object::ConditionStatus::False;
use capstan_object::Conditions;
use capstan_provider_kit::retry::{FailedTry as Refusal, Pauses};
use jiff::SignedDuration;

use super::claim::{Identity, is_own_address, is_shared, staying};
use super::decide::{Decision, ask, ready};
use super::mark::{egress_tag, is_ours, is_tagged};
use super::refused::ask_paced;
use super::{IsolatedNetworks, Made, NetworkCall, ObservedNetwork, RULE, routed, vpc};
use crate::{annotation, balancers, code, leaving};

/// Why a network stays for a while.
const WAITING_FOR_EXPUNGE: &str = "WaitingForExpunge";
/// Pauses between looks at machines that are to be expunged.
const SHORTEST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(1800);
/// No default setting has an expunge take so long.
const OVERDUE: SignedDuration = SignedDuration::from_hours(72);
/// Pauses between deletions that CloudStack refuses.
const PAUSES: Pauses = Pauses { first: SignedDuration::from_mins(5), longest: SignedDuration::from_hours(6) };

pub(super) fn delete(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    // Calls may have ended since the object was last written.
    let made = Made::known(look, observed);
    made.put(&mut decision.object.metadata);
    let Some(network) = &observed.network else {
        let calls = vpc::given_up(look, observed, &made, cluster, false);
        if !calls.is_empty() {
            return ask_paced(look, decision, reason::DELETING, calls);
        }
        decision.remove_finalizer(FINALIZER);
        return;
    };
    decision.object.status.ready = false;
    let id = network.id.to_string();
    let neighbours = &look.seen.neighbours;
    let identity = Identity::of(&look.object, cluster, Some(network), &observed.addresses, neighbours);
    let others = is_shared(network, &identity, neighbours);
    if is_ours(network) && !others {
        let released = match network.vpcid {
            Some(_) => vpc::released(observed, &made, &identity, &look.object.status),
            None => Vec::new(),
        };
        if !released.is_empty() {
            return ask_paced(look, decision, reason::DELETING, released);
        }
        return delete_network(look, observed, id, decision);
    }
    let mut calls = undo(look, observed, (network, &made), &identity, others);
    if staying(neighbours, &identity).next().is_none() {
        calls.extend(vpc::given_up(look, observed, &made, cluster, true));
    }
    let keep = keeps_balancers(cluster);
    if !keep && staying(neighbours, &identity).next().is_none() {
        calls.extend(unbalanced(look, observed, cluster));
    }
    if !calls.is_empty() {
        return ask_paced(look, decision, reason::DELETING, calls);
    }
    // Reported while the object exists: its events go with the finalizer.
    let kept = if keep { kept(look, observed) } else { Vec::new() };
    let message = format!("kept, as {} asks: {}", annotation::KEEP_LOAD_BALANCERS, kept.join(", "));
    let reported = look.object.status.conditions.condition(condition::READY);
    if !kept.is_empty() && reported.is_none_or(|reported| reported.message != message) {
        for one in kept {
            decision.note(Note::normal("LoadBalancerKept", "Delete", one));
        }
        decision.again_in(Duration::ZERO);
        return ready(look, decision, ConditionState::new(False, reason::DELETING, message));
    }
    decision.remove_finalizer(FINALIZER);
}

/// Deletes the network when nothing holds it any more. CloudStack takes the order before that too, fails, and does not
/// say why, so it is not asked.
fn delete_network(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    id: String,
    decision: &mut Decision,
) {
    let meta = &look.object.metadata;
    let known = leaving::known(meta);
    // A server that still knows of it long after that is asked to delete the network all the same.
    let recent = |machine: &&String| {
        let destroyed = known.get(machine.as_str()).copied().unwrap_or(look.now);
        look.now.duration_since(destroyed) < OVERDUE
    };
    if let Some(machine) = observed.held_by.as_ref().filter(recent) {
        return expunging(look, machine, decision);
    }
    let before = Refusal::of(meta, annotation::DELETE_REFUSED);
    if let Some(refused) = before.as_ref().filter(|refused| look.now < refused.next(PAUSES)) {
        return refuse(look, refused, decision);
    }
    let call = NetworkCall::Delete { network: id };
    let Some(failure) = look.failure_of(&call) else {
        return ask(look, decision, reason::DELETING, vec![call]);
    };
    let refused = Refusal::after(before.as_ref(), look.now, &failure.error.to_string());
    refused.put(&mut decision.object.metadata, annotation::DELETE_REFUSED);
    refuse(look, &refused, decision);
}

/// The deletion was refused: something is in the network that was not put there by us, or that nobody noted.
fn refuse(look: &Look<IsolatedNetworks>, refused: &Refusal, decision: &mut Decision) {
    let next = refused.next(PAUSES);
    decision.again_at(look.now, next);
    let message = format!(
        "{}; CloudStack keeps a network until its last virtual machine is expunged; next try at {next:.0}",
        refused.message
    );
    let mut wait = Wait::on(reason::DELETING, message.as_str()).code(code::FAILED);
    wait.next = Some(next);
    decision.wait(wait);
    ready(look, decision, ConditionState::new(False, reason::DELETING, message));
}

/// Waits without orders until CloudStack has expunged the machines of the network.
fn expunging(look: &Look<IsolatedNetworks>, machine: &str, decision: &mut Decision) {
    let known = leaving::known(&look.object.metadata);
    let last = known.get(machine).copied().unwrap_or(look.now);
    let day = SignedDuration::from_hours(24);
    let (soonest, latest) = (last.saturating_add(day), last.saturating_add(day + day));
    let (Ok(soonest), Ok(latest)) = (soonest, latest) else { return };
    // The times come first: where there is little room, the rest is cut.
    let when = match look.now < latest {
        true => format!("between {soonest:.0} and {latest:.0} by its default settings"),
        false => "later than by its default settings".to_owned(),
    };
    let message = format!(
        "{}: CloudStack expunges the virtual machines of the network {when}, and keeps the network until then (the last is \
         {machine}, destroyed at {last:.0}; expunge.delay and up to expunge.interval follow); an administrator can expunge \
         them at once, or set allow.user.expunge.recover.vm for the account, whose role needs expungeVirtualMachine too",
        code::EXPUNGE
    );
    let waited = Duration::try_from(look.now.duration_since(last)).unwrap_or_default();
    decision.again_in((waited / 8).clamp(SHORTEST, LONGEST));
    let mut wait = Wait::on(WAITING_FOR_EXPUNGE, message.as_str()).code(code::EXPUNGE);
    wait.since = Some(last);
    wait.next = Some(soonest).filter(|soonest| *soonest > look.now);
    decision.wait(wait);
    ready(look, decision, ConditionState::new(False, WAITING_FOR_EXPUNGE, message));
}

/// The user wants load balancers to outlive the cluster.
fn keeps_balancers(cluster: &CloudStackCluster) -> bool {
    cluster.metadata.annotations.get(annotation::KEEP_LOAD_BALANCERS).is_some_and(|value| value == "true")
}

/// What the cloud controller inside the cluster made and is left, by name, id and address.
fn kept(look: &Look<IsolatedNetworks>, observed: &ObservedNetwork) -> Vec<String> {
    let known = balancers::known(&look.object.metadata);
    let theirs = observed.rules.iter().filter(|rule| known.contains_key(rule.id.as_str()));
    let shown = theirs.map(|rule| {
        let address = rule.publicip.map_or_else(|| "an unknown address".to_owned(), |ip| ip.to_string());
        let port = rule.publicport.map(|port| format!(":{port}")).unwrap_or_default();
        let name = rule.name.as_deref().unwrap_or_default();
        format!("load balancer rule {name} ({}) on {address}{port}", rule.id)
    });
    shown.collect()
}

/// What was made in a network that stays, but what another object of the cluster uses. Tags go last: while ours is there,
/// others leave us what is shared.
fn undo(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    (network, made): (&Network, &Made),
    identity: &Identity,
    shared: bool,
) -> Vec<NetworkCall> {
    let status = &look.object.status;
    let mut calls = Vec::new();
    // CAPC recorded its rule in the status and gave it a name, but did not delete it.
    let staying = || staying(&look.seen.neighbours, identity);
    let is_used =
        |address: Option<&str>| address.is_some_and(|id| staying().any(|other| other.address == id));
    let ours = |rule: &&LoadBalancerRule| {
        if is_used(rule.publicipid.as_ref().map(|id| id.as_str())) {
            return false;
        }
        let recorded = status.load_balancer_rule_id == rule.id.as_str() && rule.name.as_deref() == Some(RULE);
        recorded || made.rule.as_deref() == Some(rule.id.as_str())
    };
    calls.extend(
        observed.rules.iter().filter(ours).map(|rule| NetworkCall::Unbalance { rule: rule.id.to_string() }),
    );
    let opened = observed.openings.iter().filter(|rule| {
        let used = is_used(rule.ipaddressid.as_ref().map(|id| id.as_str()));
        made.openings.contains(rule.id.as_str()) && !used
    });
    let routed = routed::is_routed(network);
    calls.extend(opened.map(|rule| NetworkCall::Close { rule: rule.id.to_string(), routed }));
    calls.extend(exit(observed, network, made, shared));
    for address in observed.addresses.iter().filter(|address| !is_used(Some(address.id.as_str()))) {
        let id = address.id.to_string();
        if is_own_address(address, made, identity, status) {
            calls.push(NetworkCall::Release { address: id });
            continue;
        }
        let own = address.tags.iter().filter(|tag| identity.has(&tag.key));
        let untag = |tag: &Tag| NetworkCall::Untag { id: id.clone(), address: true, tag: tag.key.clone() };
        calls.extend(own.map(untag));
    }
    if staying().next().is_none() {
        let id = network.id.to_string();
        let own = network.tags.iter().filter(|tag| identity.has(&tag.key));
        let untag = |tag: &Tag| NetworkCall::Untag { id: id.clone(), address: false, tag: tag.key.clone() };
        calls.extend(own.map(untag));
    }
    calls
}

/// What becomes of the rule that lets packets out of a network that was there before: the last cluster deletes it, and
/// one that made it and goes sooner leaves a tag with its id. On a network of ours it goes with the network.
fn exit(observed: &ObservedNetwork, network: &Network, made: &Made, shared: bool) -> Vec<NetworkCall> {
    if is_ours(network) {
        return Vec::new();
    }
    let id = network.id.to_string();
    let mut calls = Vec::new();
    for exit in &observed.exits {
        let tag = egress_tag(exit.id.as_str());
        let tagged = is_tagged(&network.tags, &tag);
        let by_us = made.exit.as_deref() == Some(exit.id.as_str());
        if shared && by_us && !tagged {
            calls.push(NetworkCall::Tag { id: id.clone(), address: false, tags: vec![tag] });
        } else if !shared && (by_us || tagged) {
            let routed = routed::is_routed(network);
            calls.push(NetworkCall::KeepIn { rule: exit.id.to_string(), routed });
        }
    }
    if !shared {
        let prefix = egress_tag("");
        let ours = |tag: &&Tag| tag.key.to_lowercase().starts_with(&prefix);
        let untag = |tag: &Tag| NetworkCall::Untag { id: id.clone(), address: false, tag: tag.key.clone() };
        calls.extend(network.tags.iter().filter(ours).map(untag));
    }
    calls
}

/// What the cloud controller inside the cluster made in a network that stays: rules, what lets packets in to them, and
/// addresses that nothing else is on. An address that somebody had before the cluster came is somebody's.
fn unbalanced(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    cluster: &CloudStackCluster,
) -> Vec<NetworkCall> {
    let known = balancers::known(&look.object.metadata);
    let (theirs, others): (Vec<_>, Vec<_>) =
        observed.rules.iter().partition(|rule| known.contains_key(rule.id.as_str()));
    let mut calls = Vec::new();
    for rule in theirs {
        calls.push(NetworkCall::Unbalance { rule: rule.id.to_string() });
        let leads_in = |opening: &&FirewallRule| {
            opening.ipaddressid == rule.publicipid
                && opening.startport == rule.publicport
                && opening.endport.or(opening.startport) == rule.publicport
        };
        let openings = observed.openings.iter().filter(leads_in);
        calls.extend(
            openings.map(|opening| NetworkCall::Close { rule: opening.id.to_string(), routed: false }),
        );
    }
    let since = cluster.metadata.creation_timestamp.as_ref().map(|created| created.timestamp());
    let free = observed.addresses.iter().filter(|address| {
        let came_later = address.allocated.zip(since).is_some_and(|(allocated, since)| allocated >= since);
        let used = others.iter().any(|rule| rule.publicipid.as_ref() == Some(&address.id));
        let ours = known.values().any(|known| *known == address.id.as_str());
        ours && came_later && !used && !address.issourcenat && !address.isstaticnat
    });
    calls.extend(free.map(|address| NetworkCall::Release { address: address.id.to_string() }));
    calls
}
