//! Reading and writing an object's metadata in its JSON form.

use bytes::Bytes;
use capstan_store::Stamped;
use serde_json::{Map, Value, json};

/// Metadata accessors over a JSON object. Absent and ill-typed read as empty.
pub trait Meta {
    /// The `metadata` map, if there is one.
    fn meta(&self) -> Option<&Map<String, Value>>;
    /// The `metadata` map, made if need be.
    fn meta_mut(&mut self) -> &mut Map<String, Value>;

    /// A text of the metadata.
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
    /// One label.
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
            // Made an object just above.
            _ => unreachable!("metadata is an object"),
        }
    }
}

/// An owner reference, as far as garbage collection cares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerRef {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// Foreground deletion of the owner waits for this object.
    pub block: bool,
}

/// Store key of an object: `namespace/name`, or `name` where there are no namespaces.
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Encodes an object for the store with a gap where the committer stamps the revision, which becomes
/// `metadata.resourceVersion`.
pub fn stamped(mut object: Value) -> Stamped {
    // The final text is known but for the revision, so the object is written around it by hand: looking
    // for a marker in the finished text could be fooled by user data.
    object.meta_mut().insert("resourceVersion".into(), Value::String(String::new()));
    let mut head = Vec::with_capacity(1024);
    let mut tail = Vec::new();
    let mut out = &mut head;
    if let Value::Object(top) = &object {
        out.push(b'{');
        for (n, (key, value)) in top.iter().enumerate() {
            separate(out, n, key);
            match value {
                Value::Object(meta) if key == "metadata" => {
                    out.push(b'{');
                    for (m, (meta_key, meta_value)) in meta.iter().enumerate() {
                        separate(out, m, meta_key);
                        if meta_key == "resourceVersion" {
                            out.push(b'"');
                            out = &mut tail;
                            out.push(b'"');
                        } else {
                            write(out, meta_value);
                        }
                    }
                    out.push(b'}');
                }
                other => write(out, other),
            }
        }
        out.push(b'}');
    }
    Stamped { head: Bytes::from(head), tail: Bytes::from(tail), mark: 0 }
}

fn separate(out: &mut Vec<u8>, n: usize, key: &str) {
    if n > 0 {
        out.push(b',');
    }
    write(out, &Value::String(key.to_owned()));
    out.push(b':');
}

fn write(out: &mut Vec<u8>, value: &Value) {
    // Writing JSON of a `Value` into memory cannot fail: keys are texts and the sink is infallible.
    let _ = serde_json::to_writer(out, value);
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
        assert_eq!(String::from_utf8(text).unwrap(), expected.to_string());
    }
}
