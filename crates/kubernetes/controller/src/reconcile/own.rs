//! What a decision changes on its own object, split into the patches that are written.
//!
//! Merge patches with the observed resource version as precondition, not server-side apply. The precondition keeps a
//! decision from overwriting a state that it has not observed. Fields that another manager wrote by update, as the Go
//! controllers do, need no force. Field ownership does not grow with every condition. Lists are replaced as a whole,
//! which the precondition makes safe.

use serde_json::{Map, Value, json};

/// The differences between the observed and the desired object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct OwnChange {
    /// Metadata, spec and whatever else is neither status nor a finalizer to be removed.
    pub main: Option<Value>,
    pub status: Option<Value>,
    /// The finalizers that remain, if any are to be removed.
    pub finalizers: Option<Value>,
}

/// Metadata that a controller may change.
const CHANGEABLE: [&str; 3] = ["labels", "annotations", "ownerReferences"];

impl OwnChange {
    /// Compares the observed and the desired object. Of the conditions in `wanted` only those of `owned` types count.
    pub fn between(seen: &Value, wanted: &Value, owned: &[&'static str]) -> Self {
        let mut main = Map::new();
        for (name, value) in fields(wanted) {
            if matches!(name.as_str(), "status" | "metadata" | "apiVersion" | "kind") {
                continue;
            }
            if let Some(difference) = difference(&seen[name], value) {
                main.insert(name.clone(), difference);
            }
        }
        for (name, value) in fields(seen) {
            let kept = matches!(name.as_str(), "status" | "metadata" | "apiVersion" | "kind");
            if !kept && !value.is_null() && wanted.get(name).is_none() {
                main.insert(name.clone(), Value::Null);
            }
        }
        let (old, new) = (&seen["metadata"], &wanted["metadata"]);
        let mut metadata = Map::new();
        for name in CHANGEABLE {
            if let Some(difference) = difference(&old[name], &new[name]) {
                metadata.insert(name.to_owned(), difference);
            }
        }
        let (had, want) = (list(&old["finalizers"]), list(&new["finalizers"]));
        let mut kept = had.clone();
        kept.extend(want.iter().filter(|name| !had.contains(name)).cloned());
        if kept.len() > had.len() {
            metadata.insert("finalizers".to_owned(), json!(kept));
        }
        let finalizers = kept.iter().any(|name| !want.contains(name)).then(|| json!(want));
        if !metadata.is_empty() {
            main.insert("metadata".to_owned(), metadata.into());
        }
        let status = difference(&seen["status"], &with_conditions(&seen["status"], &wanted["status"], owned));
        Self { main: (!main.is_empty()).then(|| main.into()), status, finalizers }
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn list(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The desired status, with conditions of other owners as observed.
fn with_conditions(seen: &Value, wanted: &Value, owned: &[&'static str]) -> Value {
    let conditions = |value: &Value| value["conditions"].as_array().cloned().unwrap_or_default();
    let ours = |condition: &Value| condition["type"].as_str().is_some_and(|kind| owned.contains(&kind));
    let (before, after) = (conditions(seen), conditions(wanted));
    if before == after {
        return wanted.clone();
    }
    let same_type = |one: &Value, list: &[Value]| list.iter().any(|other| other["type"] == one["type"]);
    // In the desired order. Conditions of other owners are kept as observed, also if the desired status omits them.
    let mut merged: Vec<Value> = after
        .iter()
        .filter_map(|condition| {
            if ours(condition) {
                Some(condition.clone())
            } else {
                before.iter().find(|old| old["type"] == condition["type"]).cloned()
            }
        })
        .collect();
    merged.extend(before.iter().filter(|old| !ours(old) && !same_type(old, &after)).cloned());
    let mut status = wanted.clone();
    if !(merged.is_empty() && before.is_empty()) {
        status["conditions"] = merged.into();
    }
    status
}

/// The merge patch that changes one value into another; `None` if they are equal.
pub(crate) fn difference(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return Some(to.clone());
    };
    let mut patch = Map::new();
    for (name, value) in to {
        match from.get(name) {
            Some(old) => {
                if let Some(difference) = difference(old, value) {
                    patch.insert(name.clone(), difference);
                }
            }
            None if value.is_null() => {}
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, value) in from {
        if !value.is_null() && !to.contains_key(name) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then(|| patch.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_written_and_each_where_it_belongs() {
        let seen = json!({
            "apiVersion": "v1", "kind": "W",
            "metadata": {"name": "a", "resourceVersion": "3", "labels": {"x": "1", "y": "2"}, "finalizers": ["theirs"]},
            "spec": {"size": 1, "list": [1, 2]},
            "status": {"phase": "Old", "gone": true},
        });
        let wanted = json!({
            "metadata": {"name": "a", "labels": {"x": "1"}, "finalizers": ["theirs", "ours"]},
            "spec": {"size": 2, "list": [1, 2], "id": "z"},
            "status": {"phase": "New"},
        });
        assert_eq!(
            OwnChange::between(&seen, &wanted, &[]),
            OwnChange {
                main: Some(json!({
                    "metadata": {"labels": {"y": null}, "finalizers": ["theirs", "ours"]},
                    "spec": {"size": 2, "id": "z"},
                })),
                status: Some(json!({"phase": "New", "gone": null})),
                finalizers: None,
            }
        );
        assert_eq!(OwnChange::between(&seen, &seen, &[]), OwnChange::default());
    }

    #[test]
    fn a_finalizer_goes_apart_from_everything_else() {
        let seen = json!({"metadata": {"finalizers": ["ours", "theirs"]}});
        let wanted = json!({"metadata": {"finalizers": ["theirs"]}});
        let change = OwnChange::between(&seen, &wanted, &[]);
        assert_eq!((change.main, change.finalizers), (None, Some(json!(["theirs"]))));
    }

    #[test]
    fn somebody_elses_conditions_are_never_touched() {
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
        let seen =
            json!({"status": {"conditions": [condition("Theirs", "True"), condition("Ours", "False")]}});
        for (wanted, patched) in [
            (
                vec![condition("Ours", "True")],
                Some(vec![condition("Ours", "True"), condition("Theirs", "True")]),
            ),
            (vec![condition("Theirs", "False"), condition("Ours", "False")], None),
            (vec![], Some(vec![condition("Theirs", "True")])),
            (
                vec![condition("Theirs", "True"), condition("Ours", "False"), condition("Strange", "True")],
                None,
            ),
        ] {
            let wanted = json!({"status": {"conditions": wanted}});
            let change = OwnChange::between(&seen, &wanted, &["Ours"]);
            assert_eq!(change.status, patched.map(|list| json!({ "conditions": list })), "{wanted}");
        }
    }
}
