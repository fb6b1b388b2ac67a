//! The operation on a Cluster: what was asked for, and how far it is, step by step.
//!
//! ```text
//! deletion, versions, counts, what is broken ──▶ opens an operation, if it is another request than the last one
//! conditions, machines                       ──▶ facts.rs ──▶ steps.rs: steps begin, go on and end
//! ```
//!
//! One operation at a time, in an annotation beside the finalizer and the endpoint. It changes when a step does and at no
//! other time: a cluster at rest is not written to. When it is over, how long its steps took is kept for the next one.

mod facts;
mod steps;
#[cfg(test)]
mod tests;

use capstan_controller::operation::{History, Intention, Operation};
use capstan_controller::{Decision, Look};

use super::ClusterController;
use facts::Facts;

/// Opens an operation if something new was asked for, and says how far it is.
pub(super) fn follow(look: &Look<ClusterController>, decision: &mut Decision<ClusterController>) {
    let held = Operation::of(&look.object.metadata);
    let facts = Facts::of(look, decision);
    let Some(mut operation) = opened(held.clone(), &facts) else { return };
    steps::advance(&mut operation, &facts);
    steps::blocked(&mut operation, held.as_ref(), &facts);
    if held.as_ref() == Some(&operation) {
        return;
    }
    // Plain data with text for keys can always be written.
    let meta = &mut decision.object.metadata;
    let _ = operation.put(meta);
    if operation.is_over() {
        let mut history = History::of(meta);
        history.learn(&operation);
        let _ = history.put(meta);
    }
}

/// The operation that goes on, or one that is opened now.
fn opened(held: Option<Operation>, facts: &Facts<'_>) -> Option<Operation> {
    if facts.deleting {
        let goes_on = held.filter(|held| held.intention == Intention::Delete);
        return goes_on.or_else(|| Some(steps::begin(Intention::Delete, facts)));
    }
    let Some(mut held) = held else {
        // What came here as a whole cluster was not made here.
        let intention = if facts.was_initialized { facts.unprompted(true) } else { Some(Intention::Create) };
        return intention.map(|intention| steps::begin(intention, facts));
    };
    // Without the objects it consists of nobody can tell what is wanted.
    if !facts.found || held.target == facts.target {
        return match held.is_over() {
            false => Some(held),
            true if !facts.found => None,
            true => facts.unprompted(false).map(|intention| steps::begin(intention, facts)),
        };
    }
    let intention = if facts.another_version(&held.target) { Intention::Upgrade } else { Intention::Scale };
    let same = match held.intention {
        Intention::Create => true,
        Intention::Upgrade | Intention::Scale => {
            held.intention == intention || held.intention == Intention::Upgrade
        }
        _ => false,
    };
    if same && !held.is_over() {
        // More of the same, or part of it: it has another end now.
        held.target = facts.target.clone();
        held.generation = facts.generation;
        return Some(held);
    }
    Some(steps::begin(intention, facts))
}
