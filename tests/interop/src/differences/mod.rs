//! Differences between objects, by path, and the reasons for those that are intended.

mod explained;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use explained::{Explanations, judge};

/// A place where the other side's objects and ours differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub scenario: String,
    pub step: String,
    /// Kind and normal name, or the request.
    pub object: String,
    pub path: String,
    pub theirs: String,
    pub ours: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scenario, step, object, path, theirs, ours } = self;
        write!(f, "{scenario}, {step}: {object} {path}\n    theirs {theirs}\n    ours   {ours}")
    }
}

/// Paths at which two sets of objects differ, with both values.
pub fn objects(
    theirs: &BTreeMap<String, Value>,
    ours: &BTreeMap<String, Value>,
) -> Vec<(String, String, String, String)> {
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        match (theirs.get(name), ours.get(name)) {
            (Some(theirs), Some(ours)) => {
                let mut paths = Vec::new();
                values("", theirs, ours, &mut paths);
                found.extend(paths.into_iter().map(|(path, left, right)| (name.clone(), path, left, right)));
            }
            (theirs, ours) => {
                let state = |value: Option<&Value>| value.map_or("absent", |_| "there").to_owned();
                found.push((name.clone(), String::new(), state(theirs), state(ours)));
            }
        }
    }
    found
}

fn values(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<(String, String, String)>) {
    match (theirs, ours) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let field = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or_default();
                values(&format!("{path}/{name}"), &field(left), &field(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                values(&format!("{path}/{at}"), left, right, found);
            }
        }
        (left, right) if left != right => {
            found.push((path.to_owned(), left.to_string(), right.to_string()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_place_is_named() {
        let left = BTreeMap::from([("A a".to_owned(), json!({"spec": {"x": [1, 2], "y": 1}}))]);
        let right = BTreeMap::from([
            ("A a".to_owned(), json!({"spec": {"x": [1, 3]}})),
            ("B b".to_owned(), json!({})),
        ]);
        let found: Vec<String> = objects(&left, &right)
            .into_iter()
            .map(|(name, path, theirs, ours)| format!("{name}{path}: {theirs} {ours}"))
            .collect();
        assert_eq!(found, ["A a/spec/x/1: 2 3", "A a/spec/y: 1 null", "B b: absent there"]);
    }
}
