//! The object that creation starts from.

use serde_json::{Map, Value};

use crate::schema::{Schema, TypeName};

/// The live object of a create. For custom resources (`schema` is `None`) it has nothing but its type.
/// For a built-in kind it has what a zero struct has in Go: structs by value are there and empty, so that
/// creating an object does not own `spec` itself, only what is in it.
///
/// A built-in schema tells such fields by their default: `{}` for a struct by value, `""`, `0` or `false`
/// for a scalar that is always written; a required list, map or pointer is null.
pub fn empty_object(api_version: &str, kind: &str, schema: Option<&Schema>) -> Value {
    let mut object = match schema.map(zero) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Value::Object(object)
}

fn zero(schema: &Schema) -> Value {
    let required = schema.checks.as_ref().map_or(&[][..], |checks| checks.required.as_slice());
    let mut out = Map::new();
    for (name, field) in &schema.properties {
        let is_required = || required.iter().any(|r| r == name);
        match &field.default {
            Some(Value::Object(default)) if default.is_empty() && field.kind == Some(TypeName::Object) => {
                out.insert(name.clone(), zero(field));
            }
            Some(default) if is_zero_scalar(default) && is_required() => {
                out.insert(name.clone(), default.clone());
            }
            _ if is_required() && matches!(field.kind, Some(TypeName::Array | TypeName::Object)) => {
                out.insert(name.clone(), Value::Null);
            }
            _ => {}
        }
    }
    Value::Object(out)
}

fn is_zero_scalar(value: &Value) -> bool {
    match value {
        Value::String(s) => s.is_empty(),
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::Bool(b) => !b,
        _ => false,
    }
}
