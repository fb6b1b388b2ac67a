//! What is done about a CloudStackIsolatedNetwork.

use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_core::paused;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_client::model::Network;
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::names::finalizer::ISOLATED_NETWORK as FINALIZER;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Call, Failure, Look, Wait};
use capstan_object::ConditionStatus::{False, True, Unknown};
use capstan_provider_kit::retry::OrderStep;

use super::claim::Identity;
use super::endpoint::{Choice, Site};
use super::hints::Hints;
use super::limits;
use super::mark::{self, is_ours};
use super::{
    IsolatedNetworks, Made, NetworkCall, NetworkOrder, ObservedNetwork, VpcOrder, delete, refused, routed,
    settled, tagging, vpc,
};
use crate::account_cache::SETTLED;
use crate::annotation;
use crate::error::{CloudError, PATIENCE};

pub(super) type Decision = capstan_controller::Decision<IsolatedNetworks>;

/// How often the cloud is asked while the cluster is unavailable and nothing is missing.
const UNAVAILABLE: Duration = Duration::from_secs(300);

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<IsolatedNetworks>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        let deleting = look.object.metadata.is_deleting();
        match (&look.seen.observed, &look.seen.cluster) {
            (Some(Err(cause)), _) => {
                cause.wait(&mut decision);
                // What was set up is as it was last seen: a cloud that does not answer is no network that is gone.
                let settled = look.object.status.ready && !deleting;
                let status = if settled { Unknown } else { False };
                ready(look, &mut decision, ConditionState::new(status, cause.reason, cause.text()));
            }
            (Some(Ok(observed)), Some(cluster)) if deleting => {
                delete::delete(look, observed, cluster, &mut decision)
            }
            (Some(Ok(observed)), Some(cluster)) => keep(look, observed, cluster, &mut decision),
            (None, Some(cluster)) if look.object.status.ready => {
                look.seen.next_poll.map(|next| decision.again_in(next));
                tagging::keep(look, None, cluster, &mut decision);
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

/// Why a call failed, and what to do about it.
pub(super) fn failure_text(failure: &Failure<NetworkCall>) -> String {
    match &failure.call {
        Some(NetworkCall::Associate { address: Some(address), .. }) => format!(
            "{}; if spec.controlPlaneEndpoint.host asks for {address}: free it, choose another, or leave it empty to \
             have one chosen",
            failure.error
        ),
        _ => failure.error.to_string(),
    }
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
        Some(failure) => failure_text(failure),
        None => calls.iter().map(Call::summary).collect::<Vec<_>>().join(", "),
    };
    ready(look, decision, ConditionState::new(False, reason, message));
    for call in calls {
        decision.call(call);
    }
}

fn keep(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    decision.add_finalizer(FINALIZER);
    let spec = &look.object.spec;
    let Some(network) = &observed.network else {
        if !spec.id.is_empty() {
            let message = format!("network {} was there and is gone; it is not created again", spec.id);
            decision.object.status.ready = false;
            return ready(look, decision, ConditionState::new(False, "Gone", message));
        }
        return create(look, observed, cluster, decision);
    };
    decision.object.metadata.annotations.remove(annotation::ORDER_REFUSED);
    let mut made = Made::known(look, observed);
    let ours = is_ours(network);
    let id = network.id.to_string();
    decision.object.spec.id.clone_from(&id);
    let neighbours = &look.seen.neighbours;
    let identity = Identity::of(&look.object, cluster, Some(network), &observed.addresses, neighbours);
    made.clusters.clone_from(&identity.uids);
    made.taken_over = identity.taken_over;
    let mut calls = Vec::new();
    if let Some(vpc) = &observed.vpc {
        let spec = decision.object.spec.vpc.get_or_insert_default();
        spec.id = vpc.id.to_string();
        calls.extend(vpc::claim(vpc, &made, &identity, cluster));
    }
    // Another cluster's network is to outlive that cluster: it must know of us before anything is on it.
    // One that was made for us before we were taken over says so in its text.
    let by_text = identity.taken_over && mark::tag_in_text(network).is_some_and(|tag| identity.has(tag));
    if ours && !by_text && made.network.as_ref() != Some(&id) && !identity.is_on(&network.tags) {
        let missing = mark::missing(network, cluster);
        if !missing.is_empty() {
            calls.push(NetworkCall::Tag { id: id.clone(), address: false, tags: missing });
        }
    }
    egress(observed, cluster, (network, &identity), &made, &mut calls);
    let site = Site { look, observed, cluster, network, identity: &identity };
    let refused = match routed::is_routed(network) {
        true => site.routed(&mut made, &mut calls, decision).err(),
        false => match site.address(&made) {
            Choice::Have(address) => site.served(address, &mut made, &mut calls, decision).err(),
            Choice::Take(call) => match limits::refusal(look, &call) {
                Some(cause) => Some(cause),
                None => {
                    calls.push(call);
                    None
                }
            },
            Choice::Refused(cause) => Some(cause),
        },
    };
    made.put(&mut decision.object.metadata);
    let elsewhere = look.seen.elsewhere;
    let hints = |object| Hints { observed, network, object, cluster, made: &made, elsewhere };
    // Of a tier that was of use before, it is only reported: rules may be more than is understood here.
    let lacking = || hints(&look.object).lacking().filter(|_| !look.object.status.ready);
    if let Some(cause) = refused.or_else(lacking) {
        return refuse(look, decision, &cause);
    }
    if !calls.is_empty() {
        return refused::ask_paced(look, decision, "SettingUp", calls);
    }
    refused::forget(&mut decision.object.metadata);
    settled::record(&mut decision.object.metadata, cluster);
    let status = &mut decision.object.status;
    status.ready = true;
    status.initialization.provisioned = Some(true);
    let message = hints(&decision.object).message();
    ready(look, decision, ConditionState::new(True, reason::PROVISIONED, message));
    decision.again_in(if look.seen.cluster_unavailable { UNAVAILABLE } else { SETTLED });
    tagging::keep(look, Some(network), cluster, decision);
}

/// Has everything let out, unless somebody else decides what may go out. The rule serves all clusters on a network, so on
/// one that was there before, each of them records that it uses it, and whoever made it which it is.
fn egress(
    observed: &ObservedNetwork,
    cluster: &CloudStackCluster,
    (network, identity): (&Network, &Identity),
    made: &Made,
    calls: &mut Vec<NetworkCall>,
) {
    let id = network.id.to_string();
    if !observed.lets_out() && !observed.is_kept_in(made) {
        return calls.push(NetworkCall::LetOut { network: id, routed: routed::is_routed(network) });
    }
    if is_ours(network) || identity.taken_over || network.egressdefaultpolicy == Some(true) {
        return;
    }
    let mut tags: Vec<String> = made.exit.iter().map(|rule| mark::egress_tag(rule)).collect();
    tags.retain(|tag| !mark::is_tagged(&network.tags, tag));
    if !identity.is_on(&network.tags) {
        tags.push(names::cluster_tag(&cluster.metadata.uid));
    }
    if !tags.is_empty() {
        calls.push(NetworkCall::Tag { id, address: false, tags });
    }
}

/// Has the network made.
fn create(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    let Some(domain) = &look.seen.domain else { return };
    if let Some(wanted) = vpc::wanted(&look.object) {
        if let Some(first) = &look.seen.ordered_first {
            decision.again_in(PATIENCE);
            let vpc = if wanted.name.is_empty() { &wanted.id } else { &wanted.name };
            let what =
                format!("CloudStackIsolatedNetwork {first}, another tier of VPC {vpc}, is ordered first");
            return waiting(look, decision, "WaitingForVPC", &what);
        }
        let Some(vpc) = &observed.vpc else {
            return match VpcOrder::of(wanted, domain, cluster, observed) {
                Ok(order) => {
                    let call =
                        NetworkCall::CreateVpc { name: wanted.name.clone(), order: Some(Box::new(order)) };
                    order_within_limits(look, decision, "CreatingVPC", call);
                }
                Err(cause) => refuse(look, decision, &cause),
            };
        };
        decision.object.spec.vpc.get_or_insert_default().id = vpc.id.to_string();
        Made::known(look, observed).put(&mut decision.object.metadata);
    }
    match NetworkOrder::of(&look.object, domain, cluster, observed) {
        Ok(order) => {
            let call =
                NetworkCall::Create { name: look.object.spec.name.clone(), order: Some(Box::new(order)) };
            order_within_limits(look, decision, "CreatingNetwork", call);
        }
        Err(cause) => refuse(look, decision, &cause),
    }
}

fn refuse(look: &Look<IsolatedNetworks>, decision: &mut Decision, cause: &CloudError) {
    cause.wait(decision);
    ready(look, decision, ConditionState::new(False, cause.reason, cause.text()));
}

/// Asks for a call unless the account or the zone has too little for it.
fn order_within_limits(
    look: &Look<IsolatedNetworks>,
    decision: &mut Decision,
    reason: &str,
    call: NetworkCall,
) {
    // The order of a call may differ from that of the try before: it is the same effect.
    let failure = look.failures.iter().find(|failure| failure.effect == call.summary());
    let refused = failure.map(|failure| failure.error.to_string());
    if let OrderStep::Pause(refused) =
        OrderStep::of(&look.object.metadata, annotation::ORDER_REFUSED, refused, look.now)
    {
        refused.put(&mut decision.object.metadata, annotation::ORDER_REFUSED);
        let message = refused.pause(reason, look.now, decision);
        return ready(look, decision, ConditionState::new(False, reason, message));
    }
    match limits::refusal(look, &call) {
        Some(cause) => refuse(look, decision, &cause),
        None => ask(look, decision, reason, vec![call]),
    }
}
