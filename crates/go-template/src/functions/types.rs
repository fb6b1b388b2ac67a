//! Kinds, types and conversions.

use super::{Limits, Outcome, Value, text_of};
use crate::print::{go_type, printf, shown};

pub fn call(name: &str, values: &[Value], _: &Limits) -> Option<Outcome> {
    Some(match (name, values) {
        ("print", values) => print(values, false).map(Value::text),
        ("println", values) => print(values, true).map(Value::text),
        ("printf", [Value::Text(format), rest @ ..]) => printf(format, rest).map(Value::text),
        ("kindOf", [value]) => Ok(Value::text(value.kind())),
        ("kindIs", [kind, value]) => text_of(kind).map(|kind| Value::Bool(*kind == *value.kind())),
        ("typeOf", [value]) => Ok(Value::text(go_type(value))),
        ("typeIs" | "typeIsLike", [kind, value]) => {
            text_of(kind).map(|kind| Value::Bool(*kind == *go_type(value)))
        }
        ("toString", [value]) => shown(value).map(Value::text),
        ("toStrings", [Value::List(items)]) => {
            let texts: Result<Vec<Value>, String> =
                items.iter().map(|item| Ok(Value::text(shown(item)?))).collect();
            texts.map(Value::list)
        }
        ("int" | "int64", [value]) => Ok(Value::Int(to_int(value))),
        ("float64", [value]) => Ok(Value::Float(to_float(value))),
        ("atoi", [Value::Text(text)]) => Ok(Value::Int(text.parse().unwrap_or(0))),
        ("toDecimal", [value]) => {
            shown(value).map(|text| Value::Int(i64::from_str_radix(&text, 8).unwrap_or(0)))
        }
        _ => return None,
    })
}

/// Spaces stand between operands when neither is a text; with `println` between all.
fn print(values: &[Value], line: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut before_is_text = true;
    for (at, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Text(_));
        if at > 0 && (line || !(is_text || before_is_text)) {
            out.push(' ');
        }
        out.push_str(&shown(value)?);
        before_is_text = is_text;
    }
    if line {
        out.push('\n');
    }
    Ok(out)
}

/// A number out of anything; 0 if it is none.
pub fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        #[expect(clippy::cast_possible_truncation, reason = "Go truncates too")]
        Value::Float(number) => *number as i64,
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => {
            #[expect(clippy::cast_possible_truncation, reason = "Go truncates too")]
            let of_float = || text.parse::<f64>().map_or(0, |number| number as i64);
            text.parse().unwrap_or_else(|_| of_float())
        }
        _ => 0,
    }
}

pub fn to_float(value: &Value) -> f64 {
    match value {
        #[expect(clippy::cast_precision_loss, reason = "Go loses it too")]
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Text(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}
