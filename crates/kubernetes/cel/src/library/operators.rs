//! Operators.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Outcome, fail, no_such_overload};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::{Text, Value};

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";

pub(crate) fn not<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Bool(b) => Ok(Value::Bool(!b)),
        _ => no_such_overload(),
    }
}

pub(crate) fn can_add(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bytes(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Int(_)
            | Value::List(_)
            | Value::String(_)
            | Value::Timestamp(_)
            | Value::Uint(_)
    )
}

pub(crate) fn can_divide(value: &Value<'_>) -> bool {
    matches!(value, Value::Double(_) | Value::Int(_) | Value::Uint(_))
}

pub(crate) fn can_modulo(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_))
}

pub(crate) fn can_subtract(value: &Value<'_>) -> bool {
    can_divide(value) || matches!(value, Value::Duration(_) | Value::Timestamp(_))
}

pub(crate) fn can_negate(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Double(_) | Value::Duration(_) | Value::Int(_))
}

fn int<'a>(result: Option<i64>) -> Outcome<'a> {
    result.map(Value::Int).ok_or_else(|| EvalError::new(INT_OVERFLOW))
}

fn uint<'a>(result: Option<u64>) -> Outcome<'a> {
    result.map(Value::Uint).ok_or_else(|| EvalError::new(UINT_OVERFLOW))
}

fn duration<'a>(result: Option<i64>) -> Outcome<'a> {
    result.map(Value::Duration).ok_or_else(|| EvalError::new(INT_OVERFLOW))
}

fn timestamp<'a>(base: &crate::value::Timestamp, nanos: Option<i64>) -> Outcome<'a> {
    let Some(nanos) = nanos else { return fail(INT_OVERFLOW) };
    base.checked_add(nanos).map(Value::Timestamp).ok_or_else(|| EvalError::new("timestamp overflow"))
}

pub(crate) fn add<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_add(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_add(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            meter.allocate(a.len() + b.len())?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Ok(Value::String(Text::Shared(text.into())))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.allocate(a.len() + b.len())?;
            Ok(Value::Bytes(Arc::from([&**a, &**b].concat())))
        }
        (Value::List(a), Value::List(b)) => Ok(Value::List(a.add(b, meter)?)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        (Value::Duration(d), Value::Timestamp(t)) | (Value::Timestamp(t), Value::Duration(d)) => {
            timestamp(t, Some(*d))
        }
        _ => no_such_overload(),
    }
}

pub(crate) fn subtract<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_sub(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_sub(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        (Value::Timestamp(t), Value::Duration(d)) => timestamp(t, d.checked_neg()),
        (Value::Timestamp(a), Value::Timestamp(b)) => duration(a.checked_sub(b)),
        _ => no_such_overload(),
    }
}

pub(crate) fn multiply<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => int(a.checked_mul(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_mul(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        _ => no_such_overload(),
    }
}

pub(crate) fn divide<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => fail("division by zero"),
        (Value::Int(a), Value::Int(b)) => int(a.checked_div(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_div(*b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => no_such_overload(),
    }
}

pub(crate) fn modulo<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => fail("modulus by zero"),
        (Value::Int(a), Value::Int(b)) => int(a.checked_rem(*b)),
        (Value::Uint(a), Value::Uint(b)) => uint(a.checked_rem(*b)),
        _ => no_such_overload(),
    }
}

pub(crate) fn negate<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Int(i) => int(i.checked_neg()),
        Value::Double(d) => Ok(Value::Double(-d)),
        Value::Duration(d) => duration(d.checked_neg()),
        _ => no_such_overload(),
    }
}

fn compared<'a>(args: &[Value<'a>], holds: fn(Ordering) -> bool) -> Outcome<'a> {
    Ok(Value::Bool(holds(args[0].compare(&args[1])?)))
}

pub(crate) fn less<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, Ordering::is_lt)
}

pub(crate) fn less_equals<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, Ordering::is_le)
}

pub(crate) fn greater<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, Ordering::is_gt)
}

pub(crate) fn greater_equals<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    compared(args, Ordering::is_ge)
}

/// `element in list`, `key in map`
pub(crate) fn contained<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[1] {
        Value::List(list) => Ok(Value::Bool(list.contains(&args[0], meter)?)),
        Value::Map(map) => Ok(Value::Bool(map.find(&args[0])?.is_some())),
        _ => no_such_overload(),
    }
}
