//! `Reconciling`: why an object is not yet what its spec says, for tools that wait by the rules of kstatus, such as Flux.
//!
//! Cluster API's kinds report `Available`, which kstatus does not read, and which stays True in the middle of a rollout.
//! Without this condition a Cluster counts as finished before its first machine exists
//! (kubernetes-sigs/cluster-api#9299). The condition is removed when the object is settled, so a settled object is the
//! same as upstream's.

use capstan_capi_types::core::reason;
use capstan_controller::{Controller, Look};
use capstan_object::kstatus::Progress;
use capstan_object::kstatus::condition::RECONCILING;
use capstan_object::{Condition, ConditionStatus};

use super::{ConditionState, set_state};

/// Reason: another object has to be reconciled first.
const WAITING_FOR_PARTS: &str = "WaitingForParts";

/// Sets the condition, or removes it if nothing is unfinished.
pub fn set_reconciling<C: Controller>(
    look: &Look<C>,
    conditions: &mut Vec<Condition>,
    unfinished: Option<ConditionState>,
) {
    match unfinished {
        Some(state) => set_state(look, conditions, RECONCILING, state, None),
        None => conditions.retain(|condition| condition.kind != RECONCILING),
    }
}

/// Something that is unfinished.
pub fn unfinished(reason: &str, message: impl Into<String>) -> ConditionState {
    ConditionState::new(ConditionStatus::True, reason, message)
}

/// What a part of the object still has to do; `what` is how the part is named.
pub fn part(what: &str, progress: Progress) -> Option<ConditionState> {
    let why = match progress {
        Progress::Current => return None,
        Progress::InProgress(why) | Progress::Failed(why) => why,
        Progress::Terminating => "is being deleted".to_owned(),
    };
    let message = if why.is_empty() { format!("{what} is in progress") } else { format!("{what}: {why}") };
    Some(unfinished(WAITING_FOR_PARTS, message))
}

/// Counts of machines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub wanted: i32,
    pub existing: i32,
    pub ready: i32,
    pub available: i32,
}

impl Counts {
    /// What is missing.
    pub fn unfinished(self) -> Option<ConditionState> {
        let Self { wanted, existing, ready, available } = self;
        let (reason, message) = if existing < wanted {
            (reason::SCALING_UP, format!("Scaling up from {existing} to {wanted} replicas"))
        } else if existing > wanted {
            (reason::SCALING_DOWN, format!("Scaling down from {existing} to {wanted} replicas"))
        } else if ready < wanted {
            (reason::NOT_READY, format!("{ready} of {wanted} replicas are ready"))
        } else if available < wanted {
            (reason::NOT_AVAILABLE, format!("{available} of {wanted} replicas are available"))
        } else {
            return None;
        };
        Some(unfinished(reason, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_compared_as_those_of_a_deployment() {
        for (wanted, existing, ready, available, expected) in [
            (3, 1, 1, 1, Some("Scaling up from 1 to 3 replicas")),
            (1, 2, 2, 2, Some("Scaling down from 2 to 1 replicas")),
            (2, 2, 1, 1, Some("1 of 2 replicas are ready")),
            (2, 2, 2, 1, Some("1 of 2 replicas are available")),
            (2, 2, 2, 2, None),
            (0, 0, 0, 0, None),
        ] {
            let state = Counts { wanted, existing, ready, available }.unfinished();
            assert_eq!(state.as_ref().map(|state| state.message.as_str()), expected);
        }
    }
}
