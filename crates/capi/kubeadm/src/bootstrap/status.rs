//! Conditions of a KubeadmConfig.

use capstan_capi_types::bootstrap::kubeadm_config::condition::{
    CERTIFICATES_AVAILABLE, DATA_SECRET_AVAILABLE,
};
use capstan_capi_types::core::condition::{PAUSED, READY};
use capstan_capi_types::core::reason;
use capstan_controller::{Decision, Look};
use capstan_object::{Condition, ConditionStatus, Conditions};

use super::BootstrapController;

/// The conditions that this controller writes.
pub(super) const OWNED: &[&str] = &[PAUSED, READY, CERTIFICATES_AVAILABLE, DATA_SECRET_AVAILABLE];

pub(super) fn set(
    decision: &mut Decision<BootstrapController>,
    look: &Look<BootstrapController>,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    decision.object.status.conditions.set_condition(look.condition(kind, status, reason, message));
}

/// Data exists, so the certificates existed too.
pub(super) fn available(decision: &mut Decision<BootstrapController>, look: &Look<BootstrapController>) {
    set(decision, look, DATA_SECRET_AVAILABLE, ConditionStatus::True, reason::AVAILABLE, "");
    set(decision, look, CERTIFICATES_AVAILABLE, ConditionStatus::True, reason::AVAILABLE, "");
}

pub(super) fn no_data(
    decision: &mut Decision<BootstrapController>,
    look: &Look<BootstrapController>,
    message: impl Into<String>,
) {
    set(decision, look, DATA_SECRET_AVAILABLE, ConditionStatus::False, reason::NOT_AVAILABLE, message);
}

/// Sets `Ready` from the other conditions, and `Paused`.
pub(super) fn summarise(decision: &mut Decision<BootstrapController>, look: &Look<BootstrapController>) {
    let parts: Vec<(&str, Option<Condition>)> = [DATA_SECRET_AVAILABLE, CERTIFICATES_AVAILABLE]
        .into_iter()
        .map(|kind| (kind, decision.object.status.conditions.condition(kind).cloned()))
        .collect();
    let with = |status: ConditionStatus| {
        let lines: Vec<String> = parts
            .iter()
            .filter(|(_, part)| part.as_ref().map_or(ConditionStatus::Unknown, |part| part.status) == status)
            .map(|(kind, part)| match part {
                Some(part) if !part.message.is_empty() => format!("* {kind}: {}", part.message),
                Some(_) => format!("* {kind}"),
                None => format!("* {kind}: not yet reported"),
            })
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    let (status, reason, message) = match (with(ConditionStatus::False), with(ConditionStatus::Unknown)) {
        (Some(message), _) => (ConditionStatus::False, reason::NOT_READY, message),
        (None, Some(message)) => (ConditionStatus::Unknown, reason::READY_UNKNOWN, message),
        (None, None) => (ConditionStatus::True, reason::READY, String::new()),
    };
    set(decision, look, READY, status, reason, message);
    paused(decision, look);
}

pub(super) fn paused(decision: &mut Decision<BootstrapController>, look: &Look<BootstrapController>) {
    let (status, reason, message) = match &look.paused {
        Some(why) => (ConditionStatus::True, reason::PAUSED, why.clone()),
        None => (ConditionStatus::False, reason::NOT_PAUSED, String::new()),
    };
    set(decision, look, PAUSED, status, reason, message);
    decision.object.status.observed_generation = look.object.metadata.generation;
}
