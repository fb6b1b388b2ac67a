//! Validates the spec of a CRD.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;

use super::cel::{Scope, TotalCost};
use super::openapi::{self, Context};
use super::props::Props;
use super::view::{Spec, Version};
use super::{Options, defaults, names, render, structural, version, webhook};
use crate::Schema;
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::meta;
use crate::path::Path;
use crate::schema::MAX_DEPTH;

const ALLOWED_AT_ROOT: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

pub fn validate(spec: &Spec<'_>, options: &Options<'_>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let mut options = options.clone();
    group_and_scope(spec, path, &mut out);
    let preserve = spec.preserves_unknown_fields();
    if !preserve {
        options.require_structural = true;
    }
    required_schemas(spec, &options, path, &mut out);
    if spec.any_schema(|s| s.get("default").is_some()) {
        options.require_structural = true;
        if preserve {
            out.push(FieldError::invalid(
                path.field("preserveUnknownFields"),
                true,
                "must be false in order to use defaults in the schema",
            ));
        }
    }
    if spec.any_schema(has_extensions) {
        options.require_structural = true;
    }

    let versions = path.field("versions");
    for (index, version) in spec.versions.iter().enumerate() {
        let path = versions.index(index);
        let wrong = meta::dns1035_label(version.name);
        if !wrong.is_empty() {
            out.push(FieldError::invalid(path.field("name"), version.name, wrong.join(",")));
        }
        validate_version(spec, version, &options, &path, &mut out);
    }
    let whole = |detail: &str| {
        FieldError::new(ErrorKind::Invalid, versions, render::versions(&spec.versions), detail)
    };
    let repeated =
        |(index, v): (usize, &Version<'_>)| spec.versions[..index].iter().any(|o| o.name == v.name);
    if spec.versions.iter().enumerate().any(repeated) {
        out.push(whole("must contain unique version names"));
    }
    if spec.versions.iter().filter(|v| v.props.flag("storage")).count() != 1 {
        out.push(whole("must have exactly one version marked as storage version"));
    }
    if !spec.version.is_empty() {
        let wrong = meta::dns1035_label(spec.version);
        if !wrong.is_empty() {
            out.push(FieldError::invalid(path.field("version"), spec.version, wrong.join(",")));
        }
    }

    let names_path = path.field("names");
    for key in ["plural", "singular", "kind", "listKind"] {
        if spec.names.text(key).is_empty() {
            out.push(FieldError::required(names_path.field(key), ""));
        }
    }
    out.extend(names::validate(spec.names, &names_path));
    let status = has_status(spec.subresources) || spec.versions.iter().any(|v| has_status(v.subresources));
    let own = options.for_version(spec.version);
    out.extend(validation(spec.validation, status, &own, &path.field("validation")));
    out.extend(version::subresources(spec.subresources, &path.field("subresources")));
    out.extend(version::columns(spec.columns.unwrap_or_default(), path));
    if let Some(fields) = spec.selectable_fields {
        let path_here = path.field("selectableFields");
        match spec.validation {
            None => out.push(FieldError::invalid(
                path_here,
                "",
                "may only be set when validations.schema is included",
            )),
            Some(validation) => {
                let schema = selectable_schema(validation, path, &mut out);
                out.extend(version::selectable_fields(fields, schema.as_ref(), "", &options, &path_here));
            }
        }
    }

    let conversion = spec.props.schema("conversion");
    let conversion_path = path.field("conversion");
    if let Some(strategy) = conversion.map(|c| c.text("strategy")).filter(|s| *s != "None" && preserve) {
        out.push(FieldError::invalid(
            conversion_path.field("strategy"),
            strategy,
            "must be None if spec.preserveUnknownFields is true",
        ));
    }
    out.extend(webhook::validate(conversion, &options, &conversion_path));
    out
}

/// Validates that immutable fields did not change.
pub fn validate_update(
    new: &Spec<'_>,
    old: &Spec<'_>,
    options: &Options<'_>,
    path: &Path<'_>,
) -> FieldErrors {
    let mut out = FieldErrors::new();
    let names = path.field("names");
    let mut fixed = |path: Path<'_>, new: &str, old: &str| {
        if new != old {
            out.push(FieldError::invalid(path, new, meta::IMMUTABLE));
        }
    };
    if options.require_immutable_names {
        fixed(path.field("scope"), new.props.text("scope"), old.props.text("scope"));
        fixed(names.field("kind"), new.names.text("kind"), old.names.text("kind"));
    }
    fixed(path.field("group"), new.props.text("group"), old.props.text("group"));
    fixed(names.field("plural"), new.names.text("plural"), old.names.text("plural"));
    out
}

impl Options<'_> {
    fn for_version(&self, version: &str) -> Self {
        let mut out = self.clone();
        out.suppress_rule_cost |= self.unchanged_schemas.contains(version);
        out
    }
}

fn group_and_scope(spec: &Spec<'_>, path: &Path<'_>, out: &mut FieldErrors) {
    let group = spec.props.text("group");
    let wrong = meta::dns1123_subdomain(group);
    let group_path = path.field("group");
    if group.is_empty() {
        out.push(FieldError::required(group_path, ""));
    } else if !wrong.is_empty() {
        out.push(FieldError::invalid(group_path, group, wrong.join(",")));
    } else if !group.contains('.') {
        out.push(FieldError::invalid(group_path, group, "should be a domain with at least one dot"));
    }
    match spec.props.text("scope") {
        "" => out.push(FieldError::required(path.field("scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => {
            out.push(FieldError::not_supported(path.field("scope"), other, &["Cluster", "Namespaced"]));
        }
    }
}

fn required_schemas(spec: &Spec<'_>, options: &Options<'_>, path: &Path<'_>, out: &mut FieldErrors) {
    if spec.validation.is_some_and(|v| v.schema("openAPIV3Schema").is_some()) {
        return;
    }
    let versions = path.field("versions");
    for (index, version) in spec.versions.iter().enumerate() {
        let path = versions.index(index);
        let path = path.field("schema");
        let path = path.field("openAPIV3Schema");
        let missing = version.schema.and_then(|s| s.schema("openAPIV3Schema")).is_none();
        if options.require_schema {
            if missing {
                out.push(FieldError::required(path, ""));
            }
        } else if !spec.preserves_unknown_fields() && version.props.flag("served") && missing {
            out.push(FieldError::required(path, "because otherwise all fields are pruned"));
        }
    }
}

fn has_extensions(schema: Props<'_>) -> bool {
    schema.flag("x-kubernetes-embedded-resource")
        || schema.get("x-kubernetes-preserve-unknown-fields").is_some()
        || schema.flag("x-kubernetes-int-or-string")
        || !schema.texts("x-kubernetes-list-map-keys").is_empty()
        || schema.list_type().is_some()
        || schema.rules().next().is_some()
}

fn has_status(subresources: Option<Props<'_>>) -> bool {
    subresources.is_some_and(|s| s.get("status").is_some())
}

fn validate_version(
    spec: &Spec<'_>,
    version: &Version<'_>,
    options: &Options<'_>,
    path: &Path<'_>,
    out: &mut FieldErrors,
) {
    out.extend(version::deprecation(version.props, path));
    let per_version = spec.versions.iter().any(|v| v.subresources.is_some());
    let subresources = if per_version { version.subresources } else { spec.subresources };
    let own = options.for_version(version.name);
    out.extend(validation(version.schema, has_status(subresources), &own, &path.field("schema")));
    out.extend(version::subresources(version.subresources, &path.field("subresources")));
    out.extend(version::columns(version.columns.unwrap_or_default(), path));
    let Some(fields) = version.selectable_fields else { return };
    let path_here = path.field("selectableFields");
    match version.schema.filter(|s| s.schema("openAPIV3Schema").is_some()) {
        None => out.push(FieldError::invalid(
            path_here,
            "",
            "may only be set when `version.schema.openAPIV3Schema` is not included",
        )),
        Some(validation) => {
            let schema = selectable_schema(validation, path, out);
            out.extend(version::selectable_fields(
                fields,
                schema.as_ref(),
                version.name,
                options,
                &path_here,
            ));
        }
    }
}

fn selectable_schema(validation: Props<'_>, path: &Path<'_>, out: &mut FieldErrors) -> Option<Schema> {
    let props = validation.schema("openAPIV3Schema")?;
    if let Some(error) = structural::unsupported(props) {
        out.push(FieldError::invalid(path.field("schema.openAPIV3Schema"), "", error));
    }
    Schema::from_json(&Value::Object(props.0.clone())).ok()
}

/// Validates `{openAPIV3Schema}`.
fn validation(
    validation: Option<Props<'_>>,
    status: bool,
    options: &Options<'_>,
    path: &Path<'_>,
) -> FieldErrors {
    let mut out = FieldErrors::new();
    let Some(props) = validation.and_then(|v| v.schema("openAPIV3Schema")) else { return out };
    let schema_path = path.field("openAPIV3Schema");
    // Each level of nesting is two levels of JSON (`properties`, then the field's name).
    if props.deeper_than(2 * MAX_DEPTH) {
        out.push(FieldError::forbidden(schema_path, format!("schemas are nested at most {MAX_DEPTH} deep")));
        return out;
    }
    if status {
        root_of_status(props, path, &mut out);
    }
    if props.flag("nullable") {
        out.push(FieldError::forbidden(
            path.field("openAPIV3Schema.nullable"),
            "nullable cannot be true at the root",
        ));
    }
    let mut unreadable = None;
    let total = RefCell::new(TotalCost::default());
    let mut scope = None;
    if options.require_structural {
        unreadable = structural::unsupported(props);
        if unreadable.is_none() {
            let mut errors = structural::validate(props, &schema_path);
            if errors.is_empty() {
                // A schema with unknown types is rejected below.
                if let Ok(schema) = Schema::from_json(&Value::Object(props.0.clone())) {
                    errors =
                        defaults::validate(&Arc::new(schema), options.require_pruned_defaults, &schema_path);
                }
            }
            if errors.is_empty() {
                scope = Some(Scope::root(props, &total));
            }
            out.extend(errors);
        }
    }
    let context = Context::default();
    out.extend(openapi::validate(props, &schema_path, &context, true, options, scope.as_ref()).all());
    if let (true, Some(error)) = (out.is_empty(), unreadable) {
        out.push(FieldError::invalid(schema_path, "", error));
    }
    out.extend(total.borrow().errors(&schema_path));
    out
}

fn root_of_status(props: Props<'_>, path: &Path<'_>, out: &mut FieldErrors) {
    for field in render::set_fields(props) {
        if field == "Type" {
            if props.kind() != "object" {
                out.push(FieldError::invalid(
                    path.field("openAPIV3Schema.type"),
                    props.kind(),
                    r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#,
                ));
                return;
            }
        } else if !ALLOWED_AT_ROOT.contains(&field) {
            out.push(FieldError::new(
                ErrorKind::Invalid,
                path.field("openAPIV3Schema"),
                BadValue::Text(render::schema(props)),
                format!(
                    "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                    ALLOWED_AT_ROOT.join(" ")
                ),
            ));
            return;
        }
    }
}
