//! Conditions of provider objects, in the format of either contract.

use capstan_capi_types::core::reason;
use capstan_object::{Condition, ConditionStatus, Time};
use jiff::Timestamp;
use serde_json::Value;

use super::ConditionState;

/// Reason of a condition without one, which the v1beta1 contract allows.
pub const NO_REASON: &str = "NoReasonReported";

/// The conditions of an object: those under `status.v1beta2` if there are any, else those under `status`.
pub fn of_external(object: &Value, kind: &str) -> Result<Vec<Condition>, String> {
    let status = &object["status"];
    let found = [
        (&status["v1beta2"]["conditions"], "status.v1beta2.conditions"),
        (&status["conditions"], "status.conditions"),
    ]
    .into_iter()
    .find_map(|(value, path)| value.as_array().map(|list| (list, path)));
    let Some((list, path)) = found else { return Ok(Vec::new()) };
    let usable = list.iter().filter(|condition| condition.is_object());
    usable
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|why| format!("failed to convert {path} from {kind} to []metav1.Condition: {why}"))
}

fn read(value: &Value) -> Result<Condition, String> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let kind = text("type");
    if kind.is_empty() {
        return Err("type must be set for all conditions".to_owned());
    }
    let status = match text("status") {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        "Unknown" => ConditionStatus::Unknown,
        "" => return Err(format!("status must be set for the {kind} condition")),
        _ => return Err(format!("status for the {kind} condition must be one of True, False, Unknown")),
    };
    let since = match text("lastTransitionTime") {
        "" => None,
        time => Some(
            time.parse::<Timestamp>()
                .map_err(|_| format!("failed to unmarshal lastTransitionTime value: {time}"))?,
        ),
    };
    Ok(Condition {
        kind: kind.to_owned(),
        status,
        observed_generation: None,
        last_transition_time: Time::new(since.unwrap_or(Timestamp::UNIX_EPOCH)),
        reason: if text("reason").is_empty() { NO_REASON.to_owned() } else { text("reason").to_owned() },
        message: text("message").to_owned(),
    })
}

/// The mirrored condition while the other object lacks it.
pub struct Fallback<'a> {
    /// The contract's flag with the same meaning.
    pub flag: bool,
    /// Reason while the flag is set, or of a True condition without a reason.
    pub holds: &'a str,
    /// Reason while the flag is not set.
    pub fails: &'a str,
    /// Message while the flag is not set.
    pub message: String,
}

/// Mirrors a condition of another object, with its transition time if the condition exists. Fails if the conditions are
/// malformed.
fn mirror(
    conditions: Result<Vec<Condition>, String>,
    kind: &str,
    fallback: Fallback<'_>,
) -> Result<(ConditionState, Option<Time>), String> {
    let Some(condition) = conditions?.into_iter().find(|condition| condition.kind == kind) else {
        let Fallback { flag, holds, fails, message } = fallback;
        return Ok(if flag {
            (ConditionState::new(ConditionStatus::True, holds, ""), None)
        } else {
            (ConditionState::new(ConditionStatus::False, fails, message), None)
        });
    };
    let since = Some(condition.last_transition_time).filter(|time| time.timestamp() != Timestamp::UNIX_EPOCH);
    let reason =
        if condition.reason == NO_REASON && condition.is_true() { fallback.holds } else { &condition.reason };
    Ok((ConditionState::new(condition.status, reason, condition.message), since))
}

/// Mirrors a condition of another object; malformed conditions are reported as such.
pub fn mirrored(
    conditions: Result<Vec<Condition>, String>,
    kind: &str,
    fallback: Fallback<'_>,
) -> (ConditionState, Option<Time>) {
    mirror(conditions, kind, fallback).unwrap_or_else(|why| {
        (ConditionState::new(ConditionStatus::Unknown, reason::INVALID_CONDITION_REPORTED, why), None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fallback() -> Fallback<'static> {
        Fallback {
            flag: false,
            holds: "Ready",
            fails: "NotReady",
            message: "status.ready is false".to_owned(),
        }
    }

    fn state_of(object: &Value) -> Result<ConditionState, String> {
        mirror(of_external(object, "Fake"), "Ready", fallback()).map(|(state, _)| state)
    }

    #[test]
    fn a_condition_is_mirrored_in_either_shape_and_replaced_while_missing() {
        let state = |status, reason: &str, message: &str| Ok(ConditionState::new(status, reason, message));
        let old = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let new = json!({"type": "Ready", "status": "False", "reason": "NoDisk", "message": "full"});
        for (object, expected) in [
            (json!({}), state(ConditionStatus::False, "NotReady", "status.ready is false")),
            (json!({"status": {"conditions": [old]}}), state(ConditionStatus::True, "Ready", "")),
            (json!({"status": {"conditions": [new]}}), state(ConditionStatus::False, "NoDisk", "full")),
            (
                json!({"status": {"conditions": [old], "v1beta2": {"conditions": [new]}}}),
                state(ConditionStatus::False, "NoDisk", "full"),
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "Maybe"}]}}),
                Err("failed to convert status.conditions from Fake to []metav1.Condition: status for the Ready \
                     condition must be one of True, False, Unknown"
                    .to_owned()),
            ),
        ] {
            assert_eq!(state_of(&object), expected, "{object}");
        }
    }
}
