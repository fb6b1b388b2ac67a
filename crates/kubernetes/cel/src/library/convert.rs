//! Conversions between types.

use std::sync::Arc;

use super::{Outcome, fail};
use crate::error::EvalError;
use crate::eval::Meter;
use crate::value::time::{self, Timestamp};
use crate::value::{Text, Value, number};

pub(crate) fn identity<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    Ok(args[0].clone())
}

fn impossible<'a>(from: &Value<'_>, to: &str) -> Outcome<'a> {
    fail(format!("type conversion error from '{}' to '{to}'", printed_type(from)))
}

/// The type name in conversion errors: lists and maps include their element types.
pub(crate) fn printed_type<'v>(value: &'v Value<'_>) -> &'v str {
    match value {
        Value::List(_) => "list(dyn)",
        Value::Map(_) => "map(dyn, dyn)",
        value => value.type_name(),
    }
}

pub(crate) fn to_type<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    if let Value::Preserved(_) = args[0] {
        return fail(
            "type conversion to 'type' not supported for values preserved by x-kubernetes-preserve-unknown-fields",
        );
    }
    Ok(Value::Type(Text::Shared(Arc::from(args[0].type_name()))))
}

pub(crate) fn to_bool<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Bool(_) => Ok(args[0].clone()),
        Value::String(s) => match &**s {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => impossible(&args[0], "bool"),
        },
        other => impossible(other, "bool"),
    }
}

pub(crate) fn to_bytes<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Bytes(_) => Ok(args[0].clone()),
        Value::String(s) => {
            meter.allocate(s.len())?;
            Ok(Value::Bytes(Arc::from(s.as_bytes())))
        }
        other => impossible(other, "bytes"),
    }
}

pub(crate) fn to_double<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Double(_) => Ok(args[0].clone()),
        Value::Int(i) => Ok(Value::Double(*i as f64)),
        Value::Uint(u) => Ok(Value::Double(*u as f64)),
        Value::String(s) => match parse_double(s) {
            Some(d) => Ok(Value::Double(d)),
            None => impossible(&args[0], "double"),
        },
        other => impossible(other, "double"),
    }
}

/// Parses a double as Go does: names of special values in any case, hexadecimal floats, no underscores.
fn parse_double(s: &str) -> Option<f64> {
    let unsigned = s.strip_prefix(['+', '-']).unwrap_or(s);
    let sign = if s.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        "nan" => return Some(f64::NAN),
        _ => {}
    }
    if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        return parse_hex_double(hex).map(|d| sign * d);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    // In Go a value out of range is an error, not infinity.
    s.parse::<f64>().ok().filter(|d| d.is_finite())
}

fn parse_hex_double(hex: &str) -> Option<f64> {
    let (mantissa, exponent) = hex.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0f64;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16)?);
    }
    let value = value * 2.0f64.powi(exponent.saturating_sub(4 * fraction.len() as i32));
    value.is_finite().then_some(value)
}

pub(crate) fn to_duration<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Duration(_) => Ok(args[0].clone()),
        Value::String(s) => match time::parse_duration(s) {
            Some(nanos) => Ok(Value::Duration(nanos)),
            None => impossible(&args[0], "google.protobuf.Duration"),
        },
        other => impossible(other, "google.protobuf.Duration"),
    }
}

pub(crate) fn to_int<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || EvalError::new("integer overflow");
    match &args[0] {
        Value::Int(_) => Ok(args[0].clone()),
        Value::Double(d) => number::double_to_int(*d).map(Value::Int).ok_or_else(overflow),
        Value::Uint(u) => i64::try_from(*u).map(Value::Int).map_err(|_| overflow()),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        Value::Timestamp(t) => Ok(Value::Int(t.seconds)),
        Value::String(s) => match s.parse() {
            Ok(i) => Ok(Value::Int(i)),
            Err(_) => impossible(&args[0], "int"),
        },
        other => impossible(other, "int"),
    }
}

pub(crate) fn to_uint<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || EvalError::new("unsigned integer overflow");
    match &args[0] {
        Value::Uint(_) => Ok(args[0].clone()),
        Value::Double(d) => number::double_to_uint(*d).map(Value::Uint).ok_or_else(overflow),
        Value::Int(i) => u64::try_from(*i).map(Value::Uint).map_err(|_| overflow()),
        Value::String(s) => match s.parse() {
            // Rust accepts a leading plus, Go does not.
            Ok(u) if !s.starts_with('+') => Ok(Value::Uint(u)),
            _ => impossible(&args[0], "uint"),
        },
        other => impossible(other, "uint"),
    }
}

pub(crate) fn to_string<'a>(meter: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let text = match &args[0] {
        Value::String(_) => return Ok(args[0].clone()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => {
                meter.allocate(text.len())?;
                text.to_owned()
            }
            Err(_) => return fail("invalid UTF-8 in bytes, cannot convert to string"),
        },
        value => match scalar_text(value) {
            Some(text) => text,
            None => return impossible(value, "string"),
        },
    };
    Ok(Value::string(text))
}

/// The text of a scalar, as `string()` gives it.
pub(crate) fn scalar_text(value: &Value<'_>) -> Option<String> {
    Some(match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Uint(u) => u.to_string(),
        Value::Double(d) => number::format_g(*d),
        Value::Timestamp(t) => t.to_rfc3339(),
        Value::Duration(nanos) => time::format_seconds(*nanos),
        Value::Type(name) => name.to_string(),
        _ => return None,
    })
}

pub(crate) fn to_timestamp<'a>(_: &mut Meter, args: &[Value<'a>]) -> Outcome<'a> {
    let checked = |t: Timestamp| {
        if t.in_range() { Ok(Value::Timestamp(t)) } else { fail("timestamp overflow") }
    };
    match &args[0] {
        Value::Timestamp(_) => Ok(args[0].clone()),
        Value::Int(seconds) => checked(Timestamp::from_unix(*seconds)),
        Value::String(s) => match time::parse_rfc3339(s) {
            Some(t) => checked(t),
            None => impossible(&args[0], "google.protobuf.Timestamp"),
        },
        other => impossible(other, "google.protobuf.Timestamp"),
    }
}
