//! Whether an object that exists has what is generated. Pure: neither the API server's defaults nor fields of others are
//! a difference, and a digest of what was applied last shows fields that are no longer generated.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::names::annotation;

/// Digest of an object as it is generated.
pub(super) fn digest(wanted: &Value) -> String {
    let hash = Sha256::digest(wanted.to_string());
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether applying would change anything. `wanted` has its digest among the annotations.
pub(super) fn differs(wanted: &Value, current: &Value) -> bool {
    let recorded = |object: &Value| object["metadata"]["annotations"][annotation::APPLIED].clone();
    recorded(wanted) != recorded(current) || !is_within(wanted, current)
}

fn is_within(wanted: &Value, current: &Value) -> bool {
    match (wanted, current) {
        (Value::Object(wanted), Value::Object(current)) => wanted.iter().all(|(field, value)| {
            match (field.as_str(), current.get(field)) {
                // Others own the object as well.
                ("ownerReferences", Some(Value::Array(current))) => value
                    .as_array()
                    .is_some_and(|all| all.iter().all(|it| current.iter().any(|have| is_within(it, have)))),
                (_, Some(current)) => is_within(value, current),
                // What is empty may be left out.
                (_, None) => is_empty(value),
            }
        }),
        (Value::Array(wanted), Value::Array(current)) => {
            wanted.len() == current.len() && wanted.iter().zip(current).all(|(a, b)| is_within(a, b))
        }
        (wanted, current) => wanted == current,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_other_owners_are_no_difference_and_removed_fields_are() {
        let wanted = json!({
            "metadata": {"annotations": {annotation::APPLIED: "1"}, "ownerReferences": [{"uid": "a"}]},
            "spec": {"replicas": 3, "list": [{"name": "x"}], "empty": {"inner": ""}},
        });
        let current = json!({
            "metadata": {"uid": "u", "annotations": {annotation::APPLIED: "1", "other": ""},
                "ownerReferences": [{"uid": "b"}, {"uid": "a", "kind": "Cluster"}]},
            "spec": {"replicas": 3, "list": [{"name": "x", "default": 1}], "more": 1},
        });
        assert!(!differs(&wanted, &current));
        for (path, value) in [
            ("/spec/replicas", json!(2)),
            ("/spec/list", json!([{"name": "x"}, {"name": "y"}])),
            ("/metadata/annotations", json!({annotation::APPLIED: "0"})),
            ("/metadata/ownerReferences", json!([])),
        ] {
            let mut changed = current.clone();
            *changed.pointer_mut(path).expect(path) = value;
            assert!(differs(&wanted, &changed), "{path}");
        }
    }
}
