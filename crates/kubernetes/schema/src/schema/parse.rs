//! Parses `JSONSchemaProps` to a [`Schema`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Additional, Checks, ListType, MAX_DEPTH, MapType, Pattern, Rule, Schema, TypeName};
use crate::field::{BadValue, ErrorKind, FieldError, FieldErrors};

impl Schema {
    /// Parses an `openAPIV3Schema`. Errors name the fields with a wrong JSON type, or that structural schemas do not
    /// have.
    pub fn from_json(props: &Value) -> Result<Self, FieldErrors> {
        let mut parser = Parser { errors: FieldErrors::new() };
        let schema = parser.schema(props, &mut String::new(), 0);
        if parser.errors.is_empty() { Ok(schema) } else { Err(parser.errors) }
    }
}

struct Parser {
    errors: FieldErrors,
}

/// Runs `body` with `path` extended, and restores it.
fn below<T>(path: &mut String, part: &str, body: impl FnOnce(&mut String) -> T) -> T {
    let len = path.len();
    if !path.is_empty() && !part.starts_with('[') {
        path.push('.');
    }
    path.push_str(part);
    let out = body(path);
    path.truncate(len);
    out
}

impl Parser {
    fn wrong_type(&mut self, path: &str, key: &str, value: &Value, wanted: &str) {
        let field = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        self.errors.push(FieldError::new(
            ErrorKind::TypeInvalid,
            field,
            BadValue::Json(value.clone()),
            format!("must be {wanted}"),
        ));
    }

    fn schema(&mut self, props: &Value, path: &mut String, depth: usize) -> Schema {
        if depth > MAX_DEPTH {
            self.errors.push(FieldError::forbidden(
                path.clone(),
                format!("schemas are nested at most {MAX_DEPTH} deep"),
            ));
            return Schema::default();
        }
        let Value::Object(props) = props else {
            self.errors.push(FieldError::new(
                ErrorKind::TypeInvalid,
                path.clone(),
                BadValue::Json(props.clone()),
                "must be an object",
            ));
            return Schema::default();
        };
        let mut out = Schema::default();
        let mut checks = Checks::default();
        for (key, value) in props {
            if !value.is_null() {
                self.keyword(&mut out, &mut checks, key, value, path, depth);
            }
        }
        if checks != Checks::default() {
            out.checks = Some(Box::new(checks));
        }
        out
    }

    fn keyword(
        &mut self,
        out: &mut Schema,
        checks: &mut Checks,
        key: &str,
        value: &Value,
        path: &mut String,
        depth: usize,
    ) {
        match key {
            "type" => {
                let name = self.text(path, key, value);
                if !name.is_empty() {
                    out.kind = TypeName::from_name(&name);
                    if out.kind.is_none() {
                        self.unsupported(path, key, value, &TypeName::ALL.map(TypeName::as_str));
                    }
                }
            }
            "properties" => out.properties = self.map(path, key, value, depth),
            "additionalProperties" => {
                out.additional = match value {
                    Value::Bool(allowed) => Additional::Any(*allowed),
                    _ => Additional::Schema(self.child(path, key, value, depth)),
                };
            }
            "items" => {
                if value.is_array() {
                    self.wrong_type(path, key, value, "a schema, not an array");
                } else {
                    out.items = Some(self.child(path, key, value, depth));
                }
            }
            "nullable" => out.nullable = self.flag(path, key, value),
            "default" => out.default = Some(whole_numbers(value)),
            "title" => out.title = self.text(path, key, value),
            "description" => out.description = self.text(path, key, value),
            "x-kubernetes-int-or-string" => out.int_or_string = self.flag(path, key, value),
            "x-kubernetes-preserve-unknown-fields" => out.preserve_unknown = self.flag(path, key, value),
            "x-kubernetes-embedded-resource" => out.embedded_resource = self.flag(path, key, value),
            "x-kubernetes-list-type" => {
                out.list_type = ListType::from_name(&self.text(path, key, value));
                if out.list_type.is_none() {
                    self.unsupported(path, key, value, &["atomic", "set", "map"]);
                }
            }
            "x-kubernetes-list-map-keys" => out.list_map_keys = self.texts(path, key, value),
            "x-kubernetes-map-type" => {
                out.map_type = MapType::from_name(&self.text(path, key, value));
                if out.map_type.is_none() {
                    self.unsupported(path, key, value, &["granular", "atomic"]);
                }
            }
            "x-kubernetes-validations" => out.rules = self.rules(path, key, value),
            "id" | "$schema" | "$ref" | "patternProperties" | "dependencies" | "additionalItems"
            | "definitions"
                if !is_empty(value) =>
            {
                below(path, key, |path| {
                    self.errors.push(FieldError::forbidden(
                        path.clone(),
                        format!("OpenAPIV3Schema '{key}' is not supported"),
                    ));
                });
            }
            _ => self.check(checks, key, value, path, depth),
        }
    }

    fn check(&mut self, out: &mut Checks, key: &str, value: &Value, path: &mut String, depth: usize) {
        match key {
            "required" => out.required = self.texts(path, key, value),
            "enum" => match value {
                Value::Array(values) => out.enumeration = values.iter().map(whole_numbers).collect(),
                _ => self.wrong_type(path, key, value, "an array"),
            },
            "format" => out.format = Some(self.text(path, key, value)).filter(|f| !f.is_empty()),
            "maximum" => out.maximum = self.number(path, key, value),
            "exclusiveMaximum" => out.exclusive_maximum = self.flag(path, key, value),
            "minimum" => out.minimum = self.number(path, key, value),
            "exclusiveMinimum" => out.exclusive_minimum = self.flag(path, key, value),
            "multipleOf" => out.multiple_of = self.number(path, key, value),
            "maxLength" => out.max_length = self.integer(path, key, value),
            "minLength" => out.min_length = self.integer(path, key, value),
            "pattern" => {
                let source = self.text(path, key, value);
                out.pattern = (!source.is_empty()).then(|| Pattern::new(source));
            }
            "maxItems" => out.max_items = self.integer(path, key, value),
            "minItems" => out.min_items = self.integer(path, key, value),
            "uniqueItems" => out.unique_items = self.flag(path, key, value),
            "maxProperties" => out.max_properties = self.integer(path, key, value),
            "minProperties" => out.min_properties = self.integer(path, key, value),
            "allOf" => out.all_of = self.list(path, key, value, depth),
            "anyOf" => out.any_of = self.list(path, key, value, depth),
            "oneOf" => out.one_of = self.list(path, key, value, depth),
            "not" => out.not = Some(self.child(path, key, value, depth)),
            // `example`, `externalDocs` and unknown keywords do not affect values.
            _ => {}
        }
    }

    fn unsupported(&mut self, path: &mut String, key: &str, value: &Value, supported: &[&str]) {
        below(path, key, |path| {
            self.errors.push(FieldError::not_supported(path.clone(), value.clone(), supported));
        });
    }

    fn child(&mut self, path: &mut String, key: &str, value: &Value, depth: usize) -> Arc<Schema> {
        below(path, key, |path| Arc::new(self.schema(value, path, depth + 1)))
    }

    fn map(
        &mut self,
        path: &mut String,
        key: &str,
        value: &Value,
        depth: usize,
    ) -> BTreeMap<String, Arc<Schema>> {
        let Value::Object(entries) = value else {
            self.wrong_type(path, key, value, "an object");
            return BTreeMap::new();
        };
        below(path, key, |path| {
            let child = |(name, value): (&String, &Value)| {
                let part = format!("[{name}]");
                let schema = below(path, &part, |path| Arc::new(self.schema(value, path, depth + 1)));
                (name.clone(), schema)
            };
            entries.iter().map(child).collect()
        })
    }

    fn list(&mut self, path: &mut String, key: &str, value: &Value, depth: usize) -> Vec<Arc<Schema>> {
        let Value::Array(entries) = value else {
            self.wrong_type(path, key, value, "an array");
            return Vec::new();
        };
        below(path, key, |path| {
            let child = |(index, value): (usize, &Value)| {
                let part = format!("[{index}]");
                below(path, &part, |path| Arc::new(self.schema(value, path, depth + 1)))
            };
            entries.iter().enumerate().map(child).collect()
        })
    }

    fn rules(&mut self, path: &mut String, key: &str, value: &Value) -> Vec<Rule> {
        let Value::Array(entries) = value else {
            self.wrong_type(path, key, value, "an array");
            return Vec::new();
        };
        below(path, key, |path| {
            let rule = |(index, value): (usize, &Value)| {
                below(path, &format!("[{index}]"), |path| self.rule(path, value))
            };
            entries.iter().enumerate().map(rule).collect()
        })
    }

    fn rule(&mut self, path: &str, value: &Value) -> Rule {
        let empty = Map::new();
        let props = value.as_object().unwrap_or(&empty);
        let mut text = |key: &str| match props.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(value) => self.text(path, key, value),
        };
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: Some(text("reason")).filter(|r| !r.is_empty()),
            field_path: text("fieldPath"),
            optional_old_self: props.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }

    fn text(&mut self, path: &str, key: &str, value: &Value) -> String {
        match value {
            Value::String(text) => text.clone(),
            _ => {
                self.wrong_type(path, key, value, "a string");
                String::new()
            }
        }
    }

    fn texts(&mut self, path: &str, key: &str, value: &Value) -> Vec<String> {
        match value {
            Value::Array(values) => values.iter().map(|v| self.text(path, key, v)).collect(),
            _ => {
                self.wrong_type(path, key, value, "an array");
                Vec::new()
            }
        }
    }

    fn flag(&mut self, path: &str, key: &str, value: &Value) -> bool {
        value.as_bool().unwrap_or_else(|| {
            self.wrong_type(path, key, value, "a boolean");
            false
        })
    }

    fn number(&mut self, path: &str, key: &str, value: &Value) -> Option<f64> {
        let number = value.as_f64();
        if number.is_none() {
            self.wrong_type(path, key, value, "a number");
        }
        number
    }

    fn integer(&mut self, path: &str, key: &str, value: &Value) -> Option<i64> {
        let number = value.as_i64();
        if number.is_none() {
            self.wrong_type(path, key, value, "an integer");
        }
        number
    }
}

/// A value as read from the store: Go writes 2.0 as 2, which is then an integer.
fn whole_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            let is_whole = float.fract() == 0.0 && float.abs() < 9_223_372_036_854_775_808.0;
            if is_whole { Value::from(float as i64) } else { value.clone() }
        }
        Value::Array(items) => items.iter().map(whole_numbers).collect(),
        Value::Object(fields) => fields.iter().map(|(key, v)| (key.clone(), whole_numbers(v))).collect(),
        _ => value.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keywords_land_in_their_fields() {
        let schema = Schema::from_json(&json!({
            "type": "object",
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "pattern": "^x", "maxLength": 3, "default": "x"},
                "b": {"type": "array", "x-kubernetes-list-type": "map",
                      "x-kubernetes-list-map-keys": ["k"],
                      "items": {"type": "object", "properties": {"k": {"type": "integer"}}}},
                "c": {"x-kubernetes-int-or-string": true, "nullable": true},
                "d": {"type": "object", "additionalProperties": {"type": "boolean"}},
                "e": {"type": "object", "additionalProperties": true},
            },
            "x-kubernetes-validations": [{"rule": "true", "reason": "FieldValueForbidden"}],
        }))
        .expect("valid");
        assert_eq!(schema.kind, Some(TypeName::Object));
        assert_eq!(schema.checks.as_ref().expect("checks").required, ["a"]);
        let a = &schema.properties["a"];
        assert_eq!(a.default, Some(json!("x")));
        assert_eq!(a.checks.as_ref().expect("checks").max_length, Some(3));
        let b = &schema.properties["b"];
        assert_eq!((b.list_type, b.list_map_keys.as_slice()), (Some(ListType::Map), &["k".to_owned()][..]));
        assert!(schema.properties["c"].int_or_string && schema.properties["c"].nullable);
        assert_eq!(schema.properties["d"].child("any").expect("child").kind, Some(TypeName::Boolean));
        assert_eq!(schema.properties["e"].additional, Additional::Any(true));
        assert_eq!(schema.rules[0].reason.as_deref(), Some("FieldValueForbidden"));
    }

    #[test]
    fn whole_numbers_are_integers() {
        let schema = Schema::from_json(&json!({"default": [2.0, 2.5], "enum": [{"a": 1.0}]})).expect("valid");
        assert_eq!(schema.default, Some(json!([2, 2.5])));
        assert_eq!(schema.checks.expect("checks").enumeration, [json!({"a": 1})]);
    }

    #[test]
    fn wrong_types_are_named_by_path() {
        let errors = Schema::from_json(&json!({
            "properties": {"a": {"items": {"type": 1}}, "b": {"type": "wrong"}}, "$ref": "x"
        }))
        .expect_err("invalid");
        let fields: Vec<&str> = errors.iter().map(|e| e.field.as_str()).collect();
        assert_eq!(fields, ["$ref", "properties[a].items.type", "properties[b].type"]);
    }

    #[test]
    fn nesting_is_bounded() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "array", "items": schema});
        }
        assert!(Schema::from_json(&schema).is_err());
    }
}
