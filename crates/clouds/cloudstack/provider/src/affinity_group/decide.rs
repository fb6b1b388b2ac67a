//! What is done about a CloudStackAffinityGroup.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_core::paused;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_types::names::finalizer::AFFINITY_GROUP as FINALIZER;
use capstan_controller::{Look, Wait};
use capstan_object::ConditionStatus::{False, True};
use capstan_provider_kit::retry::OrderStep;

use super::{AffinityGroups, GroupCall};
use crate::annotation;

type Decision = capstan_controller::Decision<AffinityGroups>;

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<AffinityGroups>) -> Decision {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        let deleting = look.object.metadata.is_deleting();
        match &look.seen.group {
            Some(Err(cause)) => {
                cause.wait(&mut decision);
                ready(look, &mut decision, ConditionState::new(False, cause.reason, cause.text()));
            }
            Some(Ok(Some(group))) if deleting => {
                let call = GroupCall::Delete { id: group.id.to_string(), owner: look.seen.owner.clone() };
                order(look, &mut decision, (reason::DELETING, annotation::DELETE_REFUSED), call);
            }
            Some(Ok(None)) if deleting => {
                decision.remove_finalizer(FINALIZER);
            }
            Some(Ok(Some(group))) => {
                decision.add_finalizer(FINALIZER);
                decision.object.metadata.annotations.remove(annotation::ORDER_REFUSED);
                decision.object.spec.id = group.id.to_string();
                decision.object.status.ready = true;
                decision.object.status.initialization.provisioned = Some(true);
                ready(look, &mut decision, ConditionState::new(True, reason::PROVISIONED, ""));
            }
            Some(Ok(None)) => {
                decision.add_finalizer(FINALIZER);
                let (name, kind) = (look.object.spec.name.clone(), look.object.spec.kind.clone());
                let call = GroupCall::Create { name, kind, owner: look.seen.owner.clone() };
                order(look, &mut decision, ("Creating", annotation::ORDER_REFUSED), call);
            }
            None if look.object.status.ready => {}
            None => {
                decision.wait(Wait::on("WaitingForOwner", "the failure domain that this belongs to"));
                return decision;
            }
        }
    }
    let verdict = paused::condition(look.paused.as_deref());
    set_state(look, &mut decision.object.status.conditions, condition::PAUSED, verdict, None);
    decision
}

fn ready(look: &Look<AffinityGroups>, decision: &mut Decision, verdict: ConditionState) {
    set_state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

/// Asks for a call, unless it was refused a moment ago.
fn order(
    look: &Look<AffinityGroups>,
    decision: &mut Decision,
    (reason, annotation): (&str, &str),
    call: GroupCall,
) {
    let refused = look.failure_of(&call).map(|failure| failure.error.to_string());
    match OrderStep::of(&look.object.metadata, annotation, refused, look.now) {
        OrderStep::Send => ask(look, decision, reason, call),
        OrderStep::Pause(refused) => {
            refused.put(&mut decision.object.metadata, annotation);
            let message = refused.pause(reason, look.now, decision);
            ready(look, decision, ConditionState::new(False, reason, message));
        }
    }
}

fn ask(look: &Look<AffinityGroups>, decision: &mut Decision, reason: &str, call: GroupCall) {
    let message = look.failure_of(&call).map(|failure| failure.error.to_string()).unwrap_or_default();
    ready(look, decision, ConditionState::new(False, reason, message));
    decision.call(call);
}
