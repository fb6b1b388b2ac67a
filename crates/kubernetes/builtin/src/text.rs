//! JSON text with fields in the order of the Go types, as upstream writes built-in objects. Objects of other kinds
//! have sorted keys, as upstream writes them too.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::table::{Expr, Shape, Special, TypeId, table};

/// Fields of a struct in JSON, in Go's order, by type.
type Order = Vec<(&'static str, &'static Expr)>;

static ORDER: LazyLock<Vec<Order>> = LazyLock::new(|| {
    let fields = |(id, _)| table().flat_fields(id).into_iter().map(|f| (f.json, &f.expr)).collect();
    table().types().map(fields).collect()
});

/// The type of an object by its `apiVersion` and `kind`; none if it is not built in.
pub fn type_of(object: &Map<String, Value>) -> Option<TypeId> {
    let kind = object.get("kind")?.as_str()?;
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or("v1");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Tables and metadata have the same fields in every version.
    let version = if group == "meta.k8s.io" { "v1" } else { version };
    table().kind(group, version, kind)
}

/// The members of an object in the order of its type, with the types of their values.
pub fn members(id: Option<TypeId>, map: &Map<String, Value>) -> Vec<(&str, &Value, Option<&'static Expr>)> {
    let Some(order) = id.and_then(|id| ORDER.get(id.index())).filter(|order| !order.is_empty()) else {
        return map.iter().map(|(key, value)| (key.as_str(), value, None)).collect();
    };
    let mut all = Vec::with_capacity(map.len());
    for (name, expr) in order {
        if all.len() == map.len() {
            return all;
        }
        if let Some((key, value)) = map.get_key_value(*name) {
            all.push((key.as_str(), value, Some(*expr)));
        }
    }
    // Fields that the type does not have come last.
    for (key, value) in map {
        if !order.iter().any(|(name, _)| name == key) {
            all.push((key.as_str(), value, None));
        }
    }
    all
}

/// An object or another value as text.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    write_any(&mut out, value);
    out
}

/// Writes a value of a type.
pub fn write(out: &mut Vec<u8>, value: &Value, expr: Option<&'static Expr>) {
    match (expr, value) {
        (Some(Expr::Pointer(inner)), value) => write(out, value, Some(inner)),
        (Some(Expr::List(inner)), Value::Array(items)) => {
            list(out, items, |out, item| write(out, item, Some(inner)))
        }
        (Some(Expr::Map(_, inner)), Value::Object(map)) => {
            let members = map.iter().map(|(key, value)| (key.as_str(), value, Some(&**inner)));
            object(out, members);
        }
        (Some(Expr::Named(id)), value) => write_named(out, value, *id),
        _ => plain(out, value),
    }
}

fn write_named(out: &mut Vec<u8>, value: &Value, id: TypeId) {
    match (&table().get(id).shape, value) {
        (Shape::Alias { under, .. }, value) => write(out, value, Some(under)),
        (Shape::Struct, Value::Object(map)) => object(out, members(Some(id), map)),
        (Shape::Special(Special::RawExtension), value) => write_any(out, value),
        (
            Shape::Special(Special::SchemaOrArray | Special::SchemaOrBool | Special::SchemaOrStringArray),
            Value::Object(map),
        ) => {
            static PROPS: LazyLock<Option<TypeId>> =
                LazyLock::new(|| table().find("apiextensions/v1.JSONSchemaProps"));
            object(out, members(*PROPS, map));
        }
        _ => plain(out, value),
    }
}

/// A value whose type is in it, if anywhere.
fn write_any(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(map) => object(out, members(type_of(map), map)),
        other => plain(out, other),
    }
}

fn object<'a>(
    out: &mut Vec<u8>,
    members: impl IntoIterator<Item = (&'a str, &'a Value, Option<&'static Expr>)>,
) {
    out.push(b'{');
    for (n, (key, value, expr)) in members.into_iter().enumerate() {
        begin_member(out, n, key);
        write(out, value, expr);
    }
    out.push(b'}');
}

fn list(out: &mut Vec<u8>, items: &[Value], mut each: impl FnMut(&mut Vec<u8>, &Value)) {
    out.push(b'[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        each(out, item);
    }
    out.push(b']');
}

/// The `n`th key of an object, with what separates it.
pub fn begin_member(out: &mut Vec<u8>, n: usize, key: &str) {
    if n > 0 {
        out.push(b',');
    }
    // Writing text into memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, key);
    out.push(b':');
}

fn plain(out: &mut Vec<u8>, value: &Value) {
    // Serializing a `Value` into memory cannot fail: keys are strings and the writer is infallible.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(value: &Value) -> String {
        String::from_utf8(to_vec(value)).unwrap()
    }

    #[test]
    fn built_in_objects_have_the_order_of_their_go_types() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "unknown": 1,
            "metadata": {"labels": {"b": "1", "a": "2"}, "name": "x", "uid": "u"},
            "spec": {"containers": [{"image": "i", "name": "c", "env": [{"value": "1", "name": "N"}]}], "volumes": []},
            "status": {"phase": "Running"},
        });
        assert_eq!(
            text(&pod),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","uid":"u","labels":{"a":"2","b":"1"}},"spec":{"volumes":[],"containers":[{"name":"c","image":"i","env":[{"name":"N","value":"1"}]}]},"status":{"phase":"Running"},"unknown":1}"#
        );
        let status =
            json!({"apiVersion": "v1", "code": 200, "kind": "Status", "metadata": {}, "status": "Success"});
        assert_eq!(
            text(&status),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":200}"#
        );
    }

    #[test]
    fn other_objects_have_sorted_keys() {
        let blob =
            json!({"kind": "Blob", "apiVersion": "example.com/v1", "metadata": {"uid": "u", "name": "x"}});
        assert_eq!(text(&blob), blob.to_string());
        assert_eq!(text(&json!([1, null])), "[1,null]");
    }

    #[test]
    fn the_text_is_the_same_object() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {"versions": [{"schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"b": {"type": "array", "items": {"type": "string", "format": "x"}}},
                "additionalProperties": true, "x-kubernetes-validations": [{"rule": "true", "message": "m"}],
            }}}]},
        });
        assert_eq!(serde_json::from_slice::<Value>(&to_vec(&definition)).unwrap(), definition);
    }
}
