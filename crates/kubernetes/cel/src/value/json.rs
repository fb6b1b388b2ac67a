//! Reads JSON through its declared type, and writes values as JSON.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::Value as Json;

use super::{List, Map, Text, Value, time};
use crate::decl::{DeclType, Shape};
use crate::error::EvalError;

impl<'a> Value<'a> {
    /// A view of `json` as a value of the declared type. Nested data is read on access.
    ///
    /// # Errors
    /// If the JSON does not match the type. An object that is valid by its schema does.
    pub fn from_json(json: &'a Json, decl: &'a DeclType) -> Result<Self, EvalError> {
        if json.is_null() {
            if decl.is_nullable() || matches!(decl.shape(), Shape::Dyn | Shape::Null) {
                return Ok(Self::Null);
            }
            return Err(EvalError::new("invalid data, got null for schema with nullable=false"));
        }
        let mismatch = |expected: &str| {
            Err(EvalError::new(format!("invalid data, expected {expected}, got {}", go_type(json))))
        };
        match decl.shape() {
            Shape::Dyn | Shape::Null => Ok(Self::from_untyped(json)),
            Shape::Preserved => Ok(Self::Preserved(json)),
            Shape::IntOrString => match json {
                Json::String(s) => Ok(Self::String(Text::Borrowed(s))),
                Json::Number(n) if n.is_i64() => Ok(Self::Int(n.as_i64().unwrap_or_default())),
                _ => Err(EvalError::new(
                    "invalid data, expected XIntOrString value to be either a string or integer",
                )),
            },
            Shape::Bool => json.as_bool().map_or_else(|| mismatch("bool"), |b| Ok(Self::Bool(b))),
            Shape::Int => match json.as_i64() {
                Some(i) => Ok(Self::Int(i)),
                None => mismatch("int"),
            },
            Shape::Uint => match json.as_u64() {
                Some(u) => Ok(Self::Uint(u)),
                None => mismatch("uint"),
            },
            Shape::Double => match json.as_f64() {
                Some(d) => Ok(Self::Double(d)),
                None => mismatch("float"),
            },
            Shape::List { elem, kind } => match json {
                Json::Array(items) => Ok(Self::List(List::typed(items, elem, kind))),
                _ => Err(EvalError::new(
                    "invalid data, expected an array for the provided schema with type=array",
                )),
            },
            Shape::Map { .. } | Shape::Object(_) => match (json, decl.shape()) {
                (Json::Object(entries), Shape::Object(object)) => Ok(Self::Map(Map::object(entries, object))),
                (Json::Object(entries), Shape::Map { value }) => Ok(Self::Map(Map::typed(entries, value))),
                _ => Err(EvalError::new(
                    "invalid data, expected a map for the provided schema with type=object",
                )),
            },
            Shape::Optional(inner) => Ok(Self::some(Self::from_json(json, inner)?)),
            Shape::String | Shape::Bytes | Shape::Date | Shape::DateTime | Shape::Duration => match json {
                Json::String(s) => from_text(s, decl.shape()),
                _ => mismatch("string"),
            },
        }
    }

    /// JSON without a type: whole numbers that fit are ints, others doubles.
    pub(crate) fn from_untyped(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(n) => match n.as_i64() {
                Some(i) => Self::Int(i),
                None => Self::Double(n.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(s) => Self::String(Text::Borrowed(s)),
            Json::Array(items) => Self::List(List::untyped(items)),
            Json::Object(entries) => Self::Map(Map::untyped(entries)),
        }
    }

    /// The value as JSON: bytes in base64, timestamps and durations as text.
    ///
    /// # Errors
    /// For values without a JSON form, and data that does not match its type.
    pub fn to_json(&self) -> Result<Json, EvalError> {
        Ok(match self {
            Self::Null | Self::Optional(None) => Json::Null,
            Self::Bool(b) => Json::Bool(*b),
            Self::Int(i) => Json::from(*i),
            Self::Uint(u) => Json::from(*u),
            Self::Double(d) => Json::from(*d),
            Self::String(s) => Json::from(&**s),
            Self::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
            Self::Timestamp(t) => Json::String(t.to_rfc3339()),
            Self::Duration(d) => Json::String(time::format_seconds(*d)),
            Self::List(list) => {
                let mut items = Vec::new();
                for item in list.iter() {
                    items.push(item?.to_json()?);
                }
                Json::Array(items)
            }
            Self::Map(map) => {
                let mut entries = serde_json::Map::new();
                for key in map.keys() {
                    if let Some(value) = map.find(&key)? {
                        entries.insert(key.to_string(), value.to_json()?);
                    }
                }
                Json::Object(entries)
            }
            Self::Optional(Some(value)) => value.to_json()?,
            Self::Preserved(json) => (*json).clone(),
            Self::Type(_) | Self::Opaque(_) => {
                return Err(EvalError::new(format!("{} has no JSON form", self.type_name())));
            }
        })
    }
}

fn from_text<'a>(s: &'a str, shape: &Shape) -> Result<Value<'a>, EvalError> {
    let invalid = |kind: &str, reason: String| Err(EvalError::new(format!("Invalid {kind} {s}: {reason}")));
    match shape {
        Shape::Bytes => match decode_base64(s) {
            Some(bytes) => Ok(Value::Bytes(bytes.into())),
            None => invalid("byte formatted string", "illegal base64 data".to_owned()),
        },
        Shape::Date => match time::parse_date(s) {
            Ok(t) => Ok(Value::Timestamp(t)),
            Err(reason) => invalid("date formatted string", reason),
        },
        Shape::DateTime => match time::parse_date_time(s) {
            Ok(t) => Ok(Value::Timestamp(t)),
            Err(reason) => invalid("date-time formatted string", reason),
        },
        Shape::Duration => match time::parse_openapi_duration(s) {
            Ok(d) => Ok(Value::Duration(d)),
            Err(reason) => invalid("duration", reason),
        },
        _ => Ok(Value::String(Text::Borrowed(s))),
    }
}

/// Base64 of OpenAPI's `byte` format: the URL alphabet with padding, line breaks skipped.
pub(crate) fn decode_base64(s: &str) -> Option<Vec<u8>> {
    const GO_URL_ENCODING: GeneralPurpose = GeneralPurpose::new(
        &alphabet::URL_SAFE,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if s.contains(['\r', '\n']) {
        return GO_URL_ENCODING.decode(s.replace(['\r', '\n'], "")).ok();
    }
    GO_URL_ENCODING.decode(s).ok()
}

/// Name of the Go type of decoded JSON.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(n) if n.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
