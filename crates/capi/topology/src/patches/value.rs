//! Values by path.

use serde_json::{Map, Value};

/// The value of a variable or of a field in it: `name`, `name.field`, `name[0].field`.
pub fn of_variable(data: &Value, path: &str) -> Result<Value, String> {
    let mut value = data;
    for (at, segment) in path.split('.').enumerate() {
        let (name, index) = parsed(segment).ok_or_else(|| format!("variable {path:?} is invalid"))?;
        value = value.get(name).ok_or_else(|| match at {
            0 => format!("variable {name:?} does not exist"),
            _ => format!("variable {path:?} does not exist: failed to lookup segment {name:?}"),
        })?;
        if let Some(index) = index {
            let items = value
                .as_array()
                .ok_or_else(|| format!("variable {path:?} is invalid: failed to get array {name:?}"))?;
            value = items
                .get(index)
                .ok_or_else(|| format!("variable {path:?} is invalid: array does not have index {index}"))?;
        }
    }
    Ok(value.clone())
}

fn parsed(segment: &str) -> Option<(&str, Option<usize>)> {
    match segment.split_once('[') {
        None if segment.contains(']') => None,
        None => Some((segment, None)),
        Some((name, rest)) => Some((name, Some(rest.strip_suffix(']')?.parse().ok()?))),
    }
}

/// The value at a path; `None` if a step is absent.
pub fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| value.get(step)).filter(|value| !value.is_null())
}

/// Sets the value at a path and makes its parents.
pub fn put(object: &mut Value, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        *object = value;
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    put(&mut object[*first], rest, value);
}

/// Copies values from one object to another; those in `preserved` stay as they are. Absent ones are not copied.
pub fn copy(from: &Value, to: &mut Value, fields: &[(&[&str], &[&str])], preserved: &[Vec<&str>]) {
    let kept: Vec<(&Vec<&str>, Value)> =
        preserved.iter().filter_map(|path| Some((path, at(to, path)?.clone()))).collect();
    for (source, target) in fields {
        if let Some(value) = at(from, source) {
            put(to, target, value.clone());
        }
    }
    for (path, value) in kept {
        put(to, path, value);
    }
}
