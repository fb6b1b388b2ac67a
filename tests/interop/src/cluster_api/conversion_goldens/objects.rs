//! Random objects that both sides can decode, and their normal form.

use std::collections::BTreeSet;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use crate::kubernetes::verdicts::generate::{Density, value};
use crate::kubernetes::verdicts::kinds::Kind;

/// A random object of a kind.
pub fn make(kind: &Kind, rng: &mut StdRng) -> Value {
    let density = Density { optional: rng.random_range(0.3..=1.0) };
    let mut object = value(&kind.schema, rng, density, 0);
    readable(&mut object, "", rng);
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.as_str().into();
    object["metadata"] = json!({ "name": "one", "namespace": "default", "annotations": { "a": "b" } });
    object
}

/// Replaces strings whose format only Go's types check, by valid ones.
fn readable(value: &mut Value, name: &str, rng: &mut StdRng) {
    const DURATIONS: [&str; 4] = ["imeout", "ttl", "Period", "retryDelay"];
    match value {
        _ if name == "openAPIV3Schema" => *value = variable_schema(rng, 0),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| readable(value, name, rng)),
        Value::Array(items) => items.iter_mut().for_each(|item| readable(item, name, rng)),
        Value::String(text) if name == "apiVersion" => {
            let groups = ["infrastructure.example/v1beta2", "bootstrap.example/v1beta2"];
            groups[rng.random_range(0..groups.len())].clone_into(text);
        }
        // A quantity. Go encodes numbers as strings.
        _ if name == "divisor" => *value = "1".into(),
        Value::String(text) if DURATIONS.iter().any(|part| name.contains(part)) => {
            let known = ["10m0s", "1h0m0s", "1m30s", "20s", "0s"];
            known[rng.random_range(0..known.len())].clone_into(text);
        }
        _ => {}
    }
}

/// A schema of a variable: the definition leaves most of it open, so nothing in it could be made from that.
fn variable_schema(rng: &mut StdRng, depth: usize) -> Value {
    let mut schema = match rng.random_range(0..if depth < 2 { 6 } else { 4 }) {
        0 => {
            json!({"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a", "format": "uuid", "enum": ["ab", "ac"]})
        }
        1 => json!({"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMinimum": true, "default": 3}),
        2 => json!({"type": "boolean", "default": true, "example": false}),
        3 => json!({"x-kubernetes-int-or-string": true, "description": "a port"}),
        4 => {
            json!({"type": "array", "items": variable_schema(rng, depth + 1), "minItems": 1, "uniqueItems": true})
        }
        _ => json!({
            "type": "object",
            "properties": {"a": variable_schema(rng, depth + 1), "b": variable_schema(rng, depth + 1)},
            "required": ["a"],
            "x-kubernetes-preserve-unknown-fields": rng.random_bool(0.5),
            "x-kubernetes-validations": [{"rule": "has(self.b)", "message": "b is missing", "reason": "FieldValueInvalid", "fieldPath": ".b"}],
        }),
    };
    if rng.random_bool(0.3) {
        schema["x-metadata"] = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}});
    }
    schema
}

/// The object without empty values and without annotations that preserve data.
pub fn bare(mut object: Value) -> Value {
    object.as_object_mut().map(|fields| fields.remove("kind").and(fields.remove("apiVersion")));
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.retain(|name, _| name == "a");
    }
    prune(&mut object);
    object
}

fn prune(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| prune(value));
            !fields.is_empty()
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| {
                prune(item);
            });
            !items.is_empty()
        }
        Value::String(text) => !text.is_empty() && text != "0s" && text != "0",
        Value::Bool(holds) => *holds,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Null => false,
    }
}

/// Differences of two objects: `-` only left, `+` only right, `≠` in both.
pub fn differences(left: &Value, right: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left.keys().chain(right.keys()) {
                let path = format!("{path}.{name}");
                match (left.get(name), right.get(name)) {
                    (Some(left), Some(right)) => differences(left, right, &path, found),
                    (Some(left), None) => drop(found.insert(format!("- {path}: {left}"))),
                    (None, right) => drop(found.insert(format!("+ {path}: {}", json!(right)))),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let path = format!("{path}[]");
            left.iter().zip(right).for_each(|(left, right)| differences(left, right, &path, found));
        }
        (left, right) if left == right => {}
        (left, right) => drop(found.insert(format!("≠ {path}: {left} and {right}"))),
    }
}
