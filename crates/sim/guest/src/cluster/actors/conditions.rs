//! Conditions of built-in kinds.

use serde_json::{Value, json};

/// The desired state of a condition.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConditionUpdate<'a> {
    pub(super) of: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

pub(super) fn find<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == of)
}

pub(super) fn is_true(object: &Value, of: &str) -> bool {
    find(object, of).is_some_and(|condition| condition["status"] == "True")
}

/// The conditions of an object after an update: others stay, and unchanged ones keep their transition times.
pub(super) fn with(object: &Value, updates: &[ConditionUpdate<'_>], now: &str) -> Value {
    let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for update in updates {
        let held = all.iter_mut().find(|condition| condition["type"] == update.of);
        let same_status = held.as_ref().is_some_and(|held| held["status"] == update.status);
        let text = |field: &str| held.as_ref().and_then(|held| held[field].as_str()).unwrap_or_default();
        if same_status && text("reason") == update.reason && text("message") == update.message {
            continue;
        }
        let since =
            if same_status { held.as_ref().map(|held| held["lastTransitionTime"].clone()) } else { None };
        let mut condition = json!({
            "type": update.of, "status": update.status,
            "lastTransitionTime": since.unwrap_or_else(|| now.into()),
        });
        for (field, text) in [("reason", update.reason), ("message", update.message)] {
            if !text.is_empty() {
                condition[field] = text.into();
            }
        }
        match held {
            Some(held) => *held = condition,
            None => all.push(condition),
        }
    }
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let object = json!({"status": {"conditions": [
            {"type": "Other", "status": "True"},
            {"type": "Ready", "status": "False", "reason": "A", "lastTransitionTime": "t0"},
        ]}});
        for (status, reason, expected) in [
            (
                "False",
                "A",
                json!({"type": "Ready", "status": "False", "reason": "A", "lastTransitionTime": "t0"}),
            ),
            (
                "False",
                "B",
                json!({"type": "Ready", "status": "False", "reason": "B", "lastTransitionTime": "t0"}),
            ),
            (
                "True",
                "B",
                json!({"type": "Ready", "status": "True", "reason": "B", "lastTransitionTime": "t1"}),
            ),
        ] {
            let all = with(&object, &[ConditionUpdate { of: "Ready", status, reason, message: "" }], "t1");
            assert_eq!(all, json!([{"type": "Other", "status": "True"}, expected]));
        }
    }
}
