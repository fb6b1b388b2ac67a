//! What may be in a field, beyond its Rust type.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// An entry of `x-kubernetes-validations`.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// An integer without a format: Go's `int`.
pub(crate) fn integer(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer" })
}

/// Several of them.
pub(crate) fn integers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "integer" } })
}

/// A port, or 0.
pub(crate) fn port(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "minimum": 0, "maximum": 65535 })
}
