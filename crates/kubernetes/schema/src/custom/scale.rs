//! The scale subresource of a custom resource.

use serde_json::Value;

use crate::field::{FieldError, FieldErrors};
use crate::golang;

/// JSON paths of the scale subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Path of the desired replicas, such as `.spec.replicas`.
    pub spec_replicas: String,
    /// Path of the actual replicas, such as `.status.replicas`.
    pub status_replicas: String,
    /// Path of the serialized label selector, such as `.status.selector`.
    pub label_selector: Option<String>,
}

impl Scale {
    /// Validates the desired replicas.
    pub fn validate_spec(&self, object: &Value) -> FieldErrors {
        replicas(object, &self.spec_replicas)
    }

    /// Validates the actual replicas and the selector.
    pub fn validate_status(&self, object: &Value) -> FieldErrors {
        let mut out = replicas(object, &self.status_replicas);
        if let Some(path) = &self.label_selector
            && let Err(error) = nested(object, path, "string", Value::is_string)
        {
            out.push(FieldError::invalid(path.as_str(), "", error));
        }
        out
    }
}

fn replicas(object: &Value, path: &str) -> FieldErrors {
    let detail = match nested(object, path, "int64", Value::is_i64) {
        Err(error) => return [FieldError::invalid(path, 0, error)].into(),
        Ok(None) => return FieldErrors::new(),
        Ok(Some(value)) => match value.as_i64().unwrap_or_default() {
            i64::MIN..=-1 => "should be a non-negative integer".to_owned(),
            0..=0x7fff_ffff => return FieldErrors::new(),
            _ => format!("should be less than or equal to {}", i32::MAX),
        },
    };
    let value = nested(object, path, "int64", Value::is_i64).ok().flatten().cloned().unwrap_or_default();
    [FieldError::invalid(path, value, detail)].into()
}

/// The value at a dotted path, if present. Fails if the value or a parent has another type.
fn nested<'a>(
    object: &'a Value,
    path: &str,
    wanted: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let fields: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let wrong = |depth: usize, value: &Value, wanted: &str| {
        Err(format!(
            ".{} accessor error: {} is of the type {}, expected {wanted}",
            fields[..depth].join("."),
            golang::display(value),
            golang::type_name(value)
        ))
    };
    let mut value = object;
    for (index, field) in fields.iter().enumerate() {
        value = match value {
            Value::Null => return Ok(None),
            Value::Object(map) => match map.get(*field) {
                Some(value) => value,
                None => return Ok(None),
            },
            other => return wrong(index + 1, other, "map[string]interface{}"),
        };
    }
    if is(value) { Ok(Some(value)) } else { wrong(fields.len(), value, wanted) }
}
