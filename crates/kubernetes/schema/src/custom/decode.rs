//! Decodes a body to an object: normalises metadata, prunes unknown fields, sets defaults.

use serde_json::{Map, Value};

use crate::bounded::Texts;
use crate::embedded::{self, Coerce};
use crate::memory::{MemoryBudget, Undecodable};
use crate::path::Path;
use crate::{Schema, default, golang, meta, prune};

/// Options of [`decode`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Decode {
    /// `spec.preserveUnknownFields` of the definition: nothing is pruned.
    pub preserve_unknown: bool,
    /// Malformed metadata is dropped instead of being an error; for objects from the store.
    pub drop_malformed: bool,
    /// Nulls stay where the schema does not allow them: for the result of an apply, which validation rejects.
    pub keep_nulls: bool,
    /// Memory that defaults may take in bytes; `None` is the limit of a document.
    pub memory: Option<usize>,
}

/// Normalises a JSON object in place and returns the paths of unknown fields, in upstream's order. The error for a
/// malformed object is the message of a 400 response.
pub fn decode(object: &mut Value, schema: &Schema, options: Decode) -> Result<Texts, Undecodable> {
    for key in ["kind", "apiVersion"] {
        match object.get(key) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => {
                return Err(format!(
                    ".{key} accessor error: {} is of the type {}, expected string",
                    golang::display(other),
                    golang::type_name(other)
                )
                .into());
            }
        }
    }
    let mut unknown = Texts::default();
    let mut metadata: Option<Map<String, Value>> = None;
    if let Some(value) = object.get("metadata") {
        let decoded = meta::decode_object_meta(value, options.drop_malformed)?;
        unknown.append(decoded.unknown.below("metadata"));
        metadata = Some(decoded.metadata);
    }
    if !options.preserve_unknown {
        unknown.append(prune::prune(object, schema));
        if !options.keep_nulls {
            default::prune_nulls(object, Some(schema));
        }
    }
    let coerce = Coerce { resource_root: false, drop_malformed: options.drop_malformed };
    let found = embedded::coerce(object, schema, coerce, &Path::ROOT).map_err(|error| error.to_string())?;
    unknown.append(found);
    if let (Some(metadata), Value::Object(fields)) = (metadata, &mut *object) {
        fields.insert("metadata".into(), metadata.into());
    }
    let budget = options.memory.map_or_else(MemoryBudget::default, MemoryBudget::of);
    default::apply(object, schema, &budget)?;
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bodies_are_normalised_pruned_and_defaulted() {
        let schema = Schema::from_json(&json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "default": {}, "properties": {
                "a": {"type": "string", "default": "x"}, "n": {"type": "string"},
                "e": {"type": "object", "x-kubernetes-embedded-resource": true},
            }},
        }}))
        .expect("valid");
        let mut object = json!({"apiVersion": "g/v1", "kind": "K", "extra": 1,
            "metadata": {"name": "a", "odd": 1, "labels": null},
            "spec": {"n": null, "z": 1, "e": {"metadata": {"odd": 1}}}});
        let unknown = decode(&mut object, &schema, Decode::default()).expect("decodes");
        assert_eq!(unknown.entries(), ["metadata.odd", "extra", "spec.z", "spec.e.metadata.odd"]);
        assert_eq!(
            object,
            json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"},
                "spec": {"a": "x", "e": {"metadata": {}}}})
        );
        let mut bare = json!({"apiVersion": "g/v1", "kind": "K"});
        decode(&mut bare, &schema, Decode::default()).expect("decodes");
        assert_eq!(bare["spec"], json!({"a": "x"}));
    }

    #[test]
    fn identity_must_be_text() {
        let schema = Schema::default();
        let error = decode(&mut json!({"kind": {"a": 1}}), &schema, Decode::default()).expect_err("invalid");
        assert_eq!(
            error.to_string(),
            ".kind accessor error: map[a:1] is of the type map[string]interface {}, expected string"
        );
    }
}
