//! Numbers.

use super::types::{to_float, to_int};
use super::{Limits, Outcome, Value};

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    let ints = || values.iter().map(to_int);
    let floats = || values.iter().map(to_float);
    let overflow = || "the result does not fit into 64 bits".to_owned();
    let int = |number: Option<i64>| number.map(Value::Int).ok_or_else(overflow);
    let float = |number: f64| Ok(Value::Float(number));
    Some(match (name, values) {
        ("add", _) => int(ints().try_fold(0_i64, i64::checked_add)),
        ("add1", [value]) => int(to_int(value).checked_add(1)),
        ("sub", [a, b]) => int(to_int(a).checked_sub(to_int(b))),
        ("mul", [_, ..]) => int(ints().try_fold(1_i64, i64::checked_mul)),
        ("div", [a, b]) => {
            to_int(a).checked_div(to_int(b)).map(Value::Int).ok_or_else(|| "division by zero".to_owned())
        }
        ("mod", [a, b]) => {
            to_int(a).checked_rem(to_int(b)).map(Value::Int).ok_or_else(|| "division by zero".to_owned())
        }
        ("max" | "biggest", [_, ..]) => int(ints().max()),
        ("min", [_, ..]) => int(ints().min()),
        ("maxf", [_, ..]) => float(floats().fold(f64::NEG_INFINITY, f64::max)),
        ("minf", [_, ..]) => float(floats().fold(f64::INFINITY, f64::min)),
        ("addf", _) => float(floats().sum()),
        ("add1f", [value]) => float(to_float(value) + 1.0),
        ("subf", [first, rest @ ..]) => {
            float(rest.iter().fold(to_float(first), |sum, value| sum - to_float(value)))
        }
        ("mulf", [_, ..]) => float(floats().product()),
        ("divf", [first, rest @ ..]) => {
            float(rest.iter().fold(to_float(first), |sum, value| sum / to_float(value)))
        }
        ("ceil", [value]) => float(to_float(value).ceil()),
        ("floor", [value]) => float(to_float(value).floor()),
        ("round", [value, Value::Int(places), ..]) => {
            let scale = 10_f64.powi(i32::try_from(*places).unwrap_or(0));
            float((to_float(value) * scale).round() / scale)
        }
        _ => return None,
    })
}
