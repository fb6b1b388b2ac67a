//! Maps.

use std::collections::BTreeMap;

use super::{Limits, Outcome, Value, text_of, texts};
use crate::value::{DEEPEST, Map};

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    Some(match (name, values) {
        ("dict", values) => dict(values),
        ("get", [Value::Map(fields), Value::Text(key)]) => {
            Ok(fields.borrow().get(&**key).cloned().unwrap_or_else(|| Value::text("")))
        }
        ("set", [Value::Map(fields), Value::Text(key), value]) => {
            fields.borrow_mut().insert(key.to_string(), value.clone());
            Ok(values[0].clone())
        }
        ("unset", [Value::Map(fields), Value::Text(key)]) => {
            fields.borrow_mut().remove(&**key);
            Ok(values[0].clone())
        }
        ("hasKey", [Value::Map(fields), Value::Text(key)]) => {
            Ok(Value::Bool(fields.borrow().contains_key(&**key)))
        }
        ("pluck", [Value::Text(key), maps @ ..]) => {
            let found = maps.iter().filter_map(|map| match map {
                Value::Map(fields) => fields.borrow().get(&**key).cloned(),
                _ => None,
            });
            Ok(Value::list(found.collect()))
        }
        ("keys", maps) => keys(maps),
        ("values", [Value::Map(fields)]) => Ok(Value::list(fields.borrow().values().cloned().collect())),
        ("pick", [Value::Map(fields), keys @ ..]) => chosen(fields, keys, true),
        ("omit", [Value::Map(fields), keys @ ..]) => chosen(fields, keys, false),
        ("merge", [Value::Map(target), sources @ ..]) => merge(target, sources, false),
        ("mergeOverwrite", [Value::Map(target), sources @ ..]) => merge(target, sources, true),
        ("deepCopy", [value]) => copied(value, DEEPEST),
        ("dig", values) => dig(values),
        _ => return None,
    })
}

fn dict(values: &[Value]) -> Outcome {
    let mut fields = BTreeMap::new();
    for pair in values.chunks(2) {
        let key = crate::print::shown(&pair[0])?;
        fields.insert(key, pair.get(1).cloned().unwrap_or_else(|| Value::text("")));
    }
    Ok(Value::map(fields))
}

fn keys(maps: &[Value]) -> Outcome {
    let mut all = Vec::new();
    for map in maps {
        match map {
            Value::Map(fields) => all.extend(fields.borrow().keys().map(|key| Value::text(key.as_str()))),
            other => return Err(format!("keys of type {}", other.kind())),
        }
    }
    Ok(Value::list(all))
}

fn chosen(fields: &Map, keys: &[Value], picked: bool) -> Outcome {
    let keys = texts(keys)?;
    let is_named = |name: &String| keys.iter().any(|key| **key == **name);
    let fields = fields.borrow();
    let kept = fields.iter().filter(|(name, _)| is_named(name) == picked);
    Ok(Value::map(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

/// Adds the fields of the sources to the target, in place.
fn merge(target: &Map, sources: &[Value], overwrite: bool) -> Outcome {
    for source in sources {
        match source {
            Value::Map(source) => merge_map(target, source, overwrite, DEEPEST)?,
            Value::Nil => {}
            other => return Err(format!("cannot merge type {}", other.kind())),
        }
    }
    Ok(Value::Map(target.clone()))
}

fn merge_map(target: &Map, source: &Map, overwrite: bool, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("maps are nested too deeply to be merged")?;
    // A copy: both may be the same map.
    let fields: Vec<(String, Value)> =
        source.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in fields {
        let known = target.borrow().get(&key).cloned();
        match (known, &value) {
            (Some(Value::Map(inner)), Value::Map(other)) => merge_map(&inner, other, overwrite, depth)?,
            (Some(known), value) if known.holds() && !(overwrite && value.holds()) => {}
            _ => drop(target.borrow_mut().insert(key, value)),
        }
    }
    Ok(())
}

fn copied(value: &Value, depth: usize) -> Outcome {
    let depth = depth.checked_sub(1).ok_or("a value is nested too deeply to be copied")?;
    Ok(match value {
        Value::List(items) => {
            Value::list(items.iter().map(|item| copied(item, depth)).collect::<Result<_, _>>()?)
        }
        Value::Map(fields) => {
            let fields = fields.borrow();
            let fields = fields.iter().map(|(key, value)| Ok((key.clone(), copied(value, depth)?)));
            Value::map(fields.collect::<Result<_, String>>()?)
        }
        plain => plain.clone(),
    })
}

/// `dig "a" "b" default map`.
fn dig(values: &[Value]) -> Outcome {
    let [keys @ .., default, of] = values else {
        return Err("dig needs keys, a default and a map".to_owned());
    };
    let mut value = of.clone();
    for key in keys {
        let key = text_of(key)?;
        let Value::Map(fields) = &value else { return Ok(default.clone()) };
        let next = fields.borrow().get(&*key).cloned();
        let Some(next) = next else { return Ok(default.clone()) };
        value = next;
    }
    Ok(value)
}
