//! A request as a flat list of names and values, the way CloudStack writes structure.
//!
//! | shape | parameters |
//! |---|---|
//! | text, number, truth | `name=value` |
//! | list of those | `name=a,b` |
//! | list of records | `name[0].key=…`, `name[1].key=…` |
//! | map | `name[0].first=…`, `name[1].second=…`: one index per key |
//!
//! What is absent or empty is not sent: CloudStack takes an empty value for a wrong one.

use serde::Serialize;
use serde::ser::Error as _;
use serde_json::{Error, Value};

/// The parameters of a command, without those that every request has.
pub fn flatten(command: &impl Serialize) -> Result<Vec<(String, String)>, Error> {
    let mut parameters = Vec::new();
    match serde_json::to_value(command)? {
        Value::Object(fields) => {
            for (name, value) in fields {
                field(&mut parameters, name, value)?;
            }
        }
        Value::Null => {}
        _ => return Err(Error::custom("a command is a record")),
    }
    Ok(parameters)
}

fn field(parameters: &mut Vec<(String, String)>, name: String, value: Value) -> Result<(), Error> {
    match value {
        Value::Object(map) => {
            for (at, (key, value)) in map.into_iter().enumerate() {
                if let Some(value) = scalar(value)? {
                    parameters.push((format!("{name}[{at}].{key}"), value));
                }
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.into_iter().enumerate() {
                let Value::Object(record) = item else { return Err(mixed(&name)) };
                for (key, value) in record {
                    if let Some(value) = scalar(value)? {
                        parameters.push((format!("{name}[{at}].{key}"), value));
                    }
                }
            }
        }
        Value::Array(items) => {
            let items: Result<Vec<_>, _> = items.into_iter().map(scalar).collect();
            let items: Vec<String> = items?.into_iter().flatten().collect();
            // The server splits at commas and knows no way to write one inside an item.
            if items.iter().any(|item| item.contains(',')) {
                return Err(Error::custom(format_args!("an item of {name} contains a comma")));
            }
            if !items.is_empty() {
                parameters.push((name, items.join(",")));
            }
        }
        other => {
            if let Some(value) = scalar(other)? {
                parameters.push((name, value));
            }
        }
    }
    Ok(())
}

fn scalar(value: Value) -> Result<Option<String>, Error> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(truth) => Ok(Some(truth.to_string())),
        Value::Number(number) => Ok(Some(number.to_string())),
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Array(_) | Value::Object(_) => Err(Error::custom("structure inside structure")),
    }
}

fn mixed(name: &str) -> Error {
    Error::custom(format_args!("{name} mixes records with other values"))
}
