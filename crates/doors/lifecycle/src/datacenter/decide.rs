//! The status of a datacenter: set when CloudStack has everything, and reset when it has not.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_controller::{Decision, Look, Wait};
use capstan_object::ConditionStatus::{False, True, Unknown};

use super::{Datacenters, RETRY};

pub(super) fn decide(look: &Look<Datacenters>) -> Decision<Datacenters> {
    let mut decision = Decision::rest(look);
    if look.object.metadata.is_deleting() || look.paused.is_some() {
        return decision;
    }
    let status = &mut decision.object.status;
    let state = match &look.seen {
        Ok(()) => {
            status.spec_valid = true;
            status.failure_message = None;
            ConditionState::new(True, "Valid", "")
        }
        // The last answer about this generation still counts: a cloud that is down is not a datacenter that is wrong.
        Err(error)
            if error.reason == "CloudUnreachable"
                && status.spec_valid
                && status.observed_generation == look.object.metadata.generation =>
        {
            ConditionState::new(Unknown, error.reason, error.text())
        }
        Err(error) => {
            status.spec_valid = false;
            status.failure_message = Some(error.text());
            ConditionState::new(False, error.reason, error.text())
        }
    };
    status.observed_generation = look.object.metadata.generation;
    set_state(look, &mut status.conditions, "Ready", state, None);
    if let Err(error) = &look.seen {
        decision.wait(Wait::on(error.reason, error.message.as_str()).code(error.code));
        decision.again_in(RETRY);
    }
    decision
}
