//! Decisions about OpenStackFloatingIPPools.

use std::collections::{BTreeSet, VecDeque};

use capstan_capi_core::conditions::{ConditionState, set_state, shortened};
use capstan_capi_types::ipam::{
    IPAddress, IPAddressClaim, IPAddressClaimReference, IPAddressSpec, IPPoolReference,
};
use capstan_controller::{Effect, Look, Note, ObjectRef, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Object as _, ObjectMeta, OwnerReference};
use capstan_openstack_types::names::{self, finalizer};
use capstan_openstack_types::v1alpha1::OpenStackFloatingIPPool;
use capstan_provider_kit::decide_machine;
use serde_json::json;

use super::OpenStackFloatingIPPools;
use super::call::PoolCall;
use super::observed::{Held, PoolState};
use crate::condition::{self, reason};
use crate::project::LOOK_AGAIN;
use crate::{events, mark};

type Decision = capstan_controller::Decision<OpenStackFloatingIPPools>;

/// Claims in a message.
const SHOWN: usize = 3;
/// Length of the prefix of an address alone.
const WHOLE: i32 = 32;

pub(super) fn decide(look: &Look<OpenStackFloatingIPPools>) -> Decision {
    let decision = decide_machine(look, |object| &mut object.status.conditions, delete, Some(keep));
    events::report(decision, events::of_pool)
}

fn set(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision, kind: &str, state: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, kind, state, None);
}

fn not_ready(
    look: &Look<OpenStackFloatingIPPools>,
    decision: &mut Decision,
    reason: &str,
    message: impl Into<String>,
) {
    set(look, decision, condition::POOL_READY, ConditionState::new(False, reason, message));
}

/// The pool's part of the project, unless the cloud cannot be asked.
fn state<'a>(look: &'a Look<OpenStackFloatingIPPools>, decision: &mut Decision) -> Option<&'a PoolState> {
    match &look.seen.cloud {
        Ok(state) => {
            set(look, decision, condition::AUTHENTICATED, ConditionState::new(True, reason::READY, ""));
            Some(state)
        }
        Err(error) => {
            error.wait(decision);
            if error.concerns_credentials() {
                let state = ConditionState::new(False, reason::AUTHENTICATION_FAILED, error.text());
                set(look, decision, condition::AUTHENTICATED, state);
            }
            not_ready(look, decision, error.reason, error.text());
            None
        }
    }
}

fn keep(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision) {
    decision.add_finalizer(finalizer::FLOATING_IP_POOL);
    let mark = mark::of(&look.object.metadata);
    decision.object.metadata.annotations.insert(mark::ANNOTATION.to_owned(), mark);
    let Some(state) = state(look, decision) else { return };
    decision.again_in(state.next_round.unwrap_or(LOOK_AGAIN));
    release(look, decision, state);
    set_tags(look, decision, state);
    report(look, decision, state);
    let network = match &state.network {
        Ok(network) => network,
        Err(error) => {
            error.wait(decision);
            return not_ready(look, decision, reason::NO_NETWORK, error.text());
        }
    };
    decision.object.status.floating_ip_network = Some(network.clone());
    serve(look, decision, state, &network.id);
}

/// An address that is not being deleted.
fn live(look: &Look<OpenStackFloatingIPPools>) -> impl Iterator<Item = &IPAddress> {
    look.seen.addresses.iter().map(|address| &**address).filter(|address| !address.metadata.is_deleting())
}

/// Floating IPs that nobody has: those of the spec first.
fn free<'a>(look: &Look<OpenStackFloatingIPPools>, state: &'a PoolState) -> Vec<&'a str> {
    let given: BTreeSet<&str> =
        look.object.spec.pre_allocated_floating_ips.iter().map(String::as_str).collect();
    let claimed: BTreeSet<&str> = look.seen.addresses.iter().map(|it| it.spec.address.as_str()).collect();
    let is_free = |(address, held): &(&'a String, &Held)| {
        // One that leads elsewhere is in use, whoever let it.
        !held.is_used && !claimed.contains(address.as_str())
    };
    let mut free: Vec<&str> =
        state.held.iter().filter(is_free).map(|(address, _)| address.as_str()).collect();
    free.sort_by_key(|address| !given.contains(address));
    free
}

fn report(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision, state: &PoolState) {
    let status = &mut decision.object.status;
    status.claimed_ips = live(look).map(|address| address.spec.address.clone()).collect();
    status.available_ips = free(look, state).into_iter().map(str::to_owned).collect();
    let given = &look.object.spec.pre_allocated_floating_ips;
    status.failed_ips = given.iter().filter(|address| !state.held.contains_key(*address)).cloned().collect();
}

/// Gives floating IPs that were created the tag that CAPO finds them by.
fn set_tags(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision, state: &PoolState) {
    let tag = names::floating_ip_pool_tag(&look.object.metadata.name);
    for held in state.held.values().filter(|held| held.created && !held.tags.contains(&tag)) {
        let tags = held.tags.iter().cloned().chain([tag.clone()]).collect();
        decision.best_effort(Effect::Call(PoolCall::SetTags { id: held.id.clone(), tags }));
    }
}

/// Each address by itself: deletes those whose claim is gone, and takes back floating IPs of those that are deleted.
/// An address keeps its finalizer until its floating IP was seen to be gone.
fn release(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision, state: &PoolState) {
    let claimed: BTreeSet<&str> = look.seen.claims.iter().map(|claim| claim.metadata.name.as_str()).collect();
    for address in &look.seen.addresses {
        let meta = &address.metadata;
        if !meta.is_deleting() {
            if !claimed.contains(address.spec.claim_ref.name.as_str()) {
                decision.best_effort(Effect::delete(&**address));
            }
            continue;
        }
        if !meta.finalizers.iter().any(|name| name == finalizer::DELETE_FLOATING_IP) {
            continue;
        }
        let held = state.held.get(&address.spec.address);
        match held.filter(|held| held.created && look.object.spec.reclaim_policy == "Delete") {
            Some(held) => delete_address(held, &address.spec.address, decision),
            None => {
                let left: Vec<&String> =
                    meta.finalizers.iter().filter(|name| *name != finalizer::DELETE_FLOATING_IP).collect();
                let change = json!({"metadata": {"finalizers": left}});
                decision.best_effort(Effect::merge_guarded(ObjectRef::to(&**address), meta, change));
            }
        }
    }
}

fn delete_address(held: &Held, address: &str, decision: &mut Decision) {
    let note = Note::normal("SuccessfulDeleteFloatingIP", "Delete", format!("Deleted floating IP {address}"));
    decision.best_effort_noting(Effect::Call(PoolCall::DeleteAddress { id: held.id.clone() }), note);
}

/// Gives claims an address, each by itself.
fn serve(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision, state: &PoolState, network: &str) {
    let mut free: VecDeque<&str> = free(look, state).into();
    let mut taken = live(look).count();
    let most = look.object.spec.max_ips.and_then(|most| usize::try_from(most).ok());
    let mut waiting = Vec::new();
    let mut orders = Vec::new();
    let mut failure = None;
    for claim in look.seen.claims.iter().filter(|claim| !claim.metadata.is_deleting()) {
        let name = &claim.metadata.name;
        let given = look.seen.addresses.iter().find(|address| address.metadata.name == *name);
        if let Some(given) = given {
            if given.metadata.is_deleting() {
                waiting.push(name.clone());
            } else if claim.status.address_ref.name != *name {
                let status = json!({"addressRef": {"name": name}});
                let target = ObjectRef::to(&**claim);
                decision.best_effort(Effect::merge_status_guarded(target, &claim.metadata, &status));
            }
        } else if let Some(address) = free.pop_front() {
            taken += 1;
            let note = Note::normal("AddressClaimed", "Create", format!("Gave {address} to claim {name}"));
            decision.best_effort_noting(Effect::create(&ip_address(&look.object, claim, address)), note);
        } else if most.is_some_and(|most| taken >= most) {
            waiting.push(name.clone());
        } else {
            taken += 1;
            let call = create(&look.object, name, network);
            failure = failure.or_else(|| Some(look.failure_of(&call)?.error.to_string()));
            orders.push(call);
        }
    }
    // Last, and one failure ends them: what the cloud refuses once, such as for a quota, it refuses again.
    for call in orders {
        decision.call(call);
    }
    match (failure, waiting.is_empty()) {
        (Some(why), _) => not_ready(look, decision, reason::OPENSTACK_ERROR, why),
        (None, true) => {
            let ready = ConditionState::new(True, reason::READY, "");
            set(look, decision, condition::POOL_READY, ready);
        }
        (None, false) => {
            let message = format!(
                "the pool has allocated {taken} addresses, its maximum: raise spec.maxIPs, add preallocated addresses, or \
                 delete claims; claims that wait: {}",
                shortened(&waiting, SHOWN)
            );
            decision.wait(Wait::on(reason::MAX_IPS, message.as_str()));
            not_ready(look, decision, reason::MAX_IPS, message);
        }
    }
}

/// CAPO's description, with what identifies the floating IP in the pool.
fn create(object: &OpenStackFloatingIPPool, claim: &str, network: &str) -> PoolCall {
    let meta = &object.metadata;
    let words = format!(
        "Created by cluster-api-provider-openstack OpenStackFloatingIPPool {} for claim {claim}",
        meta.name
    );
    PoolCall::CreateAddress { description: mark::with(&words, &mark::of(meta)), network: network.to_owned() }
}

fn ip_address(object: &OpenStackFloatingIPPool, claim: &IPAddressClaim, address: &str) -> IPAddress {
    let of = &claim.metadata;
    let mut metadata = ObjectMeta::named(of.namespace.as_str(), of.name.as_str());
    metadata.finalizers.push(finalizer::DELETE_FLOATING_IP.to_owned());
    metadata.owner_references.push(OwnerReference::controlled_by(claim));
    let kind = OpenStackFloatingIPPool::KIND;
    IPAddress {
        metadata,
        spec: IPAddressSpec {
            claim_ref: IPAddressClaimReference { name: of.name.clone() },
            pool_ref: IPPoolReference {
                name: object.metadata.name.clone(),
                kind: kind.kind.to_owned(),
                api_group: kind.group.to_owned(),
            },
            address: address.to_owned(),
            prefix: Some(WHOLE),
            ..IPAddressSpec::default()
        },
    }
}

/// Addresses go first, then the floating IPs that were created for the pool, whatever its policy. Those of its spec stay.
fn delete(look: &Look<OpenStackFloatingIPPools>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == finalizer::FLOATING_IP_POOL) {
        return;
    }
    let Some(state) = state(look, decision) else { return };
    decision.again_in(state.next_round.unwrap_or(LOOK_AGAIN));
    release(look, decision, state);
    report(look, decision, state);
    if !look.seen.addresses.is_empty() {
        let names: Vec<String> = look.seen.addresses.iter().map(|it| it.metadata.name.clone()).collect();
        let message =
            format!("the pool is kept until these addresses are released: {}", shortened(&names, SHOWN));
        decision.wait(Wait::on(reason::ADDRESSES_IN_USE, message.as_str()));
        return not_ready(look, decision, reason::ADDRESSES_IN_USE, message);
    }
    let created: Vec<(&String, &Held)> = state.held.iter().filter(|(_, held)| held.created).collect();
    if created.is_empty() {
        decision.remove_finalizer(finalizer::FLOATING_IP_POOL);
        return;
    }
    for (address, held) in created {
        delete_address(held, address, decision);
    }
}
