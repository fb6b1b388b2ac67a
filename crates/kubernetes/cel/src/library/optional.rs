//! Optional values, and the map builder of two-variable comprehensions.

use super::{Outcome, fail, no_such_overload};
use crate::eval::Meter;
use crate::value::{List, Value};

pub(crate) fn of<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::some(args[0].clone()))
}

pub(crate) fn of_non_zero_value<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(if args[0].is_zero() { Value::Optional(None) } else { Value::some(args[0].clone()) })
}

pub(crate) fn none<'a>(_: &mut Meter, _: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Optional(None))
}

pub(crate) fn value<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => fail("optional.none() dereference"),
        _ => no_such_overload(),
    }
}

pub(crate) fn has_value<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => no_such_overload(),
    }
}

fn element<'a>(args: &[Value<'a>], index: fn(u64) -> u64) -> Outcome<'a> {
    let Value::List(list) = &args[0] else { return no_such_overload() };
    match list.get(index(list.len())) {
        Some(element) if !list.is_empty() => Ok(Value::some(element?)),
        _ => Ok(Value::Optional(None)),
    }
}

pub(crate) fn first<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    element(args, |_| 0)
}

pub(crate) fn last<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    element(args, |len| len.wrapping_sub(1))
}

pub(crate) fn unwrap<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let Value::List(list) = &args[0] else { return no_such_overload() };
    let mut values = Vec::new();
    for item in list.iter() {
        match item? {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            other => return fail(format!("value {other} is not optional")),
        }
    }
    Ok(Value::List(List::owned(values)))
}

/// Adds one entry, or all of another map.
pub(crate) fn map_insert<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Map(map), key, value] => Ok(Value::Map(map.clone().insert(key, value.clone())?)),
        [Value::Map(map), Value::Map(other)] => {
            let mut map = map.clone();
            for key in other.keys() {
                if let Some(value) = other.find(&key)? {
                    map = map.insert(&key, value)?;
                }
            }
            Ok(Value::Map(map))
        }
        _ => no_such_overload(),
    }
}
