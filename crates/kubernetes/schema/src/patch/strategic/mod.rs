//! Strategic merge patch: a merge patch with lists that merge by key, and with directives (`$patch`, `$retainKeys`,
//! `$setElementOrder/…`, `$deleteFromPrimitiveList/…`). Only for built-in kinds: custom resources have no strategies,
//! and the caller rejects them.

mod lists;
mod meta;
mod order;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use self::meta::Meta;
use super::{PatchError, go};
use crate::Schema;

const DIRECTIVE: &str = "$patch";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Most values of lists that one patch may merge. Entries of a patch with the same merge key merge one after the other,
/// each time with the whole lists below.
pub const MAX_MERGED: usize = 4_000_000;

type Object = Map<String, Value>;

/// Merges `patch` into `document`, an object of `schema`.
///
/// # Errors
/// [`PatchError::Malformed`] for invalid directives, [`PatchError::Inapplicable`] for lists of lists,
/// [`PatchError::Internal`] where upstream returns 500: a missing merge key, a mismatching element order, fields that
/// are not in the schema; [`PatchError::TooMuchWork`].
pub fn apply(document: Value, patch: Value, schema: &Schema) -> Result<Value, PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Object::new(),
        other => {
            let kind = go::json_kind(&other);
            return Err(PatchError::Malformed(format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let Value::Object(document) = document else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    let merged = Cell::new(0);
    merge_objects(document, patch, Meta::of(schema, &merged)).map(Value::Object)
}

fn bad_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    let actual = match actual {
        Value::Null => "%!s(<nil>)",
        other => go::type_name(other),
    };
    PatchError::Internal(format!("expected a {expected}, but received a {actual}"))
}

fn expect_list(value: Value) -> Result<Vec<Value>, PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(bad_type("[]interface {}", &other)),
    }
}

fn no_merge_key(item: &Object, key: &str) -> PatchError {
    let item = go::v(&Value::Object(item.clone()));
    PatchError::Internal(format!("map: {item} does not contain declared merge key: {key}"))
}

fn unknown_directive(directive: &Value, patch: &Object) -> PatchError {
    let directive = match directive {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", go::type_name(other), go::v(other)),
    };
    let patch = go::v(&Value::Object(patch.clone()));
    PatchError::Internal(format!("unknown patch type: {directive} in map: {patch}"))
}

/// The field of a directive with a prefix.
fn field_of<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    key.split_once('/').filter(|(directive, _)| *directive == prefix).map(|(_, field)| field)
}

fn merge_objects(mut original: Object, mut patch: Object, meta: Meta<'_>) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, meta)?;
    for (key, value) in patch {
        let deletes = key.starts_with(DELETE_FROM_LIST);
        let key = if deletes {
            let field = field_of(&key, DELETE_FROM_LIST)
                .ok_or_else(|| PatchError::Malformed("invalid patch format of primitive list".to_owned()))?;
            // Upstream treats an empty field name as none.
            if field.is_empty() { key.clone() } else { field.to_owned() }
        } else {
            key
        };
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let current = match original.get_mut(&key) {
            Some(current) if same_type(current, &value) => current,
            _ if deletes => continue,
            _ => {
                insert_new(&mut original, key, value);
                continue;
            }
        };
        match (std::mem::take(current), value) {
            (Value::Object(object), Value::Object(value)) => {
                let field = meta.field(&key)?;
                let merged = if field.strategy()? == "replace" {
                    value
                } else {
                    merge_objects(object, value, field.meta())?
                };
                *current = Value::Object(merged);
            }
            (Value::Array(items), Value::Array(value)) => {
                let field = meta.list(&key)?;
                *current = Value::Array(lists::merge(items, value, field, deletes)?);
            }
            (_, value) => *current = value,
        }
    }
    Ok(original)
}

/// Whether two values have the same Go type.
fn same_type(a: &Value, b: &Value) -> bool {
    go::type_name(a) == go::type_name(b)
}

/// Adds a value that the original does not have, without nulls and without values that contain a directive.
fn insert_new(original: &mut Object, key: String, mut value: Value) {
    drop_nulls(&mut value);
    match without_directives(value) {
        Some(value) => original.insert(key, value),
        None => original.remove(&key),
    };
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

/// `$retainKeys`: removes all fields of the original that are not listed. The patch may have no others.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(keys) = keys else { return Err(malformed()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let listed = |key: &str| keys.contains(key);
    let stray = patch.iter().any(|(key, value)| {
        !value.is_null()
            && !key.starts_with(DELETE_FROM_LIST)
            && !key.starts_with(ELEMENT_ORDER)
            && !listed(key)
    });
    if stray {
        return Err(malformed());
    }
    original.retain(|key, _| listed(key));
    Ok(())
}

/// `$setElementOrder/…`: merges its lists and orders their entries.
fn merge_ordered_lists(original: &mut Object, patch: &mut Object, meta: Meta<'_>) -> Result<(), PatchError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    let none = Vec::new();
    for key in keys {
        let order = expect_list(patch.remove(&key).unwrap_or_default())?;
        let name = field_of(&key, ELEMENT_ORDER).ok_or_else(bad_order)?;
        let current = original.get(name).cloned().map(expect_list).transpose()?;
        let change = patch.get(name).cloned().map(expect_list).transpose()?;
        let field = meta.list(name)?;
        let lists = [&order, current.as_ref().unwrap_or(&none), change.as_ref().unwrap_or(&none)];
        field.count_merged(lists.into_iter().flatten().map(super::count).sum())?;
        let merge_key = field.merge_key();
        field.strategy()?;
        order::check(change.as_deref().unwrap_or_default(), &order, merge_key)?;
        let elements = [current.as_deref().unwrap_or_default(), change.as_deref().unwrap_or_default()];
        let kind = lists::element_kind(&elements);
        let server_order = current.clone().unwrap_or_default();
        let merged = match (current, change) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
            (Some(current), Some(change)) => lists::merge(current, change, field, false)?,
        };
        let (ours, theirs) = order::partition(merged, &order, merge_key)?;
        let sorted = order::normalize(ours, theirs, &order, &server_order, merge_key, kind?)?;
        original.insert(name.to_owned(), Value::Array(sorted));
        patch.remove(name);
    }
    Ok(())
}
