//! Order, equality and text of JSON values in field paths: integers and floats compare by value, and values of
//! different types are ordered too.

use std::cmp::Ordering;

use serde_json::Value;

use crate::golang;
use crate::patch::go::{self, Num};

/// Whether two values are equal, where `1` equals `1.0`, at any depth.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (go::num(a), go::num(b)) {
            (Num::Int(a), Num::Int(b)) => a == b,
            (a, b) => float(a) == float(b),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Total order: numbers, strings, booleans, lists, objects, null.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (go::num(a), go::num(b)) {
            (Num::Int(a), Num::Int(b)) => a.cmp(&b),
            (a, b) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
        },
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => {
            let mut left = a.iter();
            let mut right = b.iter();
            loop {
                match (left.next(), right.next()) {
                    (None, None) => return Ordering::Equal,
                    (None, Some(_)) => return Ordering::Less,
                    (Some(_), None) => return Ordering::Greater,
                    (Some((ka, va)), Some((kb, vb))) => {
                        // The side that has the smaller key sorts first, whatever the values are.
                        let order = ka.cmp(kb).then_with(|| compare(va, vb));
                        if order.is_ne() {
                            return order;
                        }
                    }
                }
            }
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as upstream: a whole number next to a float is compared as a float"
)]
fn float(num: Num) -> f64 {
    match num {
        Num::Int(i) => i as f64,
        Num::Float(f) => f,
    }
}

/// A value in a displayed path: `[name="web"]`, `[=80]`.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Number(n) => go::number(n),
        Value::String(s) => golang::quote(s),
        Value::Bool(b) => b.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", text(v))).collect(),
    }
}
