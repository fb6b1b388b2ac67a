//! The operation on a Cluster: its intention, and the progress of its steps.
//!
//! ```text
//! deletion, versions, counts, failures ──▶ opens an operation if the intention or target differs from the last one
//! conditions, machines                 ──▶ progress.rs ──▶ steps.rs: steps begin, advance and end
//! ```
//!
//! One operation at a time, stored in an annotation. It changes only when a step does: an idle cluster is not written
//! to. When it has finished, the durations of its steps are kept for the next estimate, unless an error blocked it or its
//! request was taken back.

mod progress;
mod steps;
#[cfg(test)]
mod tests;

use capstan_controller::operation::{History, Intention, Operation};
use capstan_controller::{Decision, Look};

use super::ClusterController;
use progress::ClusterProgress;

/// Opens an operation if the desired state changed, and updates its progress.
pub(super) fn update(look: &Look<ClusterController>, decision: &mut Decision<ClusterController>) {
    let held = Operation::of(&look.object.metadata);
    let progress = ClusterProgress::of(look, decision);
    let Some(mut operation) = opened(held.clone(), &progress) else { return };
    steps::advance(&mut operation, &progress);
    steps::blocked(&mut operation, held.as_ref(), &progress);
    if held.as_ref() == Some(&operation) {
        return;
    }
    // Plain data always serializes.
    let meta = &mut decision.object.metadata;
    let _ = operation.put(meta);
    if operation.is_over() {
        let mut history = History::of(meta);
        history.learn(&operation);
        let _ = history.put(meta);
    }
}

/// The current operation, or a new one.
fn opened(held: Option<Operation>, progress: &ClusterProgress<'_>) -> Option<Operation> {
    if progress.deleting {
        let goes_on = held.filter(|held| held.intention == Intention::Delete);
        return goes_on.or_else(|| Some(steps::begin(Intention::Delete, progress)));
    }
    let Some(mut held) = held else {
        // A cluster that is complete when first observed was not created here.
        let intention =
            if progress.was_initialized { progress.unexplained_work(true) } else { Some(Intention::Create) };
        return intention.map(|intention| steps::begin(intention, progress));
    };
    // Without its objects the target is unknown.
    if !progress.found || held.target == progress.target {
        return match held.is_over() {
            false => Some(held),
            true if !progress.found => None,
            true => progress.unexplained_work(false).map(|intention| steps::begin(intention, progress)),
        };
    }
    let intention =
        if progress.another_version(&held.target) { Intention::Upgrade } else { Intention::Scale };
    let same = match held.intention {
        Intention::Create => true,
        Intention::Upgrade | Intention::Scale => {
            held.intention == intention || held.intention == Intention::Upgrade
        }
        _ => false,
    };
    if same && !held.is_over() {
        // The same intention with another target.
        held.retarget(progress.target.clone());
        held.generation = progress.generation;
        return Some(held);
    }
    Some(Operation { origin: held.target, ..steps::begin(intention, progress) })
}
