//! Zero values in Go's JSON encoder: fields without `omitempty` are written even if unset (`"status": {}`, `"rules":
//! null`), empty fields with it are omitted.

use capstan_schema::memory;
use serde_json::{Map, Value, json};

use crate::table::{Expr, Field, Shape, Special, Table, TypeId};

/// Converts an object to what Go's encoder writes for a struct with these fields: adds zero values of absent fields
/// that are always written, drops empty ones that are not. Returns the number of added bytes: a small message can
/// expand to a large object.
pub(crate) fn complete(table: &Table, of: TypeId, object: &mut Map<String, Value>) -> usize {
    let mut added = 0;
    for field in &table.get(of).fields {
        match field.expr {
            Expr::Named(inner) if field.inline => added += complete(table, inner, object),
            _ => match object.get(field.json) {
                Some(value) if omitted(table, field, value) => {
                    object.remove(field.json);
                }
                Some(_) => {}
                None => {
                    if let Some(value) = zero_if_written(table, field) {
                        added += memory::map_entry(object.len(), field.json) + memory::tree(&value);
                        object.insert(field.json.to_owned(), value);
                    }
                }
            },
        }
    }
    added
}

/// The zero value of an unset field, if it is written.
fn zero_if_written(table: &Table, field: &Field) -> Option<Value> {
    if field.omit_zero {
        return None;
    }
    let kept = !field.omit_empty || struct_like(table, &field.expr);
    kept.then(|| zero(table, &field.expr))
}

/// Structs, and structs with a custom JSON format, are never "empty".
fn struct_like(table: &Table, expr: &Expr) -> bool {
    match expr {
        Expr::Named(id) => match &table.get(*id).shape {
            Shape::Struct | Shape::Special(_) => true,
            Shape::Alias { under, .. } => struct_like(table, under),
        },
        _ => false,
    }
}

fn omitted(table: &Table, field: &Field, value: &Value) -> bool {
    if struct_like(table, &field.expr) {
        return field.omit_zero && value.is_null();
    }
    if !field.omit_empty && !field.omit_zero {
        return false;
    }
    if matches!(table.resolve(&field.expr), Expr::Pointer(_)) {
        return value.is_null();
    }
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

/// Go's zero value of a type, as JSON.
pub(crate) fn zero(table: &Table, expr: &Expr) -> Value {
    match table.resolve(expr) {
        Expr::Bool => json!(false),
        Expr::String => json!(""),
        Expr::Int32 | Expr::Int64 | Expr::Float64 => json!(0),
        Expr::Named(id) => match table.get(*id).shape {
            Shape::Struct => {
                let mut object = Map::new();
                complete(table, *id, &mut object);
                Value::Object(object)
            }
            Shape::Special(special) => special_zero(special),
            Shape::Alias { .. } => Value::Null,
        },
        _ => Value::Null,
    }
}

/// A float as Go writes it: an integer without fraction.
pub(crate) fn float(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Zero values of types with a custom JSON format.
pub(crate) fn special_zero(special: Special) -> Value {
    match special {
        Special::Quantity => json!("0"),
        Special::IntOrString => json!(0),
        Special::SchemaOrBool => json!(false),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;

    fn completed(group: &str, kind: &str, given: Value) -> Value {
        let Value::Object(mut object) = given else { panic!("an object") };
        complete(table(), table().kind(group, "v1", kind).unwrap(), &mut object);
        Value::Object(object)
    }

    #[test]
    fn absent_fields_without_omitempty_are_written() {
        assert_eq!(
            completed("apps", "Deployment", json!({"metadata": {}})),
            json!({
                "metadata": {},
                "spec": {
                    "selector": null,
                    "strategy": {},
                    "template": {"metadata": {}, "spec": {"containers": null}}
                },
                "status": {}
            })
        );
        assert_eq!(
            completed("rbac.authorization.k8s.io", "Role", json!({})),
            json!({"metadata": {}, "rules": null})
        );
    }

    #[test]
    fn empty_fields_with_omitempty_are_dropped() {
        assert_eq!(
            completed("", "ConfigMap", json!({"metadata": {}, "data": {}, "immutable": false})),
            json!({"metadata": {}, "immutable": false})
        );
    }
}
