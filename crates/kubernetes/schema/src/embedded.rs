//! Embedded resources (`x-kubernetes-embedded-resource`): their identity and metadata are decoded and validated like
//! those of any object.

use serde_json::{Map, Value};

use crate::Schema;
use crate::bounded::Texts;
use crate::field::{FieldError, FieldErrors};
use crate::meta;
use crate::path::Path;

/// Options of [`coerce`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Coerce {
    /// Whether the value itself is a resource.
    pub resource_root: bool,
    /// Whether malformed identity and metadata are dropped instead of being an error: stored objects must stay
    /// readable.
    pub drop_malformed: bool,
}

/// Decodes identity and metadata of embedded resources in place and returns the paths of unknown metadata fields.
pub fn coerce(
    value: &mut Value,
    schema: &Schema,
    options: Coerce,
    path: &Path<'_>,
) -> Result<Texts, FieldError> {
    let mut unknown = Texts::default();
    let embedded = options.resource_root || schema.embedded_resource;
    coerce_value(value, schema, embedded, options.drop_malformed, path, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn coerce_value(
    value: &mut Value,
    schema: &Schema,
    embedded: bool,
    drop_malformed: bool,
    path: &Path<'_>,
    unknown: &mut Texts,
) -> Result<(), FieldError> {
    match value {
        Value::Object(fields) => {
            if embedded {
                coerce_identity(fields, drop_malformed, path, unknown)?;
            }
            for (key, value) in fields.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(child) = schema.properties.get(key) {
                    let path = path.field(key);
                    coerce_value(value, child, child.embedded_resource, drop_malformed, &path, unknown)?;
                } else if let Some(child) = schema.additional_schema() {
                    let path = path.key(key);
                    coerce_value(value, child, child.embedded_resource, drop_malformed, &path, unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    let path = path.index(index);
                    coerce_value(item, child, child.embedded_resource, drop_malformed, &path, unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_identity(
    fields: &mut Map<String, Value>,
    drop_malformed: bool,
    path: &Path<'_>,
    unknown: &mut Texts,
) -> Result<(), FieldError> {
    for key in ["apiVersion", "kind"] {
        match fields.get(key) {
            None | Some(Value::String(_)) => {}
            Some(_) if drop_malformed => _ = fields.remove(key),
            Some(value) => {
                return Err(FieldError::invalid(path.field(key), value.clone(), "must be a string"));
            }
        }
    }
    let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
    match meta::decode_object_meta(metadata, drop_malformed) {
        Ok(decoded) => {
            let path = path.field("metadata");
            unknown.append(decoded.unknown.below(&path.to_string()));
            *metadata = decoded.metadata.into();
            Ok(())
        }
        Err(_) if drop_malformed => Ok(()),
        Err(error) => Err(FieldError::invalid(path.field("metadata"), metadata.clone(), error)),
    }
}

/// Validates identity and metadata of embedded resources, and of the value itself if it is a resource.
pub fn validate(value: &Value, schema: &Schema, resource_root: bool, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    validate_value(value, schema, resource_root || schema.embedded_resource, path, &mut out);
    out
}

fn validate_value(value: &Value, schema: &Schema, embedded: bool, path: &Path<'_>, out: &mut FieldErrors) {
    match value {
        Value::Object(fields) => {
            if embedded {
                validate_identity(fields, path, out);
            }
            for (key, value) in fields.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some(child) = schema.properties.get(key) {
                    validate_value(value, child, child.embedded_resource, &path.field(key), out);
                } else if let Some(child) = schema.additional_schema() {
                    validate_value(value, child, child.embedded_resource, &path.key(key), out);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    validate_value(item, child, child.embedded_resource, &path.index(index), out);
                }
            }
        }
        _ => {}
    }
}

fn validate_identity(fields: &Map<String, Value>, path: &Path<'_>, out: &mut FieldErrors) {
    for key in ["apiVersion", "kind"] {
        if !fields.contains_key(key) {
            out.push(FieldError::required(path.field(key), ""));
        }
    }
    for key in ["apiVersion", "kind"] {
        let wrong = match fields.get(key) {
            None => continue,
            Some(Value::String(text)) if text.is_empty() => "must not be empty".into(),
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() < 2 {
                    continue;
                }
                format!("unexpected GroupVersion string: {text}")
            }
            Some(Value::String(text)) => {
                let messages = meta::dns1035_label(&text.to_lowercase());
                if messages.is_empty() {
                    continue;
                }
                format!("may have mixed case, but should otherwise match: {}", messages.join(","))
            }
            Some(_) => "must be a string".into(),
        };
        let value = fields.get(key).cloned().unwrap_or_default();
        out.push(FieldError::invalid(path.field(key), value, wrong));
    }
    let Some(metadata) = fields.get("metadata") else { return };
    let path = path.field("metadata");
    match meta::decode_object_meta(metadata, false) {
        Ok(decoded) => {
            let mut metadata = decoded.metadata;
            // A name is not required here, but must be valid if given.
            metadata.entry("name").or_insert_with(|| "fakename".into());
            let namespaced = metadata.contains_key("namespace");
            out.extend(meta::validate_object_meta(&metadata.into(), namespaced, meta::path_segment, &path));
        }
        Err(error) => out.push(FieldError::invalid(path, metadata.clone(), error)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::from_json(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "object", "x-kubernetes-embedded-resource": true}},
        }}}}))
        .expect("valid")
    }

    #[test]
    fn metadata_of_embedded_resources_is_normalised() {
        let mut object = json!({"spec": {
            "template": {"kind": "K", "metadata": {"name": "a", "odd": 1, "creationTimestamp": null}},
            "list": [{"metadata": {"x": 1}}],
        }});
        let unknown = coerce(&mut object, &schema(), Coerce::default(), &Path::ROOT).expect("coerces");
        assert_eq!(unknown.entries(), ["spec.list[0].metadata.x", "spec.template.metadata.odd"]);
        assert_eq!(object["spec"]["template"], json!({"kind": "K", "metadata": {"name": "a"}}));
    }

    #[test]
    fn malformed_identity_is_an_error_or_dropped() {
        let mut object = json!({"spec": {"template": {"kind": 1, "metadata": 2}}});
        let error = coerce(&mut object, &schema(), Coerce::default(), &Path::ROOT).expect_err("invalid");
        assert_eq!(error.to_string(), "spec.template.kind: Invalid value: 1: must be a string");
        let lenient = Coerce { drop_malformed: true, ..Coerce::default() };
        coerce(&mut object, &schema(), lenient, &Path::ROOT).expect("dropped");
        assert_eq!(object, json!({"spec": {"template": {"metadata": 2}}}));
    }

    #[test]
    fn identity_and_metadata_are_checked() {
        let object = json!({"spec": {"template": {
            "apiVersion": "a/b/c", "kind": "K_", "metadata": {"labels": {"-": "x"}, "name": "a/b"}}, "list": [{}]}});
        let errors: Vec<String> = validate(&object, &schema(), false, &Path::ROOT)
            .iter()
            .map(|e| e.to_string().chars().take(99).collect())
            .collect();
        assert_eq!(
            errors,
            [
                "spec.list[0].apiVersion: Required value",
                "spec.list[0].kind: Required value",
                "spec.template.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.template.kind: Invalid value: \"K_\": may have mixed case, but should otherwise match: a DNS-103",
                "spec.template.metadata.name: Invalid value: \"a/b\": may not contain '/'",
                "spec.template.metadata.labels: Invalid value: \"-\": name part must consist of alphanumeric character",
            ]
        );
    }
}
