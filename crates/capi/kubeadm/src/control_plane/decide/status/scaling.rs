//! `ScalingUp` and `ScalingDown`.

use std::sync::Arc;

use capstan_capi_core::conditions::Verdict;
use capstan_capi_core::machines::stale_deletions;
use capstan_capi_types::core::{Machine, reason};
use capstan_object::ConditionStatus;

use super::Facts;

fn blocked(message: String, obstacles: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = obstacles.into_iter().map(|obstacle| format!("\n* {obstacle}")).collect();
    if lines.is_empty() { message } else { format!("{message} is blocked because:{}", lines.concat()) }
}

pub(super) fn scaling_up(facts: &Facts<'_>) -> Verdict {
    if facts.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (facts.plane.machines.len(), facts.wanted());
    let missing = facts.missing_template.map(|kind| format!("{kind} does not exist"));
    if have >= want {
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_UP, message.unwrap_or_default());
    }
    let message = format!("Scaling up from {have} to {want} replicas");
    let message = blocked(message, facts.obstacles.iter().cloned().chain(missing));
    Verdict::new(ConditionStatus::True, reason::SCALING_UP, message)
}

pub(super) fn scaling_down(facts: &Facts<'_>, machines: &[Arc<Machine>]) -> Verdict {
    if facts.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (facts.plane.machines.len(), facts.wanted());
    if have <= want {
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let stale = Some(stale_deletions(machines, facts.plane.now)).filter(|stale| !stale.is_empty());
    let message = format!("Scaling down from {have} to {want} replicas");
    let message = blocked(message, facts.obstacles.iter().cloned().chain(stale));
    Verdict::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

fn replicas_not_set() -> Verdict {
    Verdict::new(ConditionStatus::Unknown, reason::WAITING_FOR_REPLICAS_SET, "Waiting for spec.replicas set")
}
