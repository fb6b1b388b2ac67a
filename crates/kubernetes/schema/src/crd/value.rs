//! Validates a schema that is not the one of a resource, but of a value below a field.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cel::{Scope, TotalCost};
use super::openapi::{self, Context};
use super::props::Props;
use super::{Options, defaults, structural};
use crate::Schema;
use crate::field::{FieldError, FieldErrors};
use crate::path::Path;

/// The field that has the value.
const FIELD: &str = "value";

/// Validates the schema of a value: its structure, then its defaults, then its keywords and rules. `parsed` is the same
/// schema.
pub fn validate(schema: &Value, parsed: &Arc<Schema>, path: &Path<'_>) -> FieldErrors {
    // Resources are objects, and values of other types are structural below a field only.
    let resource = json!({"type": "object", "properties": {FIELD: schema}});
    let (Some(resource), Some(props)) = (Props::of(&resource), Props::of(schema)) else {
        return FieldErrors::new();
    };
    if let Some(error) = structural::unsupported(resource) {
        return [FieldError::invalid(path, "", error)].into();
    }
    let properties = path.field("properties");
    let inside = properties.key(FIELD).to_string();
    let outside = |error: FieldError| match error.field.strip_prefix(&inside) {
        Some(rest) => FieldError { field: format!("{path}{rest}"), ..error },
        None => error,
    };
    let errors = structural::validate(resource, path);
    if !errors.is_empty() {
        return errors.into_iter().map(outside).collect();
    }
    let errors = defaults::validate_value(parsed, path);
    if !errors.is_empty() {
        return errors;
    }
    let total = RefCell::new(TotalCost::default());
    let scope = Scope::root(props, &total);
    let options = Options::for_create();
    let mut out = openapi::validate(props, path, &Context::default(), false, &options, Some(&scope)).all();
    out.extend(total.borrow().errors(path));
    out
}
