//! Sizes and the string functions of the standard library.

use super::{Outcome, no_such_overload, regex};
use crate::eval::Meter;
use crate::value::Value;

pub(crate) fn has_size(value: &Value<'_>) -> bool {
    matches!(value, Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))
}

pub(crate) fn is_string(value: &Value<'_>) -> bool {
    matches!(value, Value::String(_))
}

pub(crate) fn size<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match args[0].size() {
        Some(size) => Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
        None => no_such_overload(),
    }
}

fn text<'a>(args: &[Value<'a>], test: fn(&str, &str) -> bool) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::String(s), Value::String(part)) => Ok(Value::Bool(test(s, part))),
        _ => no_such_overload(),
    }
}

pub(crate) fn contains<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    text(args, |s, part| s.contains(part))
}

pub(crate) fn starts_with<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    text(args, |s, part| s.starts_with(part))
}

pub(crate) fn ends_with<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    text(args, |s, part| s.ends_with(part))
}

pub(crate) fn matches<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::String(s), Value::String(pattern)) => {
            Ok(Value::Bool(regex::compiled(meter, pattern)?.is_match(s)))
        }
        _ => no_such_overload(),
    }
}
