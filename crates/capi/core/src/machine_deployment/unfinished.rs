//! What a deployment still has to do to be as its spec says.

use std::sync::Arc;

use capstan_capi_types::core::{MachineSet, reason};
use capstan_object::kstatus::Progress;

use super::choose::Choice;
use super::rollout::Strategy;
use super::status::StatusInputs;
use crate::conditions::{ConditionState, Counts, part, unfinished};

/// Unlike the conditions of machines, the choice of sets is always about the current template.
pub(super) fn still_to_do(inputs: &StatusInputs<'_>, choice: &Choice) -> Option<ConditionState> {
    let Some(wanted) = inputs.deployment.spec.replicas else {
        return Some(unfinished(reason::WAITING_FOR_REPLICAS_SET, "Waiting for spec.replicas set"));
    };
    // Machines of other templates stay until somebody deletes them.
    let keeps_old = *inputs.strategy == Strategy::OnDelete;
    let size = |set: &Arc<MachineSet>| set.spec.replicas.max(set.status.replicas).unwrap_or(0);
    let old: i32 = choice.old.iter().map(size).sum();
    if old > 0 && !keeps_old {
        let message = format!("Rolling out {old} not up-to-date replicas");
        return Some(unfinished(reason::ROLLING_OUT, message));
    }
    if choice.current.is_none() && !(keeps_old && old > 0) {
        return Some(unfinished(reason::ROLLING_OUT, "The MachineSet of the template does not exist yet"));
    }
    let sets = choice.current.iter().chain(choice.old.iter().filter(|set| size(set) > 0));
    let sets: Vec<_> = sets.collect();
    let total = |count: fn(&MachineSet) -> Option<i32>| sets.iter().filter_map(|set| count(set)).sum();
    let counts = Counts {
        wanted,
        existing: total(|set| set.spec.replicas),
        ready: total(|set| set.status.ready_replicas),
        available: total(|set| set.status.available_replicas),
    };
    let progress = |set: &&Arc<MachineSet>| {
        let progress =
            Progress::from(&set.metadata, Some(set.status.observed_generation), &set.status.conditions);
        part(&format!("MachineSet {}", set.metadata.name), progress)
    };
    counts.unfinished().or_else(|| sets.iter().find_map(progress))
}
