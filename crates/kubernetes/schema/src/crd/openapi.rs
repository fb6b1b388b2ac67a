//! Validates every node of a CRD's schema.

use std::collections::HashSet;

use serde_json::Value;

use super::cel::Scope;
use super::props::{Props, TYPES};
use super::{Options, render};
use crate::Schema;
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};
use crate::fieldpath;
use crate::path::Path;

/// Errors of the schema itself are listed before those of its rules.
#[derive(Debug, Default)]
pub struct Errors {
    pub schema: FieldErrors,
    pub rules: FieldErrors,
}

impl Errors {
    fn append(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }

    pub fn all(mut self) -> FieldErrors {
        self.schema.extend(self.rules);
        self.schema
    }
}

/// What the ancestors of a node forbid in it.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Why defaults are forbidden.
    forbidden_defaults: Option<String>,
    inside_metadata: bool,
    /// The list or map whose entries cannot be correlated with their old values.
    uncorrelatable: Option<String>,
}

impl Context {
    fn forbid_defaults(&self, reason: impl Into<String>) -> Self {
        Self { forbidden_defaults: Some(reason.into()), ..self.clone() }
    }

    fn uncorrelatable(&self, path: &Path<'_>) -> Self {
        let mut out = self.clone();
        out.uncorrelatable.get_or_insert_with(|| path.to_string());
        out
    }
}

/// Validates a node and everything below it. `scope` has the types of rules, where rules are allowed.
pub fn validate(
    props: Props<'_>,
    path: &Path<'_>,
    context: &Context,
    root: bool,
    options: &Options<'_>,
    scope: Option<&Scope<'_>>,
) -> Errors {
    let mut out = Errors::default();
    keywords(props, path, context, options, &mut out.schema);
    if props.flag("uniqueItems") {
        out.schema.push(FieldError::forbidden(
            path.field("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    children(props, path, context, root, options, scope, &mut out);
    extensions(props, path, options, &mut out.schema);
    rules(props, path, context, options, scope, &mut out);
    out
}

fn keywords(
    props: Props<'_>,
    path: &Path<'_>,
    context: &Context,
    options: &Options<'_>,
    out: &mut FieldErrors,
) {
    let kind = props.kind();
    if options.require_valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
        out.push(FieldError::not_supported(path.field("type"), kind, &TYPES));
    }
    if let (Some(reason), Some(_)) = (&context.forbidden_defaults, props.get("default")) {
        out.push(FieldError::forbidden(path.field("default"), format!("must not be set {reason}")));
    }
    let filled = |key: &str| props.get(key).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    for (key, set) in [
        ("id", !props.text("id").is_empty()),
        ("additionalItems", props.get("additionalItems").is_some()),
        ("patternProperties", filled("patternProperties")),
        ("definitions", filled("definitions")),
        ("dependencies", props.get("dependencies").is_some()),
        ("$ref", props.get("$ref").is_some()),
    ] {
        if set {
            out.push(FieldError::forbidden(path.field(key), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        out.push(FieldError::forbidden(
            path.field("type"),
            "type cannot be set to null, use nullable as an alternative",
        ));
    }
    if props.item_list().next().is_some() {
        out.push(FieldError::forbidden(
            path.field("items"),
            "items must be a schema object and not an array",
        ));
    }
    if context.inside_metadata && props.flag("x-kubernetes-embedded-resource") {
        out.push(FieldError::forbidden(
            path.field("x-kubernetes-embedded-resource"),
            "must not be used inside of resource meta",
        ));
    }
}

fn children(
    props: Props<'_>,
    path: &Path<'_>,
    context: &Context,
    root: bool,
    options: &Options<'_>,
    scope: Option<&Scope<'_>>,
    out: &mut Errors,
) {
    if let Some(additional) = props.get("additionalProperties") {
        let path_here = path.field("additionalProperties");
        if props.has_properties() && *additional != true {
            out.schema.push(FieldError::forbidden(
                path_here,
                "additionalProperties and properties are mutual exclusive",
            ));
        }
        if let Some(schema) = Props::of(additional) {
            let forbidding;
            let context = if context.inside_metadata {
                forbidding =
                    context.forbid_defaults("inside additionalProperties applying to object metadata");
                &forbidding
            } else {
                context
            };
            let scope = scope.map(|scope| scope.additional(schema));
            out.append(validate(schema, &path_here, context, false, options, scope.as_ref()));
        }
    }
    let properties = path.field("properties");
    let map_type = props.optional_text("x-kubernetes-map-type");
    let correlatable = matches!(map_type, None | Some("granular" | "atomic"));
    for (name, property) in props.properties() {
        let mut below = if correlatable { context.clone() } else { context.uncorrelatable(path) };
        let meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
        if meta && (root || props.flag("x-kubernetes-embedded-resource")) {
            below.inside_metadata = true;
            if root {
                below = below.forbid_defaults(format!("in top-level {name}"));
            }
        }
        let scope = scope.map(|scope| scope.property(property, name));
        out.append(validate(property, &properties.key(name), &below, false, options, scope.as_ref()));
    }
    if let Some(not) = props.schema("not") {
        out.append(validate(not, &path.field("not"), context, false, options, None));
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        let list = path.field(key);
        for (index, schema) in props.list(key).enumerate() {
            out.append(validate(schema, &list.index(index), context, false, options, None));
        }
    }
    let definitions = path.field("definitions");
    for (name, schema) in props.map("definitions") {
        out.append(validate(schema, &definitions.key(name), context, false, options, None));
    }
    let below = if props.list_type() == Some("map") { context.clone() } else { context.uncorrelatable(path) };
    let items = path.field("items");
    if let Some(schema) = props.items() {
        let scope = scope.map(|scope| scope.items(schema));
        out.append(validate(schema, &items, &below, false, options, scope.as_ref()));
    }
    for (index, schema) in props.item_list().enumerate() {
        let scope = scope.map(|scope| scope.items(schema));
        out.append(validate(schema, &items.index(index), &below, false, options, scope.as_ref()));
    }
    let dependencies = path.field("dependencies");
    for (name, schema) in props.map("dependencies") {
        out.append(validate(schema, &dependencies.key(name), context, false, options, None));
    }
}

/// Validates `x-kubernetes-*` and what they require of the rest.
fn extensions(props: Props<'_>, path: &Path<'_>, options: &Options<'_>, out: &mut FieldErrors) {
    let kind = props.kind();
    let wrong_type = |out: &mut FieldErrors, detail: &str| {
        out.push(if kind.is_empty() {
            FieldError::required(path.field("type"), detail)
        } else {
            FieldError::invalid(path.field("type"), kind, detail)
        });
    };
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if props.get(preserve) == Some(&Value::Bool(false)) {
        out.push(FieldError::invalid(path.field(preserve), false, "must be true or undefined"));
    }
    if let Some(map_type) = props.optional_text("x-kubernetes-map-type") {
        if kind != "object" {
            wrong_type(out, "must be object if x-kubernetes-map-type is specified");
        }
        if !matches!(map_type, "atomic" | "granular") {
            out.push(FieldError::not_supported(
                path.field("x-kubernetes-map-type"),
                map_type,
                &["atomic", "granular"],
            ));
        }
    }
    let items = props.items();
    let items_path = path.field("items");
    let list_type = props.list_type();
    match (list_type, items) {
        (Some(_), _) if kind != "array" => {
            wrong_type(out, "must be array if x-kubernetes-list-type is specified");
        }
        (Some("set"), Some(items)) if options.require_atomic_sets => {
            const DETAIL: &str = "must be atomic as item of a list with x-kubernetes-list-type=set";
            // Both errors show the list type, even if it is absent.
            let shown = items.list_type().map_or(Value::Null, Value::from);
            if let Some(key) = non_atomic_key(items) {
                out.push(FieldError::invalid(items_path.field(key), shown, DETAIL));
            }
        }
        _ => {}
    }
    let list_type_path = path.field("x-kubernetes-list-type");
    if let Some(other) = list_type.filter(|t| !matches!(*t, "atomic" | "set" | "map")) {
        out.push(FieldError::not_supported(list_type_path, other, &["atomic", "set", "map"]));
    }
    let keys = props.texts("x-kubernetes-list-map-keys");
    if !keys.is_empty() {
        const DETAIL: &str = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => out.push(FieldError::required(list_type_path, DETAIL)),
            Some("map") => {}
            Some(other) => out.push(FieldError::invalid(list_type_path, other, DETAIL)),
        }
    }
    if list_type == Some("map") {
        map_list(props, &keys, path, out);
    }
    if options.require_map_list_keys {
        out.extend(map_list_keys(props, path));
    }
}

/// The keyword that would have to be `atomic` for an entry of a set.
pub fn non_atomic_key(items: Props<'_>) -> Option<&'static str> {
    match items.kind() {
        "array" if !matches!(items.list_type(), None | Some("atomic")) => Some("x-kubernetes-list-type"),
        "object" if items.optional_text("x-kubernetes-map-type") != Some("atomic") => {
            Some("x-kubernetes-map-type")
        }
        _ => None,
    }
}

fn map_list(props: Props<'_>, keys: &[&str], path: &Path<'_>, out: &mut FieldErrors) {
    let keys_path = path.field("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        out.push(FieldError::required(keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_path = path.field("items");
    let Some(items) = props.get("items") else {
        out.push(FieldError::required(items_path, "must have a schema if x-kubernetes-list-type is map"));
        return;
    };
    let Some(schema) = Props::of(items) else {
        out.push(FieldError::new(
            ErrorKind::Invalid,
            items_path,
            BadValue::Text(render::schema_or_list(items)),
            "must only have a single schema if x-kubernetes-list-type is map",
        ));
        return;
    };
    if schema.kind() != "object" {
        out.push(FieldError::invalid(
            items_path.field("type"),
            schema.kind(),
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let properties = items_path.field("properties");
    let mut seen = HashSet::with_capacity(keys.len());
    for key in keys {
        let wrong_keys = |detail: &str| FieldError::invalid(keys_path, keys.to_vec(), detail);
        match schema.property(key) {
            Some(property) if matches!(property.kind(), "array" | "object") => {
                // Upstream shows the type of the entries, not that of the key.
                out.push(FieldError::invalid(
                    properties.key(key).field("type"),
                    schema.kind(),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ));
            }
            Some(_) => {}
            None => out.push(wrong_keys("entries must all be names of item properties")),
        }
        if !seen.insert(key) {
            out.push(wrong_keys("must not contain duplicate entries"));
        }
    }
}

/// Entries of sets and keyed lists must not be null, and keys must be present.
pub fn map_list_keys(props: Props<'_>, path: &Path<'_>) -> FieldErrors {
    let mut out = FieldErrors::new();
    let (Some(items), Some(list_type @ ("set" | "map"))) = (props.items(), props.list_type()) else {
        return out;
    };
    let items_path = path.field("items");
    if items.flag("nullable") {
        out.push(FieldError::forbidden(
            items_path.field("nullable"),
            format!("cannot be nullable when x-kubernetes-list-type is {list_type}"),
        ));
    }
    if list_type != "map" {
        return out;
    }
    let required: HashSet<&str> = items.texts("required").into_iter().collect();
    let properties = items_path.field("properties");
    for key in props.texts("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(key) else { continue };
        let path = properties.key(key);
        if !required.contains(key) && property.get("default").is_none() {
            out.push(FieldError::required(
                path.field("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                 property",
            ));
        }
        if property.flag("nullable") {
            out.push(FieldError::forbidden(
                path.field("nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
    out
}

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

fn rules(
    props: Props<'_>,
    path: &Path<'_>,
    context: &Context,
    options: &Options<'_>,
    scope: Option<&Scope<'_>>,
    out: &mut Errors,
) {
    if props.rules().next().is_none() {
        return;
    }
    let list = path.field("x-kubernetes-validations");
    for (index, rule) in props.rules().enumerate() {
        rule_texts(rule, props, &list.index(index), &mut out.schema);
    }
    if let (true, Some(scope)) = (out.schema.is_empty(), scope) {
        let uncorrelatable = context.uncorrelatable.as_deref();
        super::cel::validate(props, path, scope, uncorrelatable, options, &mut out.rules);
    }
}

fn rule_texts(rule: Props<'_>, props: Props<'_>, path: &Path<'_>, out: &mut FieldErrors) {
    let has_newlines = |text: &str| text.contains(['\n', '\r']);
    let (expression, message) = (rule.text("rule").trim(), rule.text("message").trim());
    if expression.is_empty() {
        out.push(FieldError::required(path.field("rule"), "rule is not specified"));
    } else if !rule.text("message").is_empty() && message.is_empty() {
        out.push(FieldError::invalid(
            path.field("message"),
            rule.text("message"),
            "must be non-empty if specified",
        ));
    } else if has_newlines(message) {
        out.push(FieldError::invalid(
            path.field("message"),
            rule.text("message"),
            "must not contain line breaks",
        ));
    } else if has_newlines(expression) && message.is_empty() {
        out.push(FieldError::required(
            path.field("message"),
            "message must be specified if rule contains line breaks",
        ));
    }
    let message_expression = rule.text("messageExpression");
    if !message_expression.is_empty() && message_expression.trim().is_empty() {
        out.push(FieldError::required(
            path.field("messageExpression"),
            "messageExpression must be non-empty if specified",
        ));
    }
    if let Some(reason) = rule.optional_text("reason").filter(|reason| !REASONS.contains(reason)) {
        out.push(FieldError::not_supported(path.field("reason"), reason, &REASONS));
    }
    let field_path = rule.text("fieldPath");
    if field_path.is_empty() {
        return;
    }
    let mut wrong = |detail: &str| out.push(FieldError::invalid(path.field("fieldPath"), field_path, detail));
    if field_path.trim().is_empty() {
        wrong("must be non-empty if specified");
    }
    if has_newlines(field_path) {
        wrong("must not contain line breaks");
    }
    let schema = Schema::from_json(&Value::Object(props.0.clone()));
    if schema.is_ok_and(|schema| fieldpath::resolve(field_path, &schema, true).is_err()) {
        wrong("must be a valid path");
    }
}
