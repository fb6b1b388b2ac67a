//! `metav1.Condition`, and a list of them keyed by type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Time;

/// Status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown.
    Unknown,
}

impl JsonSchema for ConditionStatus {
    fn schema_name() -> Cow<'static, str> {
        "ConditionStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["True", "False", "Unknown"] })
    }
}

/// Pattern of a condition's type: a word, or a domain, a slash and a word.
const TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, such as `Ready`.
    #[serde(rename = "type")]
    #[schemars(length(max = 316), regex(pattern = TYPE))]
    pub kind: String,
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Generation of the object that the condition is based on.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// Reason of the last transition, in CamelCase.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// Human-readable details.
    #[serde(default)]
    #[schemars(length(max = 32768), extend("x-required" = true))]
    pub message: String,
}

impl Condition {
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }
}

/// Conditions of an object, sorted by type.
pub trait Conditions {
    fn condition(&self, kind: &str) -> Option<&Condition>;
    /// Whether the condition exists and is True.
    fn is_condition_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(Condition::is_true)
    }
    /// Sets a condition; the transition time changes only with the status.
    fn set_condition(&mut self, condition: Condition);
}

impl Conditions for Vec<Condition> {
    fn condition(&self, kind: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.kind == kind)
    }

    fn set_condition(&mut self, mut condition: Condition) {
        match self.iter_mut().find(|old| old.kind == condition.kind) {
            Some(old) => {
                if old.status == condition.status {
                    condition.last_transition_time = old.last_transition_time;
                }
                *old = condition;
            }
            None => self.push(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(status: ConditionStatus, at: i64, reason: &str) -> Condition {
        Condition {
            kind: "Ready".to_owned(),
            status,
            observed_generation: None,
            last_transition_time: jiff::Timestamp::from_second(at).expect("a moment").into(),
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut conditions = vec![ready(ConditionStatus::False, 1, "Waiting")];
        conditions.set_condition(ready(ConditionStatus::False, 2, "StillWaiting"));
        assert_eq!(conditions, [ready(ConditionStatus::False, 1, "StillWaiting")]);
        conditions.set_condition(ready(ConditionStatus::True, 3, "Done"));
        assert_eq!(conditions, [ready(ConditionStatus::True, 3, "Done")]);
    }
}
