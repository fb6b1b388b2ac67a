//! Variables of ClusterClasses: schemas, defaults and validation of values.

use std::sync::Arc;

use capstan_schema::field::FieldError;
use capstan_schema::memory::MemoryBudget;
use capstan_schema::path::Path;
use capstan_schema::rules::Rules;
use capstan_schema::validate::Dialect;
use capstan_schema::{Schema, crd, default, golang, prune, validate};
use serde_json::{Map, Value, json};

use crate::core::cluster_class::{
    ClusterClassStatusVariable, ClusterClassStatusVariableDefinition, ClusterClassVariable, DEFAULT_REASON,
    DEFINED_INLINE, VALIDATIONS, VariableSchema,
};
use crate::core::topology::ClusterVariable;

/// Variables that every cluster has; the name is taken.
pub const BUILTIN: &str = "builtin";

/// Bytes that defaults of one variable may take.
const MAX_DEFAULTS: usize = 1 << 20;

/// Below this field a value is validated: rules and defaults are about fields of objects.
const WRAPPER: &str = "value";

/// Adds defaults. With `create`, variables that have a default and are not set get it. The order is that of the
/// values, then that of the definitions.
pub fn with_defaults(
    values: &[ClusterVariable],
    definitions: &[ClusterClassStatusVariable],
    create: bool,
    path: &str,
) -> Result<Vec<ClusterVariable>, Vec<FieldError>> {
    let mut errors = unique(values, definitions, path);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut defaulted = Vec::new();
    for value in values {
        match definition_of(definitions, &value.name) {
            None => errors.push(undefined(value, path)),
            Some(definition) => match defaulted_value(Some(&value.value), definition) {
                Ok(new) => defaulted.push(ClusterVariable {
                    name: value.name.clone(),
                    value: new.unwrap_or_else(|| value.value.clone()),
                }),
                Err(problem) => {
                    errors.push(FieldError::invalid(format!("{path}[{}]", value.name), "", problem));
                }
            },
        }
    }
    let unset = definitions.iter().filter(|known| !values.iter().any(|value| value.name == known.name));
    for variable in unset.filter(|_| create) {
        let Some(definition) = variable.definitions.first() else { continue };
        match defaulted_value(None, definition) {
            Ok(Some(value)) => defaulted.push(ClusterVariable { name: variable.name.clone(), value }),
            Ok(None) => {}
            Err(problem) => {
                errors.push(FieldError::invalid(format!("{path}[{}]", variable.name), "", problem));
            }
        }
    }
    if errors.is_empty() { Ok(defaulted) } else { Err(errors) }
}

/// Validates values. `required` is for the variables of the whole cluster: all required ones must be set.
pub fn validate_values(
    values: &[ClusterVariable],
    old: &[ClusterVariable],
    definitions: &[ClusterClassStatusVariable],
    required: bool,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = unique(values, definitions, path);
    if !errors.is_empty() {
        return errors;
    }
    if required {
        let must = definitions.iter().filter(|variable| {
            variable.definitions.first().is_some_and(|definition| definition.required == Some(true))
        });
        for variable in must.filter(|known| !values.iter().any(|value| value.name == known.name)) {
            let message = format!("required variable {} must be set", golang::quote(&variable.name));
            errors.push(FieldError::required(path, message));
        }
    }
    for value in values {
        let Some(definition) = definition_of(definitions, &value.name) else {
            errors.push(undefined(value, path));
            continue;
        };
        let before = old.iter().find(|old| old.name == value.name).map(|old| &old.value);
        errors.extend(validate_value(value, before, definition, &format!("{path}[{}]", value.name)));
    }
    errors
}

fn undefined(value: &ClusterVariable, path: &str) -> FieldError {
    let shown = value.value.to_string();
    FieldError::invalid(format!("{path}[{}]", value.name), shown, "variable is not defined")
}

fn definition_of<'a>(
    definitions: &'a [ClusterClassStatusVariable],
    name: &str,
) -> Option<&'a ClusterClassStatusVariableDefinition> {
    definitions.iter().find(|known| known.name == name).and_then(|known| known.definitions.first())
}

/// Names are unique, and definitions do not contradict each other.
fn unique(
    values: &[ClusterVariable],
    definitions: &[ClusterClassStatusVariable],
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if values[..at].iter().any(|known| known.name == value.name) {
            let message = format!("variable {} is set more than once", golang::quote(&value.name));
            errors.push(FieldError::invalid(format!("{path}[{}]", value.name), value.name.as_str(), message));
        }
    }
    for variable in definitions.iter().filter(|variable| variable.definitions_conflict == Some(true)) {
        let message = format!("variable {} has conflicting definitions", golang::quote(&variable.name));
        errors.push(FieldError::invalid(path, variable.name.as_str(), message));
    }
    errors
}

/// The schema of a variable below a field, since only fields have defaults.
fn wrapped(schema: &Value) -> Result<Schema, String> {
    let wrapped = json!({"type": "object", "properties": {WRAPPER: without_ours(schema)}});
    Schema::from_json(&wrapped).map_err(|errors| {
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        shown.join(", ")
    })
}

/// A schema without the fields that Cluster API has beside those of structural schemas.
pub(crate) fn without_ours(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("x-metadata" | "example", _) => {}
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, schema)| (name.clone(), without_ours(schema)));
                kept.insert(key.clone(), Value::Object(properties.collect()));
            }
            ("items" | "additionalProperties" | "not", schema) => {
                kept.insert(key.clone(), without_ours(schema));
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                kept.insert(key.clone(), schemas.iter().map(without_ours).collect());
            }
            _ => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    Value::Object(kept)
}

/// The value with defaults; `None` if there is neither.
fn defaulted_value(
    value: Option<&Value>,
    definition: &ClusterClassStatusVariableDefinition,
) -> Result<Option<Value>, String> {
    let schema = &definition.schema.open_api_v3_schema;
    if value.is_none() && schema.get("default").is_none_or(Value::is_null) {
        return Ok(None);
    }
    let parsed = wrapped(schema).map_err(|errors| format!("invalid schema in ClusterClass: {errors}"))?;
    let mut object = match value {
        Some(value) => json!({WRAPPER: value}),
        None => json!({}),
    };
    let budget = MemoryBudget::of(MAX_DEFAULTS);
    default::apply(&mut object, &parsed, &budget)
        .map_err(|_| format!("defaults take more than {MAX_DEFAULTS} bytes"))?;
    Ok(object.as_object_mut().and_then(|object| object.remove(WRAPPER)))
}

fn validate_value(
    variable: &ClusterVariable,
    old: Option<&Value>,
    definition: &ClusterClassStatusVariableDefinition,
    path: &str,
) -> Vec<FieldError> {
    let shown = variable.value.to_string();
    let schema = &definition.schema.open_api_v3_schema;
    let parsed = match (Schema::from_json(&without_ours(schema)), wrapped(schema)) {
        (Ok(parsed), Ok(wrapped)) => (parsed, wrapped),
        _ => {
            let message = format!(
                "failed to convert schema definition for variable {}; ClusterClass should be checked",
                golang::quote(&variable.name)
            );
            return vec![FieldError::internal(path, message)];
        }
    };
    let (parsed, wrapped) = parsed;
    let at = format!("{path}.{WRAPPER}");
    let errors = validate::validate(&parsed, &variable.value, Dialect::Object, &Path::at(&at));
    if !errors.is_empty() {
        return errors.into_iter().map(|error| with_value(error, &shown)).collect();
    }
    let mut object = json!({WRAPPER: variable.value});
    let unknown = prune::prune_value(&mut object, &wrapped, false);
    if !unknown.is_empty() {
        let prefix = format!("{WRAPPER}.");
        let names: Vec<&str> =
            unknown.entries().iter().map(|name| name.strip_prefix(&prefix).unwrap_or(name)).collect();
        let message = format!(
            "failed validation: {} field(s) are not specified in the variable schema of variable {}",
            golang::quote(&names.join(",")),
            golang::quote(&variable.name)
        );
        return vec![FieldError::invalid(path, shown, message)];
    }
    let Some(rules) = Rules::compile(&Arc::new(wrapped), false) else { return Vec::new() };
    let new = json!({WRAPPER: variable.value});
    let before = old.map(|old| json!({WRAPPER: old}));
    let mut budget = capstan_schema::rules::Budget::default();
    let errors = rules.validate_at(&new, before.as_ref(), &mut budget, &Path::at(path));
    errors.into_iter().map(|error| with_value(error, &shown)).collect()
}

/// Errors show the whole value of the variable.
fn with_value(error: FieldError, shown: &str) -> FieldError {
    FieldError::new(
        error.kind,
        error.field.clone(),
        capstan_schema::field::BadValue::Json(shown.into()),
        error.detail.trim_start_matches(IN_BODY).to_owned(),
    )
}

/// What validation puts before its details, for requests.
const IN_BODY: &str = " in body ";

/// The variables of a class with who defines them, by name.
pub fn definitions(variables: &[ClusterClassVariable]) -> Vec<ClusterClassStatusVariable> {
    definitions_with(variables, &[])
}

/// The same with variables that extensions define, by patch. Definitions of one variable must not differ.
pub fn definitions_with(
    variables: &[ClusterClassVariable],
    discovered: &[(String, Vec<ClusterClassVariable>)],
) -> Vec<ClusterClassStatusVariable> {
    let mut all: Vec<ClusterClassStatusVariable> = Vec::new();
    let inline = variables.iter().map(|variable| (DEFINED_INLINE, variable));
    let of_extensions =
        discovered.iter().flat_map(|(from, found)| found.iter().map(move |it| (from.as_str(), it)));
    for (from, variable) in inline.chain(of_extensions) {
        let definition = ClusterClassStatusVariableDefinition {
            from: from.to_owned(),
            required: Some(variable.required.unwrap_or(false)),
            deprecated_v1beta1_metadata: variable.deprecated_v1beta1_metadata.clone(),
            schema: with_reasons(variable.schema.clone()),
        };
        match all.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => {
                if known.definitions.first().is_some_and(|first| differ(first, &definition)) {
                    known.definitions_conflict = Some(true);
                }
                known.definitions.push(definition);
            }
            None => all.push(ClusterClassStatusVariable {
                name: variable.name.clone(),
                definitions_conflict: Some(false),
                definitions: vec![definition],
            }),
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The API server adds the default reason to rules of the variable itself. What extensions define gets it here, so that
/// the status that is written is the one that is read.
fn with_reasons(mut schema: VariableSchema) -> VariableSchema {
    let rules = schema.open_api_v3_schema.get_mut(VALIDATIONS).and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
        rule.entry("reason").or_insert_with(|| DEFAULT_REASON.into());
    }
    schema
}

fn differ(one: &ClusterClassStatusVariableDefinition, other: &ClusterClassStatusVariableDefinition) -> bool {
    let schema = |of: &ClusterClassStatusVariableDefinition| without_false(&of.schema.open_api_v3_schema);
    one.required != other.required
        || one.deprecated_v1beta1_metadata != other.deprecated_v1beta1_metadata
        || schema(one) != schema(other)
}

/// A schema without keywords that say `false`, which is what their absence says.
fn without_false(schema: &Value) -> Value {
    const DEFAULT_FALSE: [&str; 5] = [
        "uniqueItems",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
    ];
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, value)| {
                !(DEFAULT_FALSE.contains(&name.as_str()) && **value == Value::Bool(false))
            });
            kept.map(|(name, value)| (name.clone(), without_false(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(entries) => entries.iter().map(without_false).collect(),
        other => other.clone(),
    }
}

/// Validates the schemas of a class.
pub fn validate_definitions(variables: &[ClusterClassVariable], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, variable) in variables.iter().enumerate() {
        let name = variable.name.as_str();
        let here = format!("{path}[{name}]");
        let field = format!("{here}.name");
        if name.is_empty() {
            errors.push(FieldError::required(field.as_str(), "variable name must be defined"));
        }
        if name == BUILTIN {
            let message = "\"builtin\" is a reserved variable name";
            errors.push(FieldError::invalid(field.as_str(), name, message));
        }
        if name.contains('.') {
            errors.push(FieldError::invalid(field.as_str(), name, "variable name cannot contain \".\""));
        }
        if variables[..at].iter().any(|known| known.name == name) {
            let message = format!(
                "variable name must be unique. Variable with name {} is defined more than once",
                golang::quote(name)
            );
            errors.push(FieldError::invalid(field.as_str(), name, message));
        }
        errors.extend(validate_schema(variable, &format!("{here}.schema.openAPIV3Schema")));
    }
    errors
}

fn validate_schema(variable: &ClusterClassVariable, path: &str) -> Vec<FieldError> {
    let schema = &variable.schema.open_api_v3_schema;
    let parsed = match Schema::from_json(&without_ours(schema)) {
        Ok(parsed) => Arc::new(parsed),
        Err(errors) => {
            let below = |error: &FieldError| match error.field.is_empty() {
                true => path.to_owned(),
                false => format!("{path}.{}", error.field),
            };
            return errors.into_iter().map(|error| FieldError { field: below(&error), ..error }).collect();
        }
    };
    // The API server knows these as absent only.
    let plain = without_false(&without_ours(schema));
    let found = crd::validate_value_schema(&plain, &parsed, &Path::at(path));
    // CRDs forbid uniqueItems, classes do not.
    let found = found.into_iter().filter(|error| !error.field.ends_with(".uniqueItems"));
    let mut errors: Vec<FieldError> = found.map(of_class).collect();
    if errors.is_empty() {
        validate_allowed(&plain, path, &mut errors);
    }
    errors
}

/// An error in the words of Cluster API, where they are others than those about CRDs.
fn of_class(error: FieldError) -> FieldError {
    if error.detail != "additionalProperties and properties are mutual exclusive" {
        return error;
    }
    let field = error.field.strip_suffix(".additionalProperties").unwrap_or(&error.field);
    FieldError::forbidden(field, "additionalProperties and properties are mutually exclusive")
}

/// Values that a schema allows must fit the rest of it.
fn validate_allowed(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let (Some(values), Ok(parsed)) = (schema["enum"].as_array(), Schema::from_json(schema)) {
        for (at, value) in values.iter().enumerate().filter(|(_, value)| !value.is_null()) {
            let at = format!("{path}.enum[{at}]");
            errors.extend(validate::validate(&parsed, value, Dialect::Object, &Path::at(&at)));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        validate_allowed(property, &format!("{path}.properties[{name}]"), errors);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(key).filter(|child| child.is_object()) {
            validate_allowed(child, &format!("{path}.{key}"), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, required: bool, schema: Value) -> ClusterClassVariable {
        let mut variable = ClusterClassVariable { name: name.to_owned(), ..ClusterClassVariable::default() };
        variable.required = Some(required);
        variable.schema.open_api_v3_schema = schema;
        variable
    }

    fn class() -> Vec<ClusterClassStatusVariable> {
        definitions(&[
            definition("cpu", true, json!({"type": "integer", "minimum": 1})),
            definition(
                "location",
                false,
                json!({"type": "string", "default": "us-east", "enum": ["us-east", "eu"]}),
            ),
            definition(
                "proxy",
                false,
                json!({
                    "type": "object",
                    "properties": {
                        "url": {"type": "string", "format": "uri"},
                        "port": {"type": "integer", "default": 8080},
                    },
                    "x-kubernetes-validations": [{"rule": "self.port > 80", "message": "must be above 80"}],
                    "x-metadata": {"labels": {"a": "b"}},
                }),
            ),
            definition(
                "size",
                false,
                json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}),
            ),
        ])
    }

    fn values(values: Value) -> Vec<ClusterVariable> {
        let Value::Object(fields) = values else { return Vec::new() };
        fields.into_iter().map(|(name, value)| ClusterVariable { name, value }).collect()
    }

    #[test]
    fn defaults_are_added() {
        for (what, given, create, expected) in [
            ("an unset variable", json!({}), true, json!({"location": "us-east"})),
            ("not for a part of the topology", json!({}), false, json!({})),
            ("a value stays", json!({"location": "eu"}), true, json!({"location": "eu"})),
            (
                "a field of an object",
                json!({"proxy": {"url": "x"}}),
                true,
                json!({"location": "us-east", "proxy": {"url": "x", "port": 8080}}),
            ),
        ] {
            let found = with_defaults(&values(given), &class(), create, "v").expect(what);
            let found: Map<String, Value> = found.into_iter().map(|it| (it.name, it.value)).collect();
            assert_eq!(Value::Object(found), expected, "{what}");
        }
        let errors = with_defaults(&values(json!({"nope": 1})), &class(), true, "v").expect_err("unknown");
        assert_eq!(errors[0].to_string(), "v[nope]: Invalid value: \"1\": variable is not defined");
    }

    #[test]
    fn rules_of_a_variable_have_a_reason_and_rules_of_its_fields_need_none() {
        let rule = || json!([{"rule": "true"}, {"rule": "self > 1", "reason": "FieldValueForbidden"}]);
        let schema = json!({
            "type": "object", "x-kubernetes-validations": rule(),
            "properties": {"size": {"type": "integer", "x-kubernetes-validations": rule()}},
        });
        let found = definitions(&[definition("a", false, schema)]);
        let found = &found[0].definitions[0].schema.open_api_v3_schema;
        assert_eq!(
            found["x-kubernetes-validations"],
            json!([
                {"rule": "true", "reason": "FieldValueInvalid"},
                {"rule": "self > 1", "reason": "FieldValueForbidden"},
            ])
        );
        assert_eq!(found["properties"]["size"]["x-kubernetes-validations"], rule());
    }

    #[test]
    fn values_are_validated() {
        for (given, old, required, expected) in [
            (json!({"cpu": 2}), json!({}), true, vec![]),
            (json!({}), json!({}), true, vec!["v: Required value: required variable \"cpu\" must be set"]),
            (json!({}), json!({}), false, vec![]),
            (
                json!({"cpu": 0}),
                json!({}),
                true,
                vec!["v[cpu].value: Invalid value: \"0\": should be greater than or equal to 1"],
            ),
            (
                json!({"cpu": "x"}),
                json!({}),
                true,
                vec!["v[cpu].value: Invalid value: \"\\\"x\\\"\": must be of type integer: \"string\""],
            ),
            (
                json!({"cpu": 1, "location": "moon"}),
                json!({}),
                true,
                vec![
                    "v[location].value: Unsupported value: \"\\\"moon\\\"\": supported values: \"us-east\", \"eu\"",
                ],
            ),
            (
                json!({"cpu": 1, "proxy": {"port": 8080, "nope": 1}}),
                json!({}),
                true,
                vec![
                    "v[proxy]: Invalid value: \"{\\\"nope\\\":1,\\\"port\\\":8080}\": failed validation: \"nope\" field(s) are not specified in the variable schema of variable \"proxy\"",
                ],
            ),
            (
                json!({"cpu": 1, "proxy": {"port": 1}}),
                json!({}),
                true,
                vec!["v[proxy].value: Invalid value: \"{\\\"port\\\":1}\": must be above 80"],
            ),
            (json!({"cpu": 1, "size": 1}), json!({}), true, vec![]),
            (
                json!({"cpu": 1, "size": 1}),
                json!({"size": 2}),
                true,
                vec!["v[size].value: Invalid value: \"1\": failed rule: self >= oldSelf"],
            ),
        ] {
            let errors = validate_values(&values(given.clone()), &values(old), &class(), required, "v");
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected, "{given}");
        }
    }

    #[test]
    fn definitions_are_validated() {
        for (variables, expected) in [
            (vec![definition("a", false, json!({"type": "string"}))], vec![]),
            (
                vec![
                    definition("a", false, json!({"type": "string"})),
                    definition("a", false, json!({"type": "string"})),
                ],
                vec![
                    "s[a].name: Invalid value: \"a\": variable name must be unique. Variable with name \"a\" is defined more than once",
                ],
            ),
            (
                vec![definition("builtin", false, json!({"type": "string"}))],
                vec!["s[builtin].name: Invalid value: \"builtin\": \"builtin\" is a reserved variable name"],
            ),
            (
                vec![definition("a.b", false, json!({"type": "string"}))],
                vec!["s[a.b].name: Invalid value: \"a.b\": variable name cannot contain \".\""],
            ),
            (
                vec![definition("a", false, json!({}))],
                vec![
                    "s[a].schema.openAPIV3Schema.type: Required value: must not be empty for specified object fields",
                ],
            ),
        ] {
            let errors = validate_definitions(&variables, "s");
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(errors, expected);
        }
    }

    #[test]
    fn schemas_of_definitions_are_validated_throughout() {
        let rule = |rule: &str| json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let object = |property: Value| json!({"type": "object", "properties": {"b": property}});
        let grows = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]});
        for schema in [
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
            json!({"type": "object", "additionalProperties": object(grows)}),
            json!({"x-kubernetes-int-or-string": true, "default": "50%"}),
            object(
                json!({"type": "object", "properties": {"c": {"type": "integer", "default": 1}}, "default": {}}),
            ),
            object(
                json!({"type": "string", "enum": ["a", "b"], "default": "a", "x-metadata": {"labels": {"a": "b"}}}),
            ),
        ] {
            assert_eq!(validate_definitions(&[definition("a", false, schema.clone())], "s"), [], "{schema}");
        }
        for (schema, field, detail) in [
            (json!({"type": "array"}), ".items", "must be specified"),
            (json!({"type": "integer", "default": "x"}), ".default", "must be of type integer: \"string\""),
            (
                object(json!({"type": "array", "items": {}})),
                ".properties[b].items.type",
                "must not be empty for specified array items",
            ),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
                "",
                "additionalProperties and properties are mutually exclusive",
            ),
            (
                object(json!({"type": "integer", "maximum": 3, "default": 4})),
                ".properties[b].default",
                "should be less than or equal to 3",
            ),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}}),
                ".default",
                "must not have unknown fields",
            ),
            (
                object(json!({"type": "string", "enum": ["a", 1]})),
                ".properties[b].enum[1]",
                "must be of type string: \"integer\"",
            ),
            (rule(" "), ".x-kubernetes-validations[0].rule", "rule is not specified"),
            (rule("self >"), ".x-kubernetes-validations[0].rule", "compilation failed"),
            (rule("self"), ".x-kubernetes-validations[0].rule", "must evaluate to a bool"),
            (
                object(rule("self > 1")),
                ".properties[b].x-kubernetes-validations[0].rule",
                "compilation failed",
            ),
            (
                json!({"type": "array", "items": rule("self == oldSelf")}),
                ".items.x-kubernetes-validations[0].rule",
                "oldSelf cannot be used on the uncorrelatable portion",
            ),
            (
                json!({"type": "string", "default": "b", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
                ".default",
                "failed rule: self == 'a'",
            ),
            (
                json!({"type": "object", "anyOf": [{"properties": {"b": {"type": "string"}}}]}),
                ".anyOf[0].properties[b].type",
                "must be empty to be structural",
            ),
        ] {
            let errors = validate_definitions(&[definition("a", false, schema.clone())], "s");
            let expected = format!("s[a].schema.openAPIV3Schema{field}");
            let found = errors.iter().any(|error| error.field == expected && error.detail.contains(detail));
            assert!(found, "{schema}: {errors:?}");
        }
    }
}
