//! Conditions derived from other conditions: mirrored from another object, summarized from several of one object,
//! aggregated from many objects.
//!
//! Issues sort before Unknown, and Unknown before info. Messages are worded and truncated like upstream's, since
//! people and `clusterctl describe` read them.

mod external;
mod merge;
mod order;
mod reconciling;
pub mod v1beta1;

pub use external::{Fallback, NO_REASON, mirrored, of_external};
pub use merge::{ConditionState, Priority, Reasons, Source, Summary, aggregate, priority};
pub use order::sort;
pub use reconciling::{Counts, part, set_reconciling, unfinished};

use capstan_controller::{Controller, Look};
use capstan_object::{Condition, Conditions, Time};

/// Sets a condition and keeps the list in upstream's order.
pub fn set(conditions: &mut Vec<Condition>, condition: Condition) {
    conditions.set_condition(condition);
    sort(conditions);
}

/// Joins at most `most` names, then how many more there are.
pub fn shortened<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let mut shown: Vec<String> = names.iter().take(most).map(|name| name.as_ref().to_owned()).collect();
    if names.len() > most {
        shown.push(format!("... ({} more)", names.len() - most));
    }
    shown.join(", ")
}

/// Sets a condition of the reconciled object, with the time `since` or now.
pub fn set_state<C: Controller>(
    look: &Look<C>,
    conditions: &mut Vec<Condition>,
    kind: &str,
    state: ConditionState,
    since: Option<Time>,
) {
    let mut condition = look.condition(kind, state.status, &state.reason, state.message);
    if let Some(since) = since {
        condition.last_transition_time = since;
    }
    set(conditions, condition);
}
