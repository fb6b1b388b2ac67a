//! Uniqueness of sets and keyed lists (`x-kubernetes-list-type`).

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::Schema;
use crate::field::{FieldError, FieldErrors};
use crate::golang;
use crate::path::Path;
use crate::schema::ListType;

/// Duplicate entries of sets and keyed lists, each value once.
pub fn validate(value: &Value, schema: &Schema, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    walk(value, schema, path, &mut out);
    out
}

fn walk(value: &Value, schema: &Schema, path: &Path<'_>, out: &mut FieldErrors) {
    match value {
        Value::Object(fields) => {
            if let Some(additional) = schema.additional_schema() {
                for (key, value) in fields {
                    walk(value, additional, &path.key(key), out);
                }
            }
            if !schema.properties.is_empty() {
                for (key, value) in fields.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                    if let Some(property) = schema.properties.get(key) {
                        walk(value, property, &path.field(key), out);
                    }
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => {
                    for index in duplicates(items.iter().map(Identity::of)) {
                        out.push(FieldError::duplicate(path.index(index), items[index].clone()));
                    }
                }
                Some(ListType::Map) => keyed(items, &schema.list_map_keys, path, out),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    walk(item, schema, &path.index(index), out);
                }
            }
        }
        _ => {}
    }
}

fn keyed(items: &[Value], keys: &[String], path: &Path<'_>, out: &mut FieldErrors) {
    if let Some(index) = items.iter().position(|item| !(item.is_object() || item.is_null())) {
        out.push(FieldError::invalid(
            path.index(index),
            items[index].clone(),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    if items.len() < 2 {
        return;
    }
    let empty = Map::new();
    let identities = items.iter().map(|item| {
        let item = item.as_object().unwrap_or(&empty);
        keys.iter().map(|key| item.get(key).map(Identity::of)).collect::<Vec<_>>()
    });
    for index in duplicates(identities) {
        let item = items[index].as_object().unwrap_or(&empty);
        let shown: Map<String, Value> =
            keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
        out.push(FieldError::duplicate(path.index(index), shown));
    }
}

/// Identity of an entry: scalars by value, the rest by their JSON.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'a> {
    Text(&'a str),
    Json(String),
}

impl<'a> Identity<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            // 1 and 1.0 differ, as int64 and float64 do.
            Value::Number(number) => Self::Json(number.to_string()),
            other => Self::Json(golang::json(other)),
        }
    }
}

/// Indexes of values that occurred before.
fn duplicates<T: Eq + std::hash::Hash>(values: impl ExactSizeIterator<Item = T>) -> Vec<usize> {
    if values.len() < 2 {
        return Vec::new();
    }
    let mut seen = HashMap::with_capacity(values.len());
    let mut out = Vec::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value).or_insert(0);
        *times += 1;
        if *times == 2 {
            out.push(index);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, value: Value, errors: &[&str]) {
        let schema =
            Schema::from_json(&json!({"type": "object", "properties": {"f": schema}})).expect("valid");
        let found: Vec<String> =
            validate(&json!({"f": value}), &schema, &Path::ROOT).iter().map(ToString::to_string).collect();
        assert_eq!(found, errors);
    }

    #[test]
    fn sets_name_each_duplicate_once() {
        let set = json!({"type": "array", "x-kubernetes-list-type": "set"});
        check(
            set.clone(),
            json!(["a", "b", "a", "a", 1, 1.0, {"x": 1}, {"x": 1}]),
            &["f[2]: Duplicate value: \"a\"", "f[7]: Duplicate value: {\"x\":1}"],
        );
        check(set, json!(["a"]), &[]);
    }

    #[test]
    fn keyed_lists_compare_their_keys() {
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"],
            "items": {"type": "object"}});
        check(
            list.clone(),
            json!([{"a": "1", "b": 1}, {"a": "1", "b": 2}, {}, {}]),
            &["f[1]: Duplicate value: {\"a\":\"1\"}", "f[3]: Duplicate value: {}"],
        );
        check(
            list,
            json!([{"a": 1}, 5]),
            &["f[1]: Invalid value: 5: must be an object for an array of list-type map"],
        );
        let two = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]});
        check(
            two,
            json!([{"a": 1, "b": 2}, {"a": 1}, {"b": 2, "a": 1, "c": 3}]),
            &["f[2]: Duplicate value: {\"a\":1,\"b\":2}"],
        );
    }
}
