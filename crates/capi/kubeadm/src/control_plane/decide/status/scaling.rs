//! `ScalingUp` and `ScalingDown`.

use std::sync::Arc;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::machines::stale_deletions;
use capstan_capi_types::core::{Machine, reason};
use capstan_object::ConditionStatus;

use super::StatusInputs;

fn blocked(message: String, obstacles: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = obstacles.into_iter().map(|obstacle| format!("\n* {obstacle}")).collect();
    if lines.is_empty() { message } else { format!("{message} is blocked because:{}", lines.concat()) }
}

pub(super) fn scaling_up(inputs: &StatusInputs<'_>) -> ConditionState {
    if inputs.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (inputs.plane.machines.len(), inputs.wanted());
    let missing = inputs.missing_template.map(|kind| format!("{kind} does not exist"));
    if have >= want {
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return ConditionState::new(
            ConditionStatus::False,
            reason::NOT_SCALING_UP,
            message.unwrap_or_default(),
        );
    }
    let message = format!("Scaling up from {have} to {want} replicas");
    let message = blocked(message, inputs.obstacles.iter().cloned().chain(missing));
    ConditionState::new(ConditionStatus::True, reason::SCALING_UP, message)
}

pub(super) fn scaling_down(inputs: &StatusInputs<'_>, machines: &[Arc<Machine>]) -> ConditionState {
    if inputs.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (inputs.plane.machines.len(), inputs.wanted());
    if have <= want {
        return ConditionState::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let stale = Some(stale_deletions(machines, inputs.plane.now)).filter(|stale| !stale.is_empty());
    let message = format!("Scaling down from {have} to {want} replicas");
    let message = blocked(message, inputs.obstacles.iter().cloned().chain(stale));
    ConditionState::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

fn replicas_not_set() -> ConditionState {
    ConditionState::new(
        ConditionStatus::Unknown,
        reason::WAITING_FOR_REPLICAS_SET,
        "Waiting for spec.replicas set",
    )
}
