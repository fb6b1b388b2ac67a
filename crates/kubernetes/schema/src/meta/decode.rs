//! Decodes `metadata` as the Go server does: unknown fields are dropped and reported, wrong types are errors with
//! encoding/json's text, and the rest is normalised (empty values dropped, timestamps in UTC and whole seconds).

use serde_json::{Map, Value};

use super::time::{format_rfc3339, parse_rfc3339};
use crate::bounded::Texts;
use crate::golang;

/// Decoded `metadata`.
#[derive(Debug, Default, PartialEq)]
pub struct Decoded {
    /// The normalised metadata.
    pub metadata: Map<String, Value>,
    /// Paths of unknown fields below `metadata`, in order.
    pub unknown: Texts,
}

/// Decodes `metadata`. With `drop_malformed`, fields of the wrong type are dropped like unknown ones instead of being
/// an error.
pub fn decode_object_meta(metadata: &Value, drop_malformed: bool) -> Result<Decoded, String> {
    let whole = decode(metadata);
    match (whole, metadata) {
        (Err(_), Value::Object(fields)) if drop_malformed => {
            let mut out = Decoded::default();
            for (key, value) in fields {
                let single = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
                if let Ok(decoded) = decode(&single) {
                    out.metadata.extend(decoded.metadata);
                    out.unknown.append(decoded.unknown);
                }
            }
            Ok(out)
        }
        (Err(_), other) if drop_malformed => {
            Err(format!("invalid metadata: expected object, got {}", golang::type_name(other)))
        }
        (result, _) => result,
    }
}

fn decode(metadata: &Value) -> Result<Decoded, String> {
    let mut decoder = Decoder::default();
    let metadata = match metadata {
        Value::Null => Map::new(),
        Value::Object(fields) => decoder.object(OBJECT_META, fields),
        other => {
            return Err(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                word(other)
            ));
        }
    };
    match decoder.fatal.or(decoder.error) {
        Some(error) => Err(error),
        None => Ok(Decoded { metadata, unknown: decoder.unknown }),
    }
}

/// A Go struct: its name and fields.
struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Kind)],
}

/// A Go field's type.
#[derive(Clone, Copy)]
enum Kind {
    /// A string type by that name, dropped when empty.
    Text(&'static str),
    /// A string type by that name, always written.
    RequiredText(&'static str),
    Integer,
    OptionalInteger,
    OptionalBool,
    Time,
    TextMap,
    Texts,
    Structs(&'static Struct),
    Raw,
}

const OBJECT_META: &Struct = &Struct {
    name: "ObjectMeta",
    fields: &[
        ("annotations", Kind::TextMap),
        ("creationTimestamp", Kind::Time),
        ("deletionGracePeriodSeconds", Kind::OptionalInteger),
        ("deletionTimestamp", Kind::Time),
        ("finalizers", Kind::Texts),
        ("generateName", Kind::Text("string")),
        ("generation", Kind::Integer),
        ("labels", Kind::TextMap),
        ("managedFields", Kind::Structs(MANAGED_FIELDS_ENTRY)),
        ("name", Kind::Text("string")),
        ("namespace", Kind::Text("string")),
        ("ownerReferences", Kind::Structs(OWNER_REFERENCE)),
        ("resourceVersion", Kind::Text("string")),
        ("selfLink", Kind::Text("string")),
        ("uid", Kind::Text("types.UID")),
    ],
};

const OWNER_REFERENCE: &Struct = &Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", Kind::RequiredText("string")),
        ("blockOwnerDeletion", Kind::OptionalBool),
        ("controller", Kind::OptionalBool),
        ("kind", Kind::RequiredText("string")),
        ("name", Kind::RequiredText("string")),
        ("uid", Kind::RequiredText("types.UID")),
    ],
};

const MANAGED_FIELDS_ENTRY: &Struct = &Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("apiVersion", Kind::Text("string")),
        ("fieldsType", Kind::Text("string")),
        ("fieldsV1", Kind::Raw),
        ("manager", Kind::Text("string")),
        ("operation", Kind::Text("v1.ManagedFieldsOperationType")),
        ("subresource", Kind::Text("string")),
        ("time", Kind::Time),
    ],
};

#[derive(Default)]
struct Decoder {
    /// Current path, for unknown fields: `ownerReferences[0].`
    path: String,
    /// Current path, for errors: field names only.
    fields: Vec<&'static str>,
    unknown: Texts,
    /// encoding/json continues after a type error and returns the first of them…
    error: Option<String>,
    /// … but an error of a custom decoder ends it at once.
    fatal: Option<String>,
}

impl Decoder {
    fn object(&mut self, target: &'static Struct, fields: &Map<String, Value>) -> Map<String, Value> {
        let mut out = Map::new();
        for (name, kind) in target.fields {
            if let Kind::RequiredText(_) = kind {
                out.insert((*name).into(), "".into());
            }
        }
        for (key, value) in fields {
            let Ok(index) = target.fields.binary_search_by(|(name, _)| (*name).cmp(key)) else {
                self.unknown.push(format_args!("{}{key}", self.path));
                continue;
            };
            let (name, kind) = target.fields[index];
            self.fields.push(name);
            let length = self.path.len();
            self.path.push_str(name);
            if let Some(value) = self.value(target, kind, value) {
                out.insert(name.into(), value);
            }
            self.path.truncate(length);
            self.fields.pop();
        }
        out
    }

    /// The normalised value, or `None` where Go would omit it.
    fn value(&mut self, target: &'static Struct, kind: Kind, value: &Value) -> Option<Value> {
        if value.is_null() {
            return None;
        }
        match (kind, value) {
            (Kind::Text(_), Value::String(text)) => (!text.is_empty()).then(|| value.clone()),
            (Kind::RequiredText(_), Value::String(_)) | (Kind::OptionalBool, Value::Bool(_)) => {
                Some(value.clone())
            }
            (Kind::Integer, Value::Number(n)) if n.is_i64() => (n.as_i64() != Some(0)).then(|| value.clone()),
            (Kind::OptionalInteger, Value::Number(n)) if n.is_i64() => Some(value.clone()),
            (Kind::Raw, _) => Some(value.clone()),
            (Kind::Time, _) => self.time(value),
            (Kind::TextMap, Value::Object(entries)) => {
                let entries: Map<String, Value> =
                    entries.iter().map(|(key, value)| (key.clone(), self.text(target, value))).collect();
                (!entries.is_empty()).then(|| entries.into())
            }
            (Kind::Texts, Value::Array(entries)) => {
                let entries: Vec<Value> = entries.iter().map(|value| self.text(target, value)).collect();
                (!entries.is_empty()).then(|| entries.into())
            }
            (Kind::Structs(item), Value::Array(entries)) => {
                let length = self.path.len();
                let mut out: Vec<Value> = Vec::with_capacity(entries.len());
                for (index, entry) in entries.iter().enumerate() {
                    self.path.push_str(&format!("[{index}]."));
                    let empty = Map::new();
                    out.push(match entry {
                        Value::Object(fields) => self.object(item, fields).into(),
                        _ => {
                            if !entry.is_null() {
                                self.mismatch(target, entry, &format!("v1.{}", item.name));
                            }
                            self.object(item, &empty).into()
                        }
                    });
                    self.path.truncate(length);
                }
                (!out.is_empty()).then(|| out.into())
            }
            _ => {
                let wanted = match kind {
                    Kind::Text(name) | Kind::RequiredText(name) => name.to_owned(),
                    Kind::Integer | Kind::OptionalInteger => "int64".into(),
                    Kind::OptionalBool => "bool".into(),
                    Kind::TextMap => "map[string]string".into(),
                    Kind::Texts => "[]string".into(),
                    Kind::Structs(item) => format!("[]v1.{}", item.name),
                    Kind::Time | Kind::Raw => String::new(),
                };
                self.mismatch(target, value, &wanted);
                None
            }
        }
    }

    /// An entry of a map or list of strings. Null is the empty string.
    fn text(&mut self, target: &'static Struct, value: &Value) -> Value {
        match value {
            Value::String(_) => value.clone(),
            Value::Null => "".into(),
            _ => {
                self.mismatch(target, value, "string");
                "".into()
            }
        }
    }

    fn time(&mut self, value: &Value) -> Option<Value> {
        let parsed = match value {
            Value::String(text) => parse_rfc3339(text),
            _ => Err(format!("json: cannot unmarshal {} into Go value of type string", word(value))),
        };
        match parsed {
            Ok((seconds, _)) => Some(format_rfc3339(seconds).into()),
            Err(error) => {
                self.fatal.get_or_insert(error);
                None
            }
        }
    }

    fn mismatch(&mut self, target: &Struct, value: &Value, wanted: &str) {
        let what = match value {
            Value::Number(number) if wanted == "int64" => format!("number {number}"),
            other => word(other).into(),
        };
        let field = self.fields.join(".");
        self.error.get_or_insert_with(|| {
            format!(
                "json: cannot unmarshal {what} into Go struct field {}.{field} of type {wanted}",
                target.name
            )
        });
    }
}

/// encoding/json's name of a JSON type.
fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_fall_away_and_are_named() {
        let decoded = decode_object_meta(
            &json!({
                "name": "a", "foo": 1, "generateName": "", "generation": 0, "labels": {"x": null},
                "creationTimestamp": null, "deletionTimestamp": "2020-01-01T01:00:00.5+01:00",
                "ownerReferences": [{"kind": "K", "controller": false, "x": {}}],
            }),
            false,
        )
        .expect("decodes");
        assert_eq!(
            Value::Object(decoded.metadata),
            json!({
                "name": "a", "labels": {"x": ""}, "deletionTimestamp": "2020-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "", "kind": "K", "name": "", "uid": "", "controller": false}],
            })
        );
        assert_eq!(decoded.unknown.entries(), ["foo", "ownerReferences[0].x"]);
    }

    #[test]
    fn wrong_types_are_errors_with_gos_text() {
        for (metadata, error) in [
            (
                json!({"name": 1}),
                "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ),
            (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
            (
                json!({"labels": {"a": true}}),
                "json: cannot unmarshal bool into Go struct field ObjectMeta.labels of type string",
            ),
            (
                json!({"generation": 1.5}),
                "json: cannot unmarshal number 1.5 into Go struct field ObjectMeta.generation of type int64",
            ),
            (
                json!({"ownerReferences": [{"uid": {}}]}),
                "json: cannot unmarshal object into Go struct field OwnerReference.ownerReferences.uid of type \
                 types.UID",
            ),
            (
                json!({"creationTimestamp": "x", "annotations": []}),
                r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
            ),
        ] {
            assert_eq!(decode_object_meta(&metadata, false).expect_err("invalid"), error);
        }
    }

    #[test]
    fn malformed_fields_can_be_dropped() {
        let decoded = decode_object_meta(&json!({"name": "a", "labels": 1, "y": 2}), true).expect("drops");
        assert_eq!(Value::Object(decoded.metadata), json!({"name": "a"}));
        assert_eq!(decoded.unknown.entries(), ["y"]);
        assert_eq!(
            decode_object_meta(&json!([]), true),
            Err("invalid metadata: expected object, got []interface {}".into())
        );
    }
}
