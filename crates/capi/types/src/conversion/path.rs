//! Fields by dotted path.

use serde_json::{Map, Value};

/// Removes the value at a path, and parents that become empty.
pub(super) fn take(object: &mut Value, path: &str) -> Option<Value> {
    let fields = object.as_object_mut()?;
    match path.split_once('.') {
        None => fields.remove(path),
        Some((key, rest)) => {
            let inner = fields.get_mut(key)?;
            let taken = take(inner, rest)?;
            if inner.as_object().is_some_and(Map::is_empty) {
                fields.remove(key);
            }
            Some(taken)
        }
    }
}

/// Sets the value at a path and creates its parents.
pub(super) fn put(object: &mut Value, path: &str, value: Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match path.split_once('.') {
        None => object[path] = value,
        Some((key, rest)) => put(&mut object[key], rest, value),
    }
}

/// Every object at a path; `[]` after a name matches all items of a list.
pub(super) fn each(object: &mut Value, path: &str, act: &mut dyn FnMut(&mut Value)) {
    if path.is_empty() {
        return act(object);
    }
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    match key.strip_suffix("[]") {
        Some(key) => {
            if let Some(Value::Array(items)) = object.get_mut(key) {
                items.iter_mut().for_each(|item| each(item, rest, act));
            }
        }
        None => {
            if let Some(inner) = object.get_mut(key).filter(|inner| inner.is_object()) {
                each(inner, rest, act);
            }
        }
    }
}
