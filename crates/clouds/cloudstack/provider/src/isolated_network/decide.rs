//! What is done about a CloudStackIsolatedNetwork.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, condition, reason};
use capstan_cloudstack_client::model::{FirewallRule, LoadBalancerRule, Network, PublicIpAddress};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::names::finalizer::ISOLATED_NETWORK as FINALIZER;
use capstan_cloudstack_types::v1beta3::{CloudStackCluster, CloudStackIsolatedNetwork};
use capstan_controller::{Call, Failure, Look, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::Conditions;

use super::mark::{self, is_ours};
use super::{Facts, IsolatedNetworks, Made, NetworkCall, NetworkOrder, delete};
use crate::annotation;

pub(super) type Decision = capstan_controller::Decision<IsolatedNetworks>;

/// Who may reach the API server if nobody says.
pub(crate) const EVERYBODY: &str = "0.0.0.0/0";

/// What it was set up with, so that a change is noticed without asking the cloud.
const SETTLED_WITH: &str = "capstan.dev/cloudstack-settled-with";

/// How often the cloud is asked while the cluster is not well and nothing is missing.
const UNWELL: Duration = Duration::from_secs(300);

/// Whether the cloud has to be asked: until everything is there, and whenever something else is wanted.
pub(super) fn must_ask(object: &CloudStackIsolatedNetwork, cluster: &CloudStackCluster) -> bool {
    let settled = object.metadata.annotations.get(SETTLED_WITH);
    object.metadata.is_deleting()
        || !object.status.ready
        || !object.status.conditions.is_condition_true(condition::READY)
        || settled != Some(&allowed(cluster).join(","))
        || Made::of(&object.metadata).tag_failed
}

/// The cluster fell ill after everything was there: somebody may have taken away what leads to its API server. Whether
/// that answers tells nothing, as old connections outlive their rule.
pub(super) fn fell_ill(object: &CloudStackIsolatedNetwork, cluster: &Cluster) -> bool {
    let settled = object.status.conditions.condition(condition::READY).filter(|it| it.is_true());
    let available = cluster.status.conditions.condition(condition::AVAILABLE);
    let (Some(settled), Some(available)) = (settled, available) else { return false };
    available.status == False && available.last_transition_time > settled.last_transition_time
}

/// Who may reach the API server.
pub(crate) fn allowed(cluster: &CloudStackCluster) -> Vec<String> {
    let text = cluster.metadata.annotations.get(annotation::ALLOWED_CIDRS).map_or("", String::as_str);
    let cidrs: BTreeSet<&str> = text.split(',').map(str::trim).filter(|cidr| !cidr.is_empty()).collect();
    match cidrs.is_empty() {
        true => vec![EVERYBODY.to_owned()],
        false => cidrs.into_iter().map(str::to_owned).collect(),
    }
}

impl Facts {
    /// The rule on a port of an address.
    pub(super) fn rule_on(&self, address: &str, port: u16) -> Option<&LoadBalancerRule> {
        self.rules.iter().find(|rule| {
            rule.publicport == Some(port) && rule.publicipid.as_ref().is_some_and(|id| id.as_str() == address)
        })
    }

    /// What lets packets in to a port of an address, with who may come by it.
    pub(super) fn openings_on(
        &self,
        address: &str,
        port: u16,
    ) -> impl Iterator<Item = (&FirewallRule, &str)> {
        let on = move |rule: &&FirewallRule| {
            let tcp = rule.protocol.as_deref().is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp"));
            tcp && (rule.startport, rule.endport.or(rule.startport)) == (Some(port), Some(port))
                && rule.ipaddressid.as_ref().is_some_and(|id| id.as_str() == address)
        };
        self.openings.iter().filter(on).map(|rule| {
            let who = rule.cidrlist.as_deref().filter(|list| !list.is_empty());
            (rule, who.unwrap_or(EVERYBODY))
        })
    }

    /// Everything may go out.
    pub(super) fn lets_out(&self) -> bool {
        if self.network.as_ref().is_some_and(|network| network.egressdefaultpolicy == Some(true)) {
            return true;
        }
        let all = |protocol: &str| {
            self.exits.iter().any(|exit| {
                let this = exit.protocol.as_deref().is_some_and(|known| known.eq_ignore_ascii_case(protocol));
                this && exit.startport.is_none() && exit.icmptype.is_none_or(|kind| kind == -1)
            })
        };
        all("all") || ["tcp", "udp", "icmp"].into_iter().all(all)
    }
}

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<IsolatedNetworks>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        let deleting = look.object.metadata.is_deleting();
        match (&look.seen.facts, &look.seen.cluster) {
            (Some(Err(cause)), _) => {
                cause.wait(&mut decision);
                ready(look, &mut decision, ConditionState::new(False, cause.reason, cause.text()));
            }
            (Some(Ok(facts)), Some(cluster)) if deleting => {
                delete::delete(look, facts, cluster, &mut decision)
            }
            (Some(Ok(facts)), Some(cluster)) => keep(look, facts, cluster, &mut decision),
            (None, Some(cluster)) if look.object.status.ready => {
                mark::keep(look, None, cluster, &mut decision);
            }
            (None, Some(_)) if !deleting || look.seen.domain.is_some() => {
                decision.add_finalizer(FINALIZER);
                waiting(look, &mut decision, "WaitingForZone", "the zone of the failure domain");
            }
            _ => {
                decision.wait(Wait::on("WaitingForOwner", "the failure domain that this belongs to"));
                return decision;
            }
        }
    }
    let verdict = paused::condition(look.paused.as_deref());
    set_state(look, &mut decision.object.status.conditions, condition::PAUSED, verdict, None);
    decision
}

pub(super) fn ready(look: &Look<IsolatedNetworks>, decision: &mut Decision, verdict: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn waiting(look: &Look<IsolatedNetworks>, decision: &mut Decision, reason: &str, what: &str) {
    decision.wait(Wait::on(reason, what));
    ready(look, decision, ConditionState::new(False, reason, what));
}

/// Asks for calls, and says so or what became of the last try.
pub(super) fn ask(
    look: &Look<IsolatedNetworks>,
    decision: &mut Decision,
    reason: &str,
    calls: Vec<NetworkCall>,
) {
    // The order of a call may differ from that of the try before: it is the same effect.
    let failed = |failure: &&Failure<NetworkCall>| calls.iter().any(|it| it.summary() == failure.effect);
    let failure = look.failures.iter().find(failed);
    let message = match failure {
        Some(failure) => match &failure.call {
            Some(NetworkCall::Associate { address: Some(address), .. }) => format!(
                "{}; if spec.controlPlaneEndpoint.host asks for {address}: free it, choose another, or leave it empty to \
                 have one chosen",
                failure.error
            ),
            _ => failure.error.to_string(),
        },
        None => calls.iter().map(Call::summary).collect::<Vec<_>>().join(", "),
    };
    ready(look, decision, ConditionState::new(False, reason, message));
    for call in calls {
        decision.call(call);
    }
}

fn keep(look: &Look<IsolatedNetworks>, facts: &Facts, cluster: &CloudStackCluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let spec = &look.object.spec;
    let Some(network) = &facts.network else {
        if !spec.id.is_empty() {
            let message = format!("network {} was there and is gone; it is not made again", spec.id);
            decision.object.status.ready = false;
            return ready(look, decision, ConditionState::new(False, "Gone", message));
        }
        return create(look, facts, cluster, decision);
    };
    let mut made = Made::of(&look.object.metadata);
    let ours = is_ours(network);
    let id = network.id.to_string();
    decision.object.spec.id.clone_from(&id);
    let created = |call: &NetworkCall| matches!(call, NetworkCall::Create { name, .. } if *name == spec.name);
    if ours && happened(look, created) {
        made.network = Some(id.clone());
    }
    let mut calls = Vec::new();
    // Another cluster's network is to outlive that cluster: it must know of us before anything is on it.
    if ours && made.network.as_ref() != Some(&id) {
        let missing = mark::missing(network, cluster);
        if !missing.is_empty() {
            calls.push(NetworkCall::Tag { id: id.clone(), address: false, tags: missing });
        }
    }
    if !facts.lets_out() {
        calls.push(NetworkCall::LetOut { network: id.clone() });
    } else if look.result_of(&NetworkCall::LetOut { network: id.clone() }).is_some() {
        let exit = facts.exits.iter().find(|exit| exit.protocol.as_deref() == Some("all"));
        made.exit = exit.map(|exit| exit.id.to_string());
    }
    match address(look, facts, cluster, network, ours) {
        Err(call) => {
            let wanted = &cluster.spec.control_plane_endpoint.host;
            if let NetworkCall::Associate { address: None, .. } = call
                && !ours
            {
                let message =
                    "no public address of the zone is free; free one, or set spec.controlPlaneEndpoint.host";
                made.put(&mut decision.object.metadata);
                decision.again_in(crate::error::PATIENCE);
                return ready(look, decision, ConditionState::new(False, "NoAddress", message));
            }
            if !wanted.is_empty() && wanted.parse::<IpAddr>().is_err() {
                let message = format!(
                    "spec.controlPlaneEndpoint.host is {wanted:?}, which is no address; \
                                       leave it empty to have one chosen"
                );
                return ready(look, decision, ConditionState::new(False, "NoAddress", message));
            }
            calls.push(call);
        }
        Ok(address) => {
            served(look, facts, cluster, (network, address), &mut made, &mut calls, decision);
        }
    }
    made.put(&mut decision.object.metadata);
    if !calls.is_empty() {
        return ask(look, decision, "SettingUp", calls);
    }
    decision.object.metadata.annotations.insert(SETTLED_WITH.to_owned(), allowed(cluster).join(","));
    let status = &mut decision.object.status;
    status.ready = true;
    status.initialization.provisioned = Some(true);
    ready(look, decision, ConditionState::new(True, reason::PROVISIONED, ""));
    if look.seen.ill {
        decision.again_in(UNWELL);
    }
    mark::keep(look, Some(network), cluster, decision);
}

/// A call came to a good end, whatever its details were.
fn happened(look: &Look<IsolatedNetworks>, which: impl Fn(&NetworkCall) -> bool) -> bool {
    look.concluded.iter().any(|known| known.result.is_some() && which(&known.call))
}

/// An address was taken for a network by a call that asked for it.
fn took(look: &Look<IsolatedNetworks>, network: &Network, wanted: Option<IpAddr>) -> bool {
    happened(look, |call| {
        matches!(call, NetworkCall::Associate { network: of, address, .. }
            if *of == network.id.as_str() && *address == wanted)
    })
}

/// Has the network made.
fn create(
    look: &Look<IsolatedNetworks>,
    facts: &Facts,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    let Some(domain) = &look.seen.domain else { return };
    match NetworkOrder::of(&look.object, domain, cluster, facts) {
        Ok(order) => {
            let call =
                NetworkCall::Create { name: look.object.spec.name.clone(), order: Some(Box::new(order)) };
            ask(look, decision, "CreatingNetwork", vec![call]);
        }
        Err(cause) => {
            cause.wait(decision);
            ready(look, decision, ConditionState::new(False, cause.reason, cause.text()));
        }
    }
}

/// The address of the endpoint, or the call that gets one.
fn address<'a>(
    look: &Look<IsolatedNetworks>,
    facts: &'a Facts,
    cluster: &CloudStackCluster,
    network: &Network,
    ours: bool,
) -> Result<&'a PublicIpAddress, NetworkCall> {
    let find = |is: &dyn Fn(&PublicIpAddress) -> bool| facts.addresses.iter().find(|address| is(address));
    let call = |address| NetworkCall::Associate {
        network: network.id.to_string(),
        address,
        owner: facts.owner.clone(),
    };
    let known = &look.object.status.public_ip_id;
    if let Some(address) = find(&|address| !known.is_empty() && address.id.as_str() == known) {
        return Ok(address);
    }
    let wanted = cluster.spec.control_plane_endpoint.host.parse().ok().filter(|_| !look.seen.elsewhere);
    if wanted.is_some() {
        return find(&|address| Some(address.ipaddress) == wanted).ok_or_else(|| call(wanted));
    }
    let tag = names::cluster_tag(&cluster.metadata.uid);
    let took = |address: &PublicIpAddress| took(look, network, Some(address.ipaddress));
    find(&|address| address.tags.iter().any(|known| known.key.eq_ignore_ascii_case(&tag)))
        .or_else(|| find(&took))
        .or_else(|| find(&|address| ours && address.issourcenat))
        .or_else(|| find(&|_| ours))
        .ok_or_else(|| call(facts.free.filter(|_| !ours)))
}

/// What has to be on the address.
fn served(
    look: &Look<IsolatedNetworks>,
    facts: &Facts,
    cluster: &CloudStackCluster,
    (network, address): (&Network, &PublicIpAddress),
    made: &mut Made,
    calls: &mut Vec<NetworkCall>,
    decision: &mut Decision,
) {
    let port = u16::try_from(cluster.spec.control_plane_endpoint.port).ok().filter(|port| *port != 0);
    let port = port.unwrap_or(6443);
    let id = address.id.to_string();
    let ours = is_ours(network);
    for wanted in [Some(address.ipaddress), None] {
        if took(look, network, wanted) {
            made.address = Some(id.clone());
        }
    }
    // What is on a network of our own goes with it and needs no mark.
    if !ours && made.address.as_ref() == Some(&id) && address.tags.is_empty() {
        calls.push(NetworkCall::Tag { id: id.clone(), address: true, tags: mark::tags(cluster) });
    }
    let endpoint = &mut decision.object.spec.control_plane_endpoint;
    endpoint.host = address.ipaddress.to_string();
    endpoint.port = port.into();
    decision.object.status.public_ip_id.clone_from(&id);
    let allowed = allowed(cluster);
    let open = allowed == [EVERYBODY];
    let balance = NetworkCall::Balance { network: network.id.to_string(), address: id.clone(), port, open };
    let Some(rule) = facts.rule_on(&id, port) else {
        calls.push(balance);
        return openings(look, facts, (&id, port), &allowed, open, made, calls);
    };
    decision.object.status.load_balancer_rule_id = rule.id.to_string();
    if look.result_of(&balance).is_some() {
        made.rule = Some(rule.id.to_string());
    }
    // Made with the rule, and not seen by us since.
    let comes_along = open && look.result_of(&balance).is_some();
    openings(look, facts, (&id, port), &allowed, comes_along, made, calls);
}

fn openings(
    look: &Look<IsolatedNetworks>,
    facts: &Facts,
    (address, port): (&str, u16),
    allowed: &[String],
    comes_along: bool,
    made: &mut Made,
    calls: &mut Vec<NetworkCall>,
) {
    for cidr in allowed {
        let call = NetworkCall::Open { address: address.to_owned(), port, cidr: cidr.clone() };
        match facts.openings_on(address, port).find(|(_, who)| who == cidr) {
            Some((rule, _)) if look.result_of(&call).is_some() => {
                made.openings.insert(rule.id.to_string());
            }
            None if !comes_along => calls.push(call),
            _ => {}
        }
    }
    for (rule, who) in facts.openings_on(address, port) {
        if !allowed.iter().any(|cidr| cidr == who) {
            calls.push(NetworkCall::Close { rule: rule.id.to_string() });
            made.openings.remove(rule.id.as_str());
        }
    }
}
