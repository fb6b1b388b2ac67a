//! The common frame of decisions about a provider's objects.

use capstan_capi_core::conditions::set_state;
use capstan_capi_core::paused;
use capstan_capi_types::core::{annotation, condition};
use capstan_controller::{Controller, Decision, Look, Wait};
use capstan_object::{Condition, Object as _};

use crate::problem;

/// Decides about cluster infrastructure. If it is externally managed, nothing is written, not even its status.
pub fn decide_cluster<C: Controller>(
    look: &Look<C>,
    conditions: fn(&mut C::Kind) -> &mut Vec<Condition>,
    delete: impl FnOnce(&Look<C>, &mut Decision<C>),
    keep: Option<impl FnOnce(&Look<C>, &mut Decision<C>)>,
) -> Decision<C> {
    if look.object.metadata().annotations.contains_key(annotation::MANAGED_BY) {
        return Decision::rest(look);
    }
    decide(look, "the Cluster that this is the infrastructure of", conditions, delete, keep)
}

/// Decides about machine infrastructure.
pub fn decide_machine<C: Controller>(
    look: &Look<C>,
    conditions: fn(&mut C::Kind) -> &mut Vec<Condition>,
    delete: impl FnOnce(&Look<C>, &mut Decision<C>),
    keep: Option<impl FnOnce(&Look<C>, &mut Decision<C>)>,
) -> Decision<C> {
    decide(look, "the Machine that this is the infrastructure of", conditions, delete, keep)
}

/// Decides about the infrastructure of a MachinePool.
pub fn decide_pool<C: Controller>(
    look: &Look<C>,
    conditions: fn(&mut C::Kind) -> &mut Vec<Condition>,
    delete: impl FnOnce(&Look<C>, &mut Decision<C>),
    keep: Option<impl FnOnce(&Look<C>, &mut Decision<C>)>,
) -> Decision<C> {
    decide(look, "the MachinePool that this is the infrastructure of", conditions, delete, keep)
}

/// Does nothing while paused; deletes a deleted object, reconciles one with an owner, and waits for the owner
/// otherwise.
fn decide<C: Controller>(
    look: &Look<C>,
    owner: &str,
    conditions: fn(&mut C::Kind) -> &mut Vec<Condition>,
    delete: impl FnOnce(&Look<C>, &mut Decision<C>),
    keep: Option<impl FnOnce(&Look<C>, &mut Decision<C>)>,
) -> Decision<C> {
    let mut decision = Decision::rest(look);
    if look.paused.is_none() {
        if look.object.metadata().is_deleting() {
            delete(look, &mut decision);
        } else if let Some(keep) = keep {
            let before = conditions(&mut decision.object).clone();
            keep(look, &mut decision);
            let event = problem(&before, conditions(&mut decision.object));
            decision.notes.extend(event);
        } else {
            decision.wait(Wait::on("WaitingForOwner", owner));
            return decision;
        }
    }
    let state = paused::condition(look.paused.as_deref());
    set_state(look, conditions(&mut decision.object), condition::PAUSED, state, None);
    decision
}
