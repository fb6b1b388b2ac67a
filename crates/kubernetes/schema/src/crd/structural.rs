//! Validates that a schema is structural: every field has a type outside of logical junctors, and those only restrict
//! values.

use serde_json::Value;

use super::props::Props;
use crate::field::{FieldError, FieldErrors};
use crate::path::Path;
use crate::schema::Pattern;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The first reason why a schema cannot be converted to a structural one.
pub fn unsupported(props: Props<'_>) -> Option<String> {
    let not_supported = |name: &str| Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    if !props.text("id").is_empty() {
        return not_supported("id");
    }
    if !props.text("$schema").is_empty() {
        return not_supported("schema");
    }
    if !props.text("$ref").is_empty() {
        return not_supported("$ref");
    }
    let filled = |key: &str| props.get(key).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    for key in ["patternProperties", "dependencies"] {
        if filled(key) {
            return not_supported(key);
        }
    }
    if props.get("additionalItems").is_some() {
        return not_supported("additionalItems");
    }
    if filled("definitions") {
        return not_supported("definitions");
    }
    if let Some(found) = props.schema("not").and_then(unsupported) {
        return Some(found);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(found) = props.list(key).find_map(unsupported) {
            return Some(found);
        }
    }
    if props.get("x-kubernetes-preserve-unknown-fields") == Some(&false.into()) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".into(),
        );
    }
    if props.item_list().next().is_some() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".into());
    }
    props
        .items()
        .and_then(unsupported)
        .or_else(|| props.properties().find_map(|(_, property)| unsupported(property)))
        .or_else(|| props.schema("additionalProperties").and_then(unsupported))
}

/// Violations of the structural rules, sorted by message.
pub fn validate(props: Props<'_>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    invariants(props, Level::Root, path, &mut out);
    completeness(props, Some(props), path, path, &mut out);
    let mut keyed: Vec<(String, FieldError)> = out.into_iter().map(|e| (e.to_string(), e)).collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.into_iter().map(|(_, error)| error).collect()
}

fn invariants(props: Props<'_>, level: Level, path: &Path<'_>, out: &mut FieldErrors) {
    let kind = props.kind();
    if kind == "array" && props.items().is_none() {
        out.push(FieldError::required(path.field("items"), "must be specified"));
    }
    if let Some(items) = props.items() {
        invariants(items, Level::Item, &path.field("items"), out);
    }
    let properties = path.field("properties");
    for (name, property) in props.properties() {
        invariants(property, Level::Field, &properties.key(name), out);
    }
    if props.has_additional() {
        let additional = path.field("additionalProperties");
        if level == Level::Root {
            out.push(FieldError::forbidden(additional, "must not be used at the root"));
        }
        if let Some(schema) = props.schema("additionalProperties") {
            invariants(schema, Level::Field, &additional, out);
        }
    }
    let embedded = props.flag("x-kubernetes-embedded-resource");
    let preserve = props.flag("x-kubernetes-preserve-unknown-fields");
    let int_or_string = props.flag("x-kubernetes-int-or-string");
    for (key, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            out.push(FieldError::invalid(
                path.field(key),
                true,
                "must be false if x-kubernetes-int-or-string is true",
            ));
        }
    }
    let first_all_of = props.list("allOf").next();
    value_validation(
        props,
        is_int_or_string_pattern(props),
        first_all_of.is_some_and(is_int_or_string_pattern),
        path,
        out,
    );

    let check_metadata = level == Level::Root || embedded;
    let type_path = path.field("type");
    if embedded && kind != "object" {
        const DETAIL: &str = "must be object if x-kubernetes-embedded-resource is true";
        out.push(if kind.is_empty() {
            FieldError::required(type_path, DETAIL)
        } else {
            FieldError::invalid(type_path, kind, DETAIL)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        out.push(FieldError::required(
            type_path,
            match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if embedded && props.has_additional() {
        out.push(FieldError::forbidden(
            path.field("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        out.push(FieldError::invalid(type_path, kind, "must be object at the root"));
    }
    for key in ["kind", "apiVersion"] {
        if let Some(property) = props.property(key).filter(|p| check_metadata && p.kind() != "string") {
            out.push(FieldError::invalid(
                properties.key(key).field("type"),
                property.kind(),
                "must be string",
            ));
        }
    }
    if let Some(metadata) = props.property("metadata") {
        let path = properties.key("metadata");
        if check_metadata && metadata.kind() != "object" {
            out.push(FieldError::invalid(path.field("type"), metadata.kind(), "must be object"));
        }
        if level == Level::Root && !names_only(metadata) {
            out.push(FieldError::forbidden(
                path,
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            ));
        }
    }
    if embedded && !preserve && !props.has_properties() {
        out.push(FieldError::required(
            properties,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

/// Whether a schema of root metadata restricts at most `name` and `generateName`.
fn names_only(metadata: Props<'_>) -> bool {
    let only_names = metadata.properties().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    only_names
        && super::render::set_fields(metadata).all(|field| matches!(field, "Type" | "Default" | "Properties"))
}

/// `anyOf: [{type: integer}, {type: string}]` and nothing else.
fn is_int_or_string_pattern(props: Props<'_>) -> bool {
    let branches: Vec<Props<'_>> = props.list("anyOf").collect();
    let only = |props: &Props<'_>, kind: &str| {
        props.kind() == kind && super::render::set_fields(*props).eq(["Type"])
    };
    matches!(branches.as_slice(), [integer, string] if only(integer, "integer") && only(string, "string"))
}

fn value_validation(
    props: Props<'_>,
    skip_any_of: bool,
    skip_first_all_of_any_of: bool,
    path: &Path<'_>,
    out: &mut FieldErrors,
) {
    if !skip_any_of {
        let any_of = path.field("anyOf");
        for (index, schema) in props.list("anyOf").enumerate() {
            nested(schema, false, &any_of.index(index), out);
        }
    }
    let all_of = path.field("allOf");
    for (index, schema) in props.list("allOf").enumerate() {
        nested(schema, skip_first_all_of_any_of && index == 0, &all_of.index(index), out);
    }
    let one_of = path.field("oneOf");
    for (index, schema) in props.list("oneOf").enumerate() {
        nested(schema, false, &one_of.index(index), out);
    }
    if let Some(not) = props.schema("not") {
        nested(not, false, &path.field("not"), out);
    }
    let pattern = props.text("pattern");
    if let Err(error) = Pattern::new(pattern).regex() {
        out.push(FieldError::invalid(
            path.field("pattern"),
            pattern,
            format!("must be a valid regular expression, but isn't: {error}"),
        ));
    }
}

fn nested(props: Props<'_>, skip_any_of: bool, path: &Path<'_>, out: &mut FieldErrors) {
    value_validation(props, skip_any_of, false, path, out);
    if let Some(items) = props.items() {
        nested(items, false, &path.field("items"), out);
    }
    let properties = path.field("properties");
    for (name, property) in props.properties() {
        nested(property, false, &properties.key(name), out);
    }
    let additional = props.get("additionalProperties").is_some_and(|value| *value != false);
    for (key, set, detail) in [
        ("type", !props.kind().is_empty(), "must be empty to be structural"),
        ("additionalProperties", additional, "must be undefined to be structural"),
        ("default", props.get("default").is_some(), "must be undefined to be structural"),
        ("title", !props.text("title").is_empty(), "must be empty to be structural"),
        ("description", !props.text("description").is_empty(), "must be empty to be structural"),
        ("nullable", props.flag("nullable"), "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            props.flag("x-kubernetes-preserve-unknown-fields"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            props.flag("x-kubernetes-embedded-resource"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-int-or-string",
            props.flag("x-kubernetes-int-or-string"),
            "must be false to be structural",
        ),
        (
            "x-kubernetes-list-map-keys",
            !props.texts("x-kubernetes-list-map-keys").is_empty(),
            "must be empty to be structural",
        ),
        ("x-kubernetes-list-type", props.list_type().is_some(), "must be undefined to be structural"),
        (
            "x-kubernetes-map-type",
            props.get("x-kubernetes-map-type").is_some(),
            "must be undefined to be structural",
        ),
        ("x-kubernetes-validations", props.rules().next().is_some(), "must be empty to be structural"),
    ] {
        if set {
            out.push(FieldError::forbidden(path.field(key), detail));
        }
    }
    if props.property("metadata").is_some() {
        out.push(FieldError::forbidden(
            properties.key("metadata"),
            "must not be specified in a nested context",
        ));
    }
}

/// Everything that a junctor restricts must be specified outside of it.
fn completeness(
    props: Props<'_>,
    structure: Option<Props<'_>>,
    at: &Path<'_>,
    from: &Path<'_>,
    out: &mut FieldErrors,
) {
    if let Some(not) = props.schema("not") {
        nested_completeness(not, structure, at, &from.field("not"), out);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = from.field(key);
        for (index, schema) in props.list(key).enumerate() {
            nested_completeness(schema, structure, at, &list.index(index), out);
        }
    }
}

fn nested_completeness(
    props: Props<'_>,
    structure: Option<Props<'_>>,
    at: &Path<'_>,
    from: &Path<'_>,
    out: &mut FieldErrors,
) {
    let Some(structure) = structure else {
        out.push(FieldError::required(at, format!("because it is defined in {from}")));
        return;
    };
    completeness(props, Some(structure), at, from, out);
    if let Some(items) = props.items() {
        nested_completeness(items, structure.items(), &at.field("items"), &from.field("items"), out);
    }
    let (at_properties, from_properties) = (at.field("properties"), from.field("properties"));
    for (name, property) in props.properties() {
        let (at, from) = (at_properties.key(name), from_properties.key(name));
        match structure.property(name) {
            Some(structure) => nested_completeness(property, Some(structure), &at, &from, out),
            None => out.push(FieldError::required(at, format!("because it is defined in {from}"))),
        }
    }
}
