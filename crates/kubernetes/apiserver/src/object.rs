//! Access to an object's metadata in its JSON form.

use bytes::Bytes;
use capstan_builtin::table::Expr;
use capstan_builtin::text;
use capstan_store::Stamped;
use serde_json::{Map, Value, json};

/// Metadata accessors of a JSON object. Absent and wrongly typed fields read as empty.
pub trait Meta {
    fn meta(&self) -> Option<&Map<String, Value>>;
    /// The `metadata` map. Created if missing.
    fn meta_mut(&mut self) -> &mut Map<String, Value>;

    /// A string field of the metadata.
    fn meta_str(&self, key: &str) -> &str {
        self.meta().and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default()
    }
    /// `metadata.name`.
    fn name(&self) -> &str {
        self.meta_str("name")
    }
    /// `metadata.namespace`.
    fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }
    /// `metadata.uid`.
    fn uid(&self) -> &str {
        self.meta_str("uid")
    }
    /// `metadata.resourceVersion`.
    fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }
    /// `metadata.generation`, 0 if absent.
    fn generation(&self) -> i64 {
        self.meta().and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or(0)
    }
    /// Whether `metadata.deletionTimestamp` is set.
    fn is_terminating(&self) -> bool {
        !self.meta_str("deletionTimestamp").is_empty()
    }
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<String> {
        self.meta()
            .and_then(|m| m.get("finalizers"))
            .and_then(Value::as_array)
            .map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.meta()?.get("labels")?.get(key)?.as_str()
    }
    /// Sets a metadata field, or removes it when `value` is empty (`null`, `""`, `[]`, `{}`).
    fn set_meta(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        let empty = match &value {
            Value::Null => true,
            Value::String(s) => s.is_empty(),
            Value::Array(a) => a.is_empty(),
            Value::Object(o) => o.is_empty(),
            _ => false,
        };
        if empty {
            self.meta_mut().remove(key);
        } else {
            self.meta_mut().insert(key.to_owned(), value);
        }
    }
}

impl Meta for Value {
    fn meta(&self) -> Option<&Map<String, Value>> {
        self.get("metadata")?.as_object()
    }

    fn meta_mut(&mut self) -> &mut Map<String, Value> {
        if !self.is_object() {
            *self = json!({});
        }
        let meta = &mut self["metadata"];
        if !meta.is_object() {
            *meta = json!({});
        }
        match meta {
            Value::Object(map) => map,
            // Set to an object just above.
            _ => unreachable!("metadata is an object"),
        }
    }
}

/// An owner reference, as needed by garbage collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerRef {
    /// `group/version` of the owner.
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    /// Whether foreground deletion of the owner waits for this object.
    pub block: bool,
}

/// Store key of an object: `namespace/name`, or `name` for cluster-scoped kinds.
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Encodes an object for the store with a gap for the revision, which becomes `metadata.resourceVersion`.
pub fn stamped(mut object: Value) -> Stamped {
    // The object is written by hand around the revision: user data could contain any marker that is searched for in
    // the finished text.
    object.meta_mut().insert("resourceVersion".into(), Value::String(String::new()));
    let mut head = Vec::with_capacity(1024);
    let mut tail = Vec::new();
    let mut out = &mut head;
    if let Value::Object(top) = &object {
        out.push(b'{');
        for (n, (key, value, expr)) in text::members(text::type_of(top), top).into_iter().enumerate() {
            text::begin_member(out, n, key);
            match value {
                Value::Object(meta) if key == "metadata" => {
                    let id = expr.and_then(|expr| if let Expr::Named(id) = expr { Some(*id) } else { None });
                    out.push(b'{');
                    for (m, (meta_key, meta_value, meta_expr)) in
                        text::members(id, meta).into_iter().enumerate()
                    {
                        text::begin_member(out, m, meta_key);
                        if meta_key == "resourceVersion" {
                            out.push(b'"');
                            out = &mut tail;
                            out.push(b'"');
                        } else {
                            text::write(out, meta_value, meta_expr);
                        }
                    }
                    out.push(b'}');
                }
                other => text::write(out, other, expr),
            }
        }
        out.push(b'}');
    }
    Stamped { head: Bytes::from(head), tail: Bytes::from(tail), mark: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamped_object_differs_from_its_json_only_by_the_revision() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "labels": {"resourceVersion": ""}, "uid": "u"},
            "data": {"metadata": "{\"resourceVersion\":\"\"}"},
        });
        let Stamped { head, tail, .. } = stamped(object.clone());
        let text = [head.as_ref(), b"42", tail.as_ref()].concat();
        let mut expected = object;
        expected["metadata"]["resourceVersion"] = "42".into();
        assert_eq!(text, capstan_builtin::text::to_vec(&expected));
    }
}
