//! Converts the schema of a Rust type to a structural schema.
//!
//! The derive produces general JSON schemas; a definition needs one inlined tree with one `type` per node, without
//! `null` and references. Two markers of ours are converted here: `x-required` on a property (typed values can be
//! decoded without any field, so the derive knows no required ones) and `x-default` for a default that is part of the
//! API (the derive's `default` is Rust's).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The structural schema of a kind, including `apiVersion` and `kind`.
pub fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = cleaned(settings.into_generator().into_root_schema_for::<T>().to_value());
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert(
            "apiVersion".to_owned(),
            json!({ "type": "string", "description": "Group and version in which the object is written." }),
        );
        properties
            .insert("kind".to_owned(), json!({ "type": "string", "description": "Kind of the object." }));
        if let Some(Value::Object(metadata)) = properties.get_mut("metadata") {
            metadata.retain(|key, _| key == "type");
        }
    }
    schema
}

/// A node as a definition requires it.
fn cleaned(schema: Value) -> Value {
    let mut fields = match schema {
        Value::Object(fields) => without_null(fields),
        _ => Map::new(),
    };
    // Any JSON, as `serde_json::Value` describes itself.
    if !fields.contains_key("type") && !fields.contains_key("anyOf") {
        fields.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    for noise in ["$schema", "title", "default", "examples"] {
        fields.remove(noise);
    }
    if let Some(default) = fields.remove("x-default") {
        fields.insert("default".to_owned(), default);
    }
    if let Some(Value::Object(properties)) = fields.remove("properties") {
        let mut required: Vec<String> = match fields.remove("required") {
            Some(Value::Array(names)) => {
                names.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        let mut kept = Map::new();
        for (name, property) in properties {
            let mut property = cleaned(property);
            if let Value::Object(property) = &mut property
                && property.remove("x-required").is_some()
                && !required.contains(&name)
            {
                required.push(name.clone());
            }
            kept.insert(name, property);
        }
        fields.insert("properties".to_owned(), Value::Object(kept));
        if !required.is_empty() {
            required.sort();
            fields.insert("required".to_owned(), required.into());
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.remove(key) {
            fields.insert(key.to_owned(), cleaned(inner));
        }
    }
    Value::Object(fields)
}

/// An `Option` without `null`: absent and `null` differ on the wire.
fn without_null(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        let null = json!({ "type": "null" });
        let before = choices.len();
        choices.retain(|choice| *choice != null);
        if choices.len() < before
            && let [Value::Object(only)] = choices.as_slice()
        {
            let only = only.clone();
            fields.remove("anyOf");
            for (key, value) in without_null(only) {
                // The field's description takes precedence over its type's.
                fields.entry(key).or_insert(value);
            }
        }
    }
    fields
}
