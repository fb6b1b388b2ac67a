//! What every decision about a provider's object begins and ends with.

use capstan_capi_core::conditions::set_state;
use capstan_capi_core::paused;
use capstan_capi_types::core::{annotation, condition};
use capstan_controller::{Controller, Decision, Look, Wait};
use capstan_object::{Condition, Object as _};

/// Decides about the infrastructure of a cluster, which somebody else altogether may look after: then not even its status
/// is ours.
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

/// Decides about the infrastructure of a machine.
pub fn decide_machine<C: Controller>(
    look: &Look<C>,
    conditions: fn(&mut C::Kind) -> &mut Vec<Condition>,
    delete: impl FnOnce(&Look<C>, &mut Decision<C>),
    keep: Option<impl FnOnce(&Look<C>, &mut Decision<C>)>,
) -> Decision<C> {
    decide(look, "the Machine that this is the infrastructure of", conditions, delete, keep)
}

/// Nothing while it is paused; an object that goes is deleted, one with an owner kept, and one without waits for it.
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
            keep(look, &mut decision);
        } else {
            decision.wait(Wait::on("WaitingForOwner", owner));
            return decision;
        }
    }
    let verdict = paused::condition(look.paused.as_deref());
    set_state(look, conditions(&mut decision.object), condition::PAUSED, verdict, None);
    decision
}
