//! What is done about a CloudStackFailureDomain.

use capstan_capi_core::conditions::{ConditionState, set_state, shortened};
use capstan_capi_core::paused;
use capstan_capi_types::core::{condition, label, reason};
use capstan_cloudstack_client::model::GuestType;
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::names::finalizer::FAILURE_DOMAIN as FINALIZER;
use capstan_cloudstack_types::v1beta3::{
    CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackIsolatedNetworkSpec,
    CloudStackIsolatedNetworkStatus,
};
use capstan_controller::{Effect, Look, NoCall, Note, ObjectRef, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::{Conditions, ObjectMeta, OwnerReference};
use capstan_provider_kit::problem;
use serde_json::json;

use super::{FailureDomains, ZoneAndNetwork, evacuate, in_use};
use crate::error::{CloudError, PATIENCE};
use crate::isolated_network::Made;

type Decision = capstan_controller::Decision<FailureDomains>;

/// The type of networks that have a router of their own.
pub(crate) const ISOLATED: &str = "Isolated";

/// Names shown of things that are waited for.
const SHOWN: usize = 3;

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<FailureDomains>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        if look.object.metadata.is_deleting() {
            delete(look, &mut decision);
        } else if look.seen.owner.is_some() {
            keep(look, &mut decision);
            let event = problem(&look.object.status.conditions, &decision.object.status.conditions);
            decision.notes.extend(event);
        } else {
            decision.wait(Wait::on("WaitingForOwner", "the CloudStackCluster that this belongs to"));
            return decision;
        }
    }
    let verdict = paused::condition(look.paused.as_deref());
    set_state(look, &mut decision.object.status.conditions, condition::PAUSED, verdict, None);
    decision
}

fn ready(look: &Look<FailureDomains>, decision: &mut Decision, verdict: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn waiting(look: &Look<FailureDomains>, decision: &mut Decision, reason: &str, what: String) {
    decision.wait(Wait::on(reason, what.as_str()));
    ready(look, decision, ConditionState::new(False, reason, what));
}

fn failed(look: &Look<FailureDomains>, decision: &mut Decision, cause: &CloudError) {
    cause.wait(decision);
    ready(look, decision, ConditionState::new(False, cause.reason, cause.text()));
}

fn keep(look: &Look<FailureDomains>, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    match &look.seen.place {
        Some(Err(cause)) => return failed(look, decision, cause),
        Some(Ok(place)) => fill_in(place, decision),
        None => {}
    }
    let network = &decision.object.spec.zone.network;
    // What does not exist yet will be made, and isolated.
    if network.kind == ISOLATED || network.id.is_empty() {
        let plain = names::isolated_network_object(cluster_name(look), &network.name);
        let own_name =
            names::isolated_network_object_of(cluster_name(look), &network.name, &decision.object.spec.name);
        let own = look.seen.networks.iter().find(|own| [&plain, &own_name].contains(&&own.metadata.name));
        let own = match (own, &look.seen.namesake) {
            (Some(own), _) => own,
            // Both are about one network.
            (None, Some(other)) if other.zone == decision.object.spec.zone.id => &other.network,
            (None, Some(other)) if other.zone.is_empty() => {
                let what = format!(
                    "network {} of failure domain {} has the same name, and its zone is not known yet",
                    other.network.spec.name, other.network.spec.failure_domain_name
                );
                decision.again_in(PATIENCE);
                return waiting(look, decision, "WaitingForNetwork", what);
            }
            (None, other) => {
                let made = new_network(look, decision, if other.is_some() { own_name } else { plain });
                decision.then(Effect::create(&made));
                return waiting(
                    look,
                    decision,
                    "WaitingForNetwork",
                    "the network is being reconciled".to_owned(),
                );
            }
        };
        if !own.status.ready {
            let said = own.status.conditions.condition(condition::READY);
            let said = said.map_or("it has not been reconciled yet", |ready| ready.message.as_str());
            let what = format!("network {}: {said}", own.spec.name);
            return waiting(look, decision, "WaitingForNetwork", what);
        }
        let network = &mut decision.object.spec.zone.network;
        network.id = own.spec.id.clone();
        network.kind = ISOLATED.to_owned();
        network.routing_mode.clone_from(&own.status.routing_mode);
        network.vpc = own.spec.vpc.clone().or(network.vpc.take());
    }
    decision.object.status.ready = true;
    decision.object.status.initialization.provisioned = Some(true);
    ready(look, decision, ConditionState::new(True, reason::PROVISIONED, ""));
}

/// What the cloud says of zone and network.
fn fill_in(place: &ZoneAndNetwork, decision: &mut Decision) {
    let zone = &mut decision.object.spec.zone;
    zone.id = place.zone.id.to_string();
    zone.name.clone_from(&place.zone.name);
    let Some(found) = &place.network else { return };
    zone.network.id = found.id.to_string();
    if let Some(name) = &found.name {
        zone.network.name.clone_from(name);
    }
    let isolated = found.r#type == Some(GuestType::Isolated);
    zone.network.kind = match &found.r#type {
        Some(kind) if !isolated => kind.to_string(),
        _ => ISOLATED.to_owned(),
    };
    zone.network.routing_mode = found.ip4routing.clone().unwrap_or_default();
    if let Some(id) = &found.vpcid {
        let vpc = zone.network.vpc.get_or_insert_default();
        vpc.id = id.to_string();
        vpc.name = found.vpcname.clone().unwrap_or_default();
    }
}

fn cluster_name(look: &Look<FailureDomains>) -> &str {
    look.object.metadata.labels.get(label::CLUSTER_NAME).map_or("", String::as_str)
}

fn new_network(look: &Look<FailureDomains>, decision: &Decision, name: String) -> CloudStackIsolatedNetwork {
    let own = &look.object.metadata;
    let mut metadata = ObjectMeta::named(own.namespace.as_str(), name);
    metadata.labels.insert(label::CLUSTER_NAME.to_owned(), cluster_name(look).to_owned());
    metadata.owner_references.push(OwnerReference::controlled_by(&*look.object));
    let clusters = look.seen.owner.iter().map(|owner| owner.metadata.uid.clone()).collect();
    Made { clusters, ..Made::default() }.put(&mut metadata);
    let endpoint = look.seen.owner.as_ref().map(|owner| owner.spec.control_plane_endpoint.clone());
    let network = &decision.object.spec.zone.network;
    CloudStackIsolatedNetwork {
        metadata,
        spec: CloudStackIsolatedNetworkSpec {
            control_plane_endpoint: endpoint.unwrap_or_default(),
            failure_domain_name: decision.object.spec.name.clone(),
            name: network.name.clone(),
            id: network.id.clone(),
            gateway: network.gateway.clone(),
            netmask: network.netmask.clone(),
            offering: network.offering.clone(),
            vpc: network.vpc.clone(),
        },
        status: CloudStackIsolatedNetworkStatus::default(),
    }
}

fn delete(look: &Look<FailureDomains>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    // A cluster without machines has nobody who needs the endpoint.
    if let Some(owner) =
        look.seen.owner.as_ref().filter(|_| look.seen.has_endpoint && !look.seen.members.is_empty())
    {
        return failed(look, decision, &in_use(&look.object, owner));
    }
    decision.object.status.ready = false;
    let machines = &look.seen.machines;
    if !machines.is_empty() {
        let names = shortened(machines, SHOWN);
        let next = match look.seen.occupants.is_empty() {
            true => "delete or replace their Machines".to_owned(),
            false => match evacuate::next(&look.seen.occupants, &look.seen.members) {
                Ok(machine) => {
                    let name = &machine.metadata.name;
                    let message = format!("Machine {name} leaves failure domain {}", look.object.spec.name);
                    decision.note(Note::normal("Evacuating", "Delete", message));
                    decision.then(Effect::delete(&**machine));
                    format!("Machine {name} is replaced")
                }
                Err(why) => why,
            },
        };
        let what = format!("these machines are still in it: {names}; {next}");
        return waiting(look, decision, reason::DELETING, what);
    }
    for group in look.seen.groups.iter().filter(|group| !group.metadata.is_deleting()) {
        decision.best_effort(Effect::delete(&**group));
    }
    let mut passed = None;
    for network in look.seen.networks.iter().filter(|network| !network.metadata.is_deleting()) {
        match look.seen.heirs.get(&network.metadata.uid) {
            Some(heir) => {
                decision.best_effort(handover(network, heir));
                passed = Some((network, heir));
            }
            None => {
                decision.best_effort(Effect::delete(&**network));
            }
        }
    }
    if let Some((network, heir)) = passed {
        let what = format!("network {} passes to failure domain {}", network.spec.name, heir.spec.name);
        return waiting(look, decision, reason::DELETING, what);
    }
    if let Some(network) = look.seen.networks.first() {
        let said = network.status.conditions.condition(condition::READY);
        let said = said.map_or("", |ready| ready.message.as_str());
        let what = format!("network {} is deleted first: {said}", network.spec.name);
        return waiting(look, decision, reason::DELETING, what);
    }
    if let Some(group) = look.seen.groups.first() {
        let what = format!("affinity group {} is deleted first", group.spec.name);
        return waiting(look, decision, reason::DELETING, what);
    }
    decision.remove_finalizer(FINALIZER);
}

/// Has a network belong to another failure domain whose machines are on it: its address, rules and egress stay until the
/// last failure domain goes.
fn handover(network: &CloudStackIsolatedNetwork, heir: &CloudStackFailureDomain) -> Effect<NoCall> {
    let mut owners = network.metadata.owner_references.clone();
    owners.retain(|owner| owner.controller != Some(true));
    owners.push(OwnerReference::controlled_by(heir));
    let change = json!({
        "metadata": {"ownerReferences": owners},
        "spec": {"failureDomainName": heir.spec.name},
    });
    Effect::merge_guarded(ObjectRef::to(network), &network.metadata, change)
}
