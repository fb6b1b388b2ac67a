//! `eq ne lt le gt ge not`, and what chooses between values.

use std::cmp::Ordering;

use super::{Limits, Outcome, Value};
use crate::print::go_type;

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    Some(match (name, values) {
        ("not", [value]) => Ok(Value::Bool(!value.holds())),
        ("eq", [first, others @ ..]) if !others.is_empty() => equals_any(first, others),
        ("ne", [a, b]) => equal(a, b).map(|same| Value::Bool(!same)),
        ("lt", [a, b]) => order(a, b).map(|order| Value::Bool(order == Ordering::Less)),
        ("le", [a, b]) => order(a, b).map(|order| Value::Bool(order != Ordering::Greater)),
        ("gt", [a, b]) => order(a, b).map(|order| Value::Bool(order == Ordering::Greater)),
        ("ge", [a, b]) => order(a, b).map(|order| Value::Bool(order != Ordering::Less)),
        ("default", [default, value]) => Ok(if value.holds() { value } else { default }.clone()),
        ("default", [default]) => Ok(default.clone()),
        ("empty", [value]) => Ok(Value::Bool(!value.holds())),
        ("coalesce", values) => Ok(values.iter().find(|value| value.holds()).cloned().unwrap_or(Value::Nil)),
        ("all", values) => Ok(Value::Bool(values.iter().all(Value::holds))),
        ("any", values) => Ok(Value::Bool(values.iter().any(Value::holds))),
        ("ternary", [yes, no, Value::Bool(choice)]) => Ok(if *choice { yes } else { no }.clone()),
        ("deepEqual", [a, b]) => Ok(Value::Bool(a.same(b))),
        ("fail", [Value::Text(message)]) => Err(message.to_string()),
        _ => return None,
    })
}

fn equals_any(first: &Value, others: &[Value]) -> Outcome {
    for other in others {
        if equal(first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        (Value::List(_) | Value::Map(_), _) | (_, Value::List(_) | Value::Map(_)) => {
            Err(format!("non-comparable type {}", go_type(a)))
        }
        _ => Err("incompatible types for comparison".to_owned()),
    }
}

fn order(a: &Value, b: &Value) -> Result<Ordering, String> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => {
            a.partial_cmp(b).ok_or_else(|| "a number that is none cannot be compared".to_owned())
        }
        (Value::Text(a), Value::Text(b)) => Ok(a.cmp(b)),
        (Value::Bool(_) | Value::Nil | Value::List(_) | Value::Map(_), _) => {
            Err("invalid type for comparison".to_owned())
        }
        _ => Err("incompatible types for comparison".to_owned()),
    }
}
