//! Mutates one field of an object: every way a field can be invalid, and some valid ones.

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// A mutated object and a description of the mutation.
#[derive(Clone, Debug)]
pub struct Mutant {
    pub what: String,
    /// As text: a JSON value cannot represent a duplicate key.
    pub body: String,
}

/// A field of an object, as a JSON pointer, with its schema.
#[derive(Clone, Debug)]
struct FieldLocation<'a> {
    pointer: String,
    schema: &'a Value,
    required: bool,
}

/// One random mutant.
pub fn mutant(object: &Value, schema: &Value, rng: &mut StdRng) -> Option<Mutant> {
    if rng.random_ratio(1, 12) {
        return metadata(object, rng);
    }
    let mut places = Vec::new();
    for part in ["spec", "status"] {
        if let (Some(value), Some(schema)) = (object.get(part), schema["properties"].get(part)) {
            collect(value, schema, format!("/{part}"), false, &mut places);
        }
    }
    let place = places.get(rng.random_range(0..places.len().max(1)))?;
    let mut changes = changes(object.pointer(&place.pointer)?, place);
    if changes.is_empty() {
        return None;
    }
    let (what, change) = changes.swap_remove(rng.random_range(0..changes.len()));
    let mut changed = object.clone();
    let what = format!("{what} at {}", place.pointer);
    match change {
        Change::Set(value) => *changed.pointer_mut(&place.pointer)? = value,
        Change::Remove => {
            let (parent, name) = place.pointer.rsplit_once('/')?;
            changed.pointer_mut(parent)?.as_object_mut()?.remove(&unescaped(name));
        }
        Change::Repeat => return with_repeated_key(object, &place.pointer, what),
    }
    Some(Mutant { what, body: changed.to_string() })
}

enum Change {
    Set(Value),
    Remove,
    /// Repeats the key in the text.
    Repeat,
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

fn collect<'a>(
    value: &Value,
    schema: &'a Value,
    pointer: String,
    required: bool,
    out: &mut Vec<FieldLocation<'a>>,
) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                let required =
                    schema["required"].as_array().is_some_and(|all| all.iter().any(|known| known == name));
                collect(field, below, format!("{pointer}/{}", escaped(name)), required, out);
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                collect(item, &schema["items"], format!("{pointer}/{position}"), false, out);
            }
        }
        _ => {}
    }
    out.push(FieldLocation { pointer, schema, required });
}

/// All mutations of one value.
fn changes(value: &Value, place: &FieldLocation<'_>) -> Vec<(String, Change)> {
    let schema = place.schema;
    let mut all: Vec<(String, Change)> = Vec::new();
    let mut set = |what: &str, value: Value| all.push((what.to_owned(), Change::Set(value)));
    set("null", Value::Null);
    for (name, wrong) in [
        ("a string", json!("text")),
        ("a number", json!(7)),
        ("a fraction", json!(1.5)),
        ("a boolean", json!(true)),
        ("an object", json!({"a": "b"})),
        ("a list", json!(["a"])),
        ("an empty string", json!("")),
        ("an empty object", json!({})),
        ("an empty list", json!([])),
        ("a negative number", json!(-1)),
        ("more than 32 bits", json!(4_294_967_296_i64)),
        ("a whole number as float", json!(2.0)),
    ] {
        set(&format!("{name} instead"), wrong);
    }
    if let Some(low) = schema["minimum"].as_i64() {
        set("below the minimum", json!(low - 1));
    }
    if let Some(high) = schema["maximum"].as_i64() {
        set("above the maximum", json!(high + 1));
    }
    if let Some(length) = schema["minLength"].as_u64().filter(|length| *length > 0) {
        set("too short", json!("x".repeat(length as usize - 1)));
    }
    if let Some(length) = schema["maxLength"].as_u64().filter(|length| *length < 100_000) {
        set("too long", json!("x".repeat(length as usize + 1)));
        set("of maximum length, in runes", json!("é".repeat(length as usize)));
    }
    if schema["pattern"].is_string() {
        set("against the pattern", json!("\t!not that! ÿ"));
    }
    if schema["format"].is_string() {
        set("against the format", json!("not of that format"));
    }
    if schema["enum"].is_array() {
        set("not in the enum", json!("NotThere"));
    }
    if let Some(items) = value.as_array() {
        if let Some(first) = items.first() {
            let mut twice = items.clone();
            twice.push(first.clone());
            set("the first item twice", json!(twice));
            if let Some(most) = schema["maxItems"].as_u64().filter(|most| *most < 300) {
                set("too many items", json!(vec![first.clone(); most as usize + 1]));
            }
        }
        set("a null item", json!([null]));
    }
    if let Some(fields) = value.as_object() {
        let mut more = fields.clone();
        more.insert("unheardOf".into(), json!({"deep": ["x"]}));
        set("an unknown field", Value::Object(more));
        let mut more = fields.clone();
        more.insert("unheardOf".into(), Value::Null);
        set("an unknown null field", Value::Object(more));
        if !fields.is_empty() {
            let nulls: serde_json::Map<_, _> =
                fields.keys().map(|name| (name.clone(), Value::Null)).collect();
            set("every field null", Value::Object(nulls));
        }
    }
    let is_field = place.pointer.rsplit('/').next().is_none_or(|last| last.parse::<usize>().is_err());
    if is_field {
        all.push((
            if place.required { "a required field left out" } else { "left out" }.to_owned(),
            Change::Remove,
        ));
        all.push(("the key twice".to_owned(), Change::Repeat));
    }
    all
}

/// The text of the object with one key repeated.
fn with_repeated_key(object: &Value, pointer: &str, what: String) -> Option<Mutant> {
    const MARK: &str = "\"capstan-mark\"";
    let value = object.pointer(pointer)?.to_string();
    let (_, name) = pointer.rsplit_once('/')?;
    let key = Value::String(unescaped(name)).to_string();
    let mut marked = object.clone();
    *marked.pointer_mut(pointer)? = json!("capstan-mark");
    let body = marked.to_string().replace(MARK, &format!("{value},{key}:{value}"));
    Some(Mutant { what, body })
}

/// Invalid metadata, which no CRD describes.
fn metadata(object: &Value, rng: &mut StdRng) -> Option<Mutant> {
    let cases = [
        ("a name with capitals", "/metadata/name", json!("NotAName")),
        ("a name that is too long", "/metadata/name", json!("n".repeat(254))),
        ("an empty name", "/metadata/name", json!("")),
        ("a numeric name", "/metadata/name", json!(5)),
        ("labels with a bad key", "/metadata/labels", json!({"a b": "c"})),
        ("labels with a bad value", "/metadata/labels", json!({"a": "b c"})),
        ("a numeric label", "/metadata/labels", json!({"a": 1})),
        ("a null label", "/metadata/labels", json!({"a": null})),
        ("labels as a list", "/metadata/labels", json!(["a"])),
        ("annotations with a bad key", "/metadata/annotations", json!({"a b": "c"})),
        ("an unknown metadata field", "/metadata/unheardOf", json!("x")),
        ("a bad finalizer", "/metadata/finalizers", json!(["bad finalizer"])),
        ("a finalizer without a domain", "/metadata/finalizers", json!(["plain"])),
        (
            "an owner without uid",
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "X", "name": "y"}]),
        ),
        (
            "two controlling owners",
            "/metadata/ownerReferences",
            json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "1", "controller": true},
                   {"apiVersion": "v1", "kind": "X", "name": "z", "uid": "2", "controller": true}]),
        ),
        ("a resource version", "/metadata/resourceVersion", json!("12")),
        ("a generation", "/metadata/generation", json!(17)),
        ("a negative grace period", "/metadata/deletionGracePeriodSeconds", json!(-5)),
        ("a creation time", "/metadata/creationTimestamp", json!("2020-01-01T00:00:00Z")),
        ("a bad creation time", "/metadata/creationTimestamp", json!("long ago")),
        ("a deletion time", "/metadata/deletionTimestamp", json!("2020-01-01T00:00:00Z")),
        ("a self link", "/metadata/selfLink", json!("/x")),
        ("another namespace", "/metadata/namespace", json!("elsewhere")),
        ("managed fields", "/metadata/managedFields", json!([{"manager": "x", "operation": "Twist"}])),
        ("another kind", "/kind", json!("Other")),
        ("another version", "/apiVersion", json!("v1")),
        ("an unknown root field", "/unheardOf", json!({"a": 1})),
        ("metadata as text", "/metadata", json!("x")),
        ("a null spec", "/spec", Value::Null),
        ("a spec as list", "/spec", json!([])),
    ];
    let (what, pointer, value) = cases[rng.random_range(0..cases.len())].clone();
    let mut changed = object.clone();
    let (parent, name) = pointer.rsplit_once('/')?;
    let holder = if parent.is_empty() { &mut changed } else { changed.pointer_mut(parent)? };
    holder.as_object_mut()?.insert(name.to_owned(), value);
    Some(Mutant { what: what.to_owned(), body: changed.to_string() })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn a_key_can_be_repeated() {
        let object = json!({"spec": {"a": 1, "b": {"c": "x"}}});
        let mutant = with_repeated_key(&object, "/spec/b", "twice".into()).unwrap();
        assert_eq!(mutant.body, r#"{"spec":{"a":1,"b":{"c":"x"},"b":{"c":"x"}}}"#);
    }

    #[test]
    fn mutants_differ_from_their_base() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "maxLength": 3}, "b": {"type": "array", "items": {"type": "integer"}}}}}});
        let object = json!({"metadata": {"name": "x"}, "spec": {"a": "q", "b": [1]}});
        let mut rng = StdRng::seed_from_u64(3);
        let all: Vec<_> = (0..200).filter_map(|_| mutant(&object, &schema, &mut rng)).collect();
        assert!(all.len() > 150);
        let base = object.to_string();
        assert!(all.iter().filter(|mutant| mutant.body != base).count() > 140);
        assert!(all.iter().any(|mutant| mutant.what.starts_with("a required field left out")));
    }
}
