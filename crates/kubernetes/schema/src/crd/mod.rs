//! CustomResourceDefinitions: defaulting, and all validation before one is served. Works on the `v1` JSON; the
//! decoder has checked JSON types.

mod cel;
mod defaults;
mod names;
mod openapi;
mod props;
mod render;
mod spec;
mod structural;
mod value;
mod version;
mod view;
mod webhook;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::Schema;
use crate::field::{FieldError, FieldErrors};
use crate::format::Format;
use crate::golang;
use crate::meta;
use crate::path::Path;
use view::Spec;

pub use defaults::prune_defaults;
pub use value::validate as validate_value_schema;

/// Most selectable fields of one version.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// Which checks apply. An update is not rejected for problems that the stored CRD already has.
#[derive(Debug, Clone)]
struct Options<'a> {
    require_recognized_review_version: bool,
    require_immutable_names: bool,
    require_schema: bool,
    require_valid_types: bool,
    require_structural: bool,
    require_pruned_defaults: bool,
    require_atomic_sets: bool,
    require_map_list_keys: bool,
    /// Versions with an unchanged schema: the cost of their rules is not checked.
    unchanged_schemas: BTreeSet<&'a str>,
    suppress_rule_cost: bool,
    allow_invalid_ca_bundle: bool,
    /// Versions (the empty name: all of them) that may keep too many selectable fields.
    allow_many_selectable: BTreeSet<&'a str>,
}

/// Sets the defaults of a CRD.
pub fn default(crd: &mut Value) {
    let Value::Object(fields) = crd else { return };
    let Value::Object(spec) = fields.entry("spec").or_insert_with(|| json!({})) else { return };
    if let Value::Object(names) = spec.entry("names").or_insert_with(|| json!({})) {
        let text = |names: &Map<String, Value>, key: &str| {
            names.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let kind = text(names, "kind");
        if text(names, "singular").is_empty() && !kind.is_empty() {
            names.insert("singular".into(), kind.to_lowercase().into());
        }
        if text(names, "listKind").is_empty() && !kind.is_empty() {
            names.insert("listKind".into(), format!("{kind}List").into());
        }
    }
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if conversion.is_null() {
        *conversion = json!({"strategy": "None"});
    }
    if let Some(Value::Object(service)) = conversion.pointer_mut("/webhook/clientConfig/service") {
        let port = service.entry("port").or_insert(Value::Null);
        if port.is_null() {
            *port = 443.into();
        }
    }
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let storage = versions.into_iter().find(|v| v.get("storage") == Some(&Value::Bool(true)));
    let Some(storage) = storage.and_then(|v| v.get("name")).cloned() else { return };
    if let Value::Object(status) = fields.entry("status").or_insert_with(|| json!({})) {
        let stored = status.entry("storedVersions").or_insert(Value::Null);
        if stored.as_array().is_none_or(Vec::is_empty) {
            *stored = json!([storage]);
        }
    }
}

/// Validates a new or changed CRD. It must be defaulted and have `status.storedVersions`.
pub fn validate(new: &Value, old: Option<&Value>) -> FieldErrors {
    let spec = Spec::of(new);
    let metadata = new.get("metadata").unwrap_or(&Value::Null);
    let metadata_path = Path::at("metadata");
    let (options, mut out) = match old {
        None => {
            let own_name = |name: &str, prefix| names::own_name(name, prefix, &spec);
            (Options::for_create(), meta::validate_object_meta(metadata, false, own_name, &metadata_path))
        }
        Some(old) => {
            let old_metadata = old.get("metadata").unwrap_or(&Value::Null);
            let out = meta::validate_object_meta_update(metadata, old_metadata, &metadata_path);
            (Options::for_update(&spec, old), out)
        }
    };
    let spec_path = Path::at("spec");
    out.extend(spec::validate(&spec, &options, &spec_path));
    if let Some(old) = old {
        out.extend(spec::validate_update(&spec, &Spec::of(old), &options, &spec_path));
    }
    out.extend(names::validate_status(new));
    out.extend(version::stored(new, &spec));
    out.extend(names::approval(new, old));
    if spec.preserves_unknown_fields() && !old.is_some_and(|old| Spec::of(old).preserves_unknown_fields()) {
        out.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            true,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    out
}

/// Validates a change of a CRD's status.
pub fn validate_status(new: &Value, old: &Value) -> FieldErrors {
    let metadata = |crd: &Value| crd.get("metadata").cloned().unwrap_or_default();
    let mut out = meta::validate_object_meta_update(&metadata(new), &metadata(old), &Path::at("metadata"));
    out.extend(names::validate_status(new));
    out
}

/// Warnings for an accepted CRD, without those that the old one already had.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(|old| unrecognized_formats(&Spec::of(old))).unwrap_or_default();
    unrecognized_formats(&Spec::of(new))
        .into_iter()
        .filter(|format| !before.contains(format))
        .map(|format| format!("unrecognized format {}", golang::quote(format)))
        .collect()
}

/// Formats that are ignored because the server does not support them for their type.
fn unrecognized_formats<'a>(spec: &Spec<'a>) -> Vec<&'a str> {
    let mut out = Vec::new();
    spec.any_schema(|schema| {
        let format = schema.text("format");
        let recognized = match schema.kind() {
            _ if format.is_empty() => true,
            "" | "string" => Format::find(format).is_some(),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        if !recognized {
            out.push(format);
        }
        false
    });
    out
}

/// Whether a condition of a CRD is true.
pub fn condition_is_true(crd: &Value, kind: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions
        .into_iter()
        .any(|c| c.get("type") == Some(&kind.into()) && c.get("status") == Some(&"True".into()))
}

/// Why the schemas of a stored CRD are not structural, per version: the message of the `NonStructuralSchema`
/// condition.
pub fn structural_errors(crd: &Value) -> FieldErrors {
    let spec = Spec::of(crd);
    let versions = Path::at("spec.versions");
    let mut out = FieldErrors::new();
    let mut check = |schema: Option<props::Props<'_>>, path: &Path<'_>| {
        let Some(schema) = schema.and_then(|validation| validation.schema("openAPIV3Schema")) else { return };
        match structural::unsupported(schema) {
            Some(error) => out.push(FieldError::invalid(path, "", error)),
            None => out.extend(structural::validate(schema, path)),
        }
    };
    check(spec.validation, &Path::at("spec.validation.openAPIV3Schema"));
    for (index, version) in spec.versions.iter().enumerate() {
        check(version.schema, &versions.index(index).field("schema").field("openAPIV3Schema"));
    }
    out
}

impl<'a> Options<'a> {
    fn for_create() -> Self {
        Self {
            require_recognized_review_version: true,
            require_immutable_names: false,
            require_schema: true,
            require_valid_types: true,
            require_structural: true,
            require_pruned_defaults: true,
            require_atomic_sets: true,
            require_map_list_keys: true,
            unchanged_schemas: BTreeSet::new(),
            suppress_rule_cost: false,
            allow_invalid_ca_bundle: true,
            allow_many_selectable: BTreeSet::new(),
        }
    }

    fn for_update(spec: &Spec<'a>, old_crd: &'a Value) -> Self {
        let old = Spec::of(old_crd);
        let established = condition_is_true(old_crd, "Established");
        let path = Path::at("");
        Self {
            require_recognized_review_version: webhook::has_recognized_version_or_none(&old),
            require_immutable_names: established,
            require_schema: old.versions.iter().all(|version| old.schema_of(version).is_some()),
            require_valid_types: !old
                .any_schema(|s| !s.kind().is_empty() && !props::TYPES.contains(&s.kind())),
            require_structural: old.schemas().all(is_structural),
            require_pruned_defaults: !old.schemas().any(has_unpruned_defaults),
            require_atomic_sets: !old.any_schema(|s| {
                s.list_type() == Some("set")
                    && s.items().is_some_and(|items| openapi::non_atomic_key(items).is_some())
            }),
            require_map_list_keys: !old.any_schema(|s| !openapi::map_list_keys(s, &path).is_empty()),
            unchanged_schemas: unchanged_schemas(spec, &old),
            suppress_rule_cost: false,
            allow_invalid_ca_bundle: !established || webhook::has_invalid_ca_bundle(&old),
            allow_many_selectable: version::many_selectable(spec, &old),
        }
    }
}

fn is_structural(schema: props::Props<'_>) -> bool {
    structural::unsupported(schema).is_none() && structural::validate(schema, &Path::ROOT).is_empty()
}

fn has_unpruned_defaults(schema: props::Props<'_>) -> bool {
    if !schema.any(&mut |s| s.get("default").is_some()) || !is_structural(schema) {
        return false;
    }
    let Ok(parsed) = Schema::from_json(&Value::Object(schema.0.clone())) else { return false };
    let mut pruned = parsed.clone();
    prune_defaults(&mut pruned);
    pruned != parsed
}

fn unchanged_schemas<'a>(new: &Spec<'a>, old: &Spec<'_>) -> BTreeSet<&'a str> {
    let schema = |spec: &Spec<'_>, name: &str| {
        let version = spec.versions.iter().find(|v| v.name == name)?;
        Some(spec.schema_of(version).map(|s| s.0.clone()))
    };
    let unchanged =
        |name: &str| matches!((schema(new, name), schema(old, name)), (Some(a), Some(b)) if a == b);
    new.versions.iter().map(|v| v.name).filter(|name| unchanged(name)).collect()
}

#[cfg(test)]
mod tests;
