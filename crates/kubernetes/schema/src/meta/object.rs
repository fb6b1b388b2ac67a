//! Validates `metadata`, on create and on update.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::IMMUTABLE;
use super::names::{dns1123_label, label_value, qualified_name};
use super::time::parse_rfc3339;
use crate::bounded::{MAX_TEXT, Texts, cut_text};
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::golang::{self, quote};
use crate::path::Path;

/// Largest total size of annotations in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;
const MAX_FIELD_MANAGER: usize = 128;
const MAX_SUBRESOURCE: usize = 256;
/// Most owners in an error.
const MAX_SHOWN_OWNERS: usize = 100;

fn text<'a>(metadata: &'a Value, key: &str) -> &'a str {
    metadata.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(metadata: &'a Value, key: &str) -> Vec<&'a str> {
    let entries = metadata.get(key).and_then(Value::as_array);
    entries.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Validates the `metadata` of a new object.
pub fn validate_object_meta(
    metadata: &Value,
    namespaced: bool,
    names: impl Fn(&str, bool) -> Vec<String>,
    path: &Path<'_>,
) -> FieldErrors {
    let mut out = FieldErrors::new();
    let generate_name = text(metadata, "generateName");
    if !generate_name.is_empty() {
        for message in names(generate_name, true) {
            out.push(FieldError::invalid(path.field("generateName"), generate_name, message));
        }
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        out.push(FieldError::required(path.field("name"), "name or generateName is required"));
    } else {
        for message in names(name, false) {
            out.push(FieldError::invalid(path.field("name"), name, message));
        }
    }

    let namespace = text(metadata, "namespace");
    let field = path.field("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => out.push(FieldError::required(field, "")),
        (true, false) => {
            for message in dns1123_label(namespace) {
                out.push(FieldError::invalid(field, namespace, message));
            }
        }
        (false, false) => out.push(FieldError::forbidden(field, "not allowed on this type")),
        (false, true) => {}
    }
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation < 0 {
        out.push(FieldError::invalid(
            path.field("generation"),
            generation,
            "must be greater than or equal to 0",
        ));
    }
    out.extend(validate_labels(metadata.get("labels"), &path.field("labels")));
    out.extend(validate_annotations(metadata.get("annotations"), &path.field("annotations")));
    out.extend(validate_owner_references(metadata.get("ownerReferences"), &path.field("ownerReferences")));
    out.extend(validate_finalizers(&texts(metadata, "finalizers"), &path.field("finalizers")));
    out.extend(validate_managed_fields(metadata.get("managedFields"), &path.field("managedFields")));
    out
}

/// Validates the `metadata` of a changed object against the old one.
pub fn validate_object_meta_update(new: &Value, old: &Value, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    if old.get("deletionTimestamp").is_some_and(|t| !t.is_null()) {
        let before: BTreeSet<&str> = texts(old, "finalizers").into_iter().collect();
        let after: BTreeSet<&str> = texts(new, "finalizers").into_iter().collect();
        let added: Vec<String> = after.difference(&before).map(|f| quote(f)).collect();
        if !added.is_empty() {
            out.push(FieldError::forbidden(
                path.field("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        out.push(FieldError::invalid(path.field("resourceVersion"), "", "must be specified for an update"));
    }
    let generation = |m: &Value| m.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        out.push(FieldError::invalid(path.field("generation"), generation(new), "must not be decremented"));
    }
    for key in ["name", "namespace", "uid"] {
        if text(new, key) != text(old, key) {
            out.push(FieldError::invalid(path.field(key), text(new, key), IMMUTABLE));
        }
    }
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (new, old) = (new.get(key).unwrap_or(&Value::Null), old.get(key).unwrap_or(&Value::Null));
        if !same_instant(new, old) {
            out.push(FieldError::invalid(path.field(key), new.clone(), IMMUTABLE));
        }
    }
    out.extend(validate_labels(new.get("labels"), &path.field("labels")));
    out.extend(validate_annotations(new.get("annotations"), &path.field("annotations")));
    out.extend(validate_owner_references(new.get("ownerReferences"), &path.field("ownerReferences")));
    out.extend(validate_managed_fields(new.get("managedFields"), &path.field("managedFields")));
    out
}

/// Common validation of every update: metadata on its own, then against the old one.
pub fn validate_common_update(new: &Value, old: &Value, namespaced: bool, path: &Path<'_>) -> FieldErrors {
    let mut out = validate_object_meta(new, namespaced, super::names::path_segment, path);
    out.extend(validate_object_meta_update(new, old, path));
    out
}

fn same_instant(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) if a != b => match (parse_rfc3339(a), parse_rfc3339(b)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        },
        _ => a == b,
    }
}

/// Validates keys and values of labels.
pub fn validate_labels(labels: Option<&Value>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        for message in qualified_name(key) {
            out.push(FieldError::invalid(path, key.as_str(), message));
        }
        let value = value.as_str().unwrap_or_default();
        for message in label_value(value) {
            out.push(FieldError::invalid(path, value, message));
        }
    }
    out
}

/// Validates keys and the total size of annotations.
pub fn validate_annotations(annotations: Option<&Value>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        for message in qualified_name(&key.to_lowercase()) {
            out.push(FieldError::invalid(path, key.as_str(), message));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        out.push(FieldError::too_long(path, MAX_ANNOTATIONS as i64));
    }
    out
}

/// Validates that owner references are complete and at most one is the controller.
pub fn validate_owner_references(owners: Option<&Value>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let owners = owners.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut controller: Option<String> = None;
    // Each additional controller is reported with all owners.
    let all = LazyCell::new(|| {
        let all: Vec<String> = owners.iter().take(MAX_SHOWN_OWNERS).map(owner_json).collect();
        let more = if owners.len() > MAX_SHOWN_OWNERS { ",..." } else { "" };
        cut_text(format!("[{}{more}]", all.join(",")), MAX_TEXT)
    });
    for owner in owners {
        let api_version = text(owner, "apiVersion");
        let (kind, name) = (text(owner, "kind"), text(owner, "name"));
        let (group, version) = match api_version.split_once('/') {
            // With more than one slash neither group nor version is valid.
            Some((_, version)) if version.contains('/') => ("", ""),
            Some((group, version)) => (group, version),
            None => ("", api_version),
        };
        if version.is_empty() {
            out.push(FieldError::invalid(path.field("apiVersion"), api_version, "version must not be empty"));
        }
        for (key, value) in [("kind", kind), ("name", name), ("uid", text(owner, "uid"))] {
            if value.is_empty() {
                out.push(FieldError::invalid(path.field(key), value, "must not be empty"));
            }
        }
        if (group, version, kind) == ("", "v1", "Event") {
            out.push(FieldError::new(
                ErrorKind::Invalid,
                path,
                BadValue::Text(owner_json(owner)),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let current = format!("{kind}/{name}");
            if let Some(first) = &controller {
                out.push(FieldError::new(
                    ErrorKind::Invalid,
                    path,
                    BadValue::Text(all.clone()),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {current}"
                    ),
                ));
            } else {
                controller = Some(current);
            }
        }
    }
    out
}

/// An owner reference with its fields in Go's order.
fn owner_json(owner: &Value) -> String {
    let mut out = String::from("{");
    let empty = Map::new();
    let fields = owner.as_object().unwrap_or(&empty);
    for (key, always) in [
        ("apiVersion", true),
        ("kind", true),
        ("name", true),
        ("uid", true),
        ("controller", false),
        ("blockOwnerDeletion", false),
    ] {
        let value = match fields.get(key) {
            Some(value) if !value.is_null() => golang::json(value),
            _ if always => "\"\"".into(),
            _ => continue,
        };
        let comma = if out.len() > 1 { "," } else { "" };
        _ = write!(out, "{comma}\"{key}\":{value}");
    }
    out.push('}');
    out
}

/// Validates names of finalizers, and that the two deletion policies are not both set.
pub fn validate_finalizers(finalizers: &[&str], path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    for finalizer in finalizers {
        for message in qualified_name(finalizer) {
            out.push(FieldError::invalid(path, *finalizer, message));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        out.push(FieldError::invalid(
            path,
            finalizers.to_vec(),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    out
}

/// Validates `metadata.managedFields`.
pub fn validate_managed_fields(entries: Option<&Value>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    for (index, entry) in entries.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = path.index(index);
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            out.push(FieldError::invalid(path.field("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            out.push(FieldError::invalid(path.field("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        out.extend(validate_field_manager(text(entry, "manager"), &path.field("manager")));
        if text(entry, "subresource").len() > MAX_SUBRESOURCE {
            out.push(FieldError::too_long(path.field("subresource"), MAX_SUBRESOURCE as i64));
        }
    }
    out
}

/// Validates the name of a field manager.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    if manager.len() > MAX_FIELD_MANAGER {
        out.push(FieldError::too_long(path, MAX_FIELD_MANAGER as i64));
    }
    // A name that is too long is only checked in part: every invalid character is an error with the whole name.
    let manager = manager.get(..manager.floor_char_boundary(2 * MAX_FIELD_MANAGER)).unwrap_or_default();
    for (position, c) in manager.char_indices() {
        if !golang::is_print(c) {
            out.push(FieldError::invalid(
                path,
                manager,
                format!("invalid character U+{:04X} (at position {position})", c as u32),
            ));
        }
    }
    out
}

/// Warnings about new finalizers of a custom resource.
pub fn finalizer_warnings(new: &Value, old: Option<&Value>) -> Texts {
    let before: BTreeSet<&str> =
        old.map(|old| texts(old, "finalizers")).unwrap_or_default().into_iter().collect();
    let after: BTreeSet<&str> = texts(new, "finalizers").into_iter().collect();
    let mut out = Texts::default();
    for finalizer in after.difference(&before) {
        let finalizer = &finalizer.get(..finalizer.floor_char_boundary(MAX_TEXT)).unwrap_or_default();
        let warning = |message: &str| format!("metadata.finalizers: {}: {message}", quote(finalizer));
        out.extend(qualified_name(finalizer).iter().map(|message| warning(message)));
        if !finalizer.contains('/') && !matches!(*finalizer, "orphan" | "foregroundDeletion" | "kubernetes") {
            out.push(warning(if finalizer.contains('.') {
                "prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with \
                 other finalizer writers"
            } else {
                "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::meta::name_is_dns_subdomain;

    fn create(metadata: Value, namespaced: bool) -> Vec<String> {
        validate_object_meta(&metadata, namespaced, name_is_dns_subdomain, &Path::at("metadata"))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn update(new: Value, old: Value) -> Vec<String> {
        validate_object_meta_update(&new, &old, &Path::at("metadata"))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn names_and_namespaces_are_required_where_they_belong() {
        assert_eq!(
            create(json!({}), true),
            [
                "metadata.name: Required value: name or generateName is required",
                "metadata.namespace: Required value"
            ]
        );
        assert_eq!(
            create(json!({"name": "a", "namespace": "b"}), false),
            ["metadata.namespace: Forbidden: not allowed on this type"]
        );
        assert!(create(json!({"name": "a", "generateName": "b-", "namespace": "c"}), true).is_empty());
    }

    #[test]
    fn owners_are_checked() {
        assert_eq!(
            create(
                json!({"name": "a", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "A", "name": "x", "uid": "1", "controller": true},
                    {"apiVersion": "v1", "kind": "B", "name": "y", "uid": "", "controller": true},
                ]}),
                false
            ),
            [
                r#"metadata.ownerReferences.uid: Invalid value: "": must not be empty"#,
                r#"metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"x","uid":"1","controller":true},{"apiVersion":"v1","kind":"B","name":"y","uid":"","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/x and B/y"#,
            ]
        );
    }

    #[test]
    fn identity_is_immutable() {
        let old = json!({"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "1",
            "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 2});
        assert!(update(old.clone(), old.clone()).is_empty());
        assert_eq!(
            update(json!({"name": "b", "namespace": "n", "uid": "2", "generation": 1}), old),
            [
                r#"metadata.resourceVersion: Invalid value: "": must be specified for an update"#,
                "metadata.generation: Invalid value: 1: must not be decremented",
                r#"metadata.name: Invalid value: "b": field is immutable"#,
                r#"metadata.uid: Invalid value: "2": field is immutable"#,
                "metadata.creationTimestamp: Invalid value: null: field is immutable",
            ]
        );
    }

    #[test]
    fn a_deleted_object_gains_no_finalizers() {
        let old = json!({"name": "a", "resourceVersion": "1", "deletionTimestamp": "2020-01-01T00:00:00Z",
            "finalizers": ["x/a"]});
        let mut new = old.clone();
        new["finalizers"] = json!(["x/b", "x/a", "x/c"]);
        assert_eq!(
            update(new, old),
            [concat!(
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, ",
                r#"found new finalizers []string{"x/b", "x/c"}"#
            )]
        );
    }

    #[test]
    fn annotations_are_bounded() {
        let big = "x".repeat(MAX_ANNOTATIONS);
        assert_eq!(
            create(json!({"name": "a", "annotations": {"k": big}}), false),
            ["metadata.annotations: Too long: may not be more than 262144 bytes"]
        );
        assert!(create(json!({"name": "a", "annotations": {"Upper.Case/K": "v"}}), false).is_empty());
    }

    #[test]
    fn managed_fields_are_checked() {
        assert_eq!(
            create(json!({"name": "a", "managedFields": [{"operation": "X", "manager": "a\u{7}"}]}), false),
            [
                "metadata.managedFields[0].operation: Invalid value: \"X\": must be `Apply` or `Update`",
                r#"metadata.managedFields[0].manager: Invalid value: "a\a": invalid character U+0007 (at position 1)"#,
            ]
        );
    }

    #[test]
    fn unqualified_finalizers_are_warned_about() {
        assert_eq!(
            finalizer_warnings(&json!({"finalizers": ["mine", "orphan", "a.b/c"]}), None).entries(),
            [
                "metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name to avoid accidental conflicts \
              with other finalizer writers"
            ]
        );
    }
}
