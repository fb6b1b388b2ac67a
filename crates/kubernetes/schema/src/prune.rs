//! Removes fields that the schema does not specify, and reports them.

use serde_json::Value;

use crate::Schema;
use crate::bounded::Texts;
use crate::schema::Additional;

/// Removes fields of a custom resource that its schema does not specify, and returns their paths in order, as many as
/// [`Texts`] keeps. `apiVersion`, `kind` and `metadata` are implied and stay, also those of embedded resources.
pub fn prune(object: &mut Value, schema: &Schema) -> Texts {
    prune_value(object, schema, true)
}

/// Removes unspecified fields of any value. `resource_root` is whether it is a whole resource.
pub fn prune_value(value: &mut Value, schema: &Schema, resource_root: bool) -> Texts {
    let mut pruner = Pruner { path: String::new(), unknown: Texts::default() };
    let embedded = resource_root || schema.embedded_resource;
    if schema.preserve_unknown {
        pruner.keep(value, schema, embedded);
    } else {
        pruner.prune(value, Some(schema), embedded);
    }
    pruner.unknown.sort();
    pruner.unknown
}

fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

struct Pruner {
    path: String,
    unknown: Texts,
}

impl Pruner {
    fn below<T>(&mut self, key: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let out = body(self);
        self.path.truncate(length);
        out
    }

    fn at(&mut self, index: usize, body: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        body(self);
        self.path.truncate(length);
    }

    fn child(&mut self, value: &mut Value, schema: Option<&Schema>) {
        match schema {
            Some(schema) if schema.preserve_unknown => self.keep(value, schema, schema.embedded_resource),
            _ => self.prune(value, schema, schema.is_some_and(|s| s.embedded_resource)),
        }
    }

    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>, embedded: bool) {
        match value {
            Value::Object(fields) => fields.retain(|key, value| {
                if embedded && is_meta(key) {
                    return true;
                }
                let known = schema.and_then(|schema| Known::find(schema, key));
                match known {
                    Some(Known(child)) => {
                        if value.is_object() || value.is_array() {
                            self.below(key, |this| this.child(value, child));
                        }
                        true
                    }
                    None => {
                        if !(is_meta(key) && self.path.is_empty() && schema.is_some()) {
                            self.below(key, |this| this.unknown.push(&this.path));
                        }
                        false
                    }
                }
            }),
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| !is_scalar(item)) {
                    self.at(index, |this| this.child(item, schema));
                }
            }
            _ => {}
        }
    }

    /// Keeps unknown fields here, but prunes below specified ones.
    fn keep(&mut self, value: &mut Value, schema: &Schema, embedded: bool) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields.iter_mut().filter(|(_, value)| !is_scalar(value)) {
                    if embedded && is_meta(key) {
                        continue;
                    }
                    if let Some(Known(child)) = Known::find(schema, key) {
                        self.below(key, |this| this.child(value, child));
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = schema.items.as_deref() {
                    for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| !is_scalar(item)) {
                        self.at(index, |this| this.keep(item, schema, schema.embedded_resource));
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    !(value.is_object() || value.is_array())
}

/// A specified field. Without a schema, nothing below it is specified.
struct Known<'a>(Option<&'a Schema>);

impl<'a> Known<'a> {
    fn find(schema: &'a Schema, key: &str) -> Option<Self> {
        match (schema.properties.get(key), &schema.additional) {
            (Some(property), _) => Some(Self(Some(property))),
            (None, Additional::Schema(additional)) => Some(Self(Some(additional))),
            (None, Additional::Any(_)) => Some(Self(None)),
            (None, Additional::None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, mut object: Value, left: Value, unknown: &[&str]) {
        let schema = Schema::from_json(&schema).expect("valid schema");
        assert_eq!(prune(&mut object, &schema).entries(), unknown);
        assert_eq!(object, left);
    }

    #[test]
    fn unknown_fields_are_removed_and_named_in_order() {
        check(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "a": {"type": "object", "properties": {"b": {"type": "string"}}},
                "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            }}}}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"odd": 1}, "z": 1,
                "spec": {"a": {"b": "1", "c": {"d": 1}}, "l": [{"x": "1"}, {"y": 2}], "q": null}}),
            json!({"apiVersion": "v1", "kind": "K", "metadata": {"odd": 1},
                "spec": {"a": {"b": "1"}, "l": [{"x": "1"}, {}]}}),
            &["spec.a.c", "spec.l[1].y", "spec.q", "z"],
        );
    }

    #[test]
    fn preserving_ends_where_fields_are_specified() {
        check(
            json!({"type": "object", "properties": {"p": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"k": {"type": "object", "properties": {"x": {"type": "string"}}}}}}}),
            json!({"p": {"free": {"x": 1}, "k": {"x": "1", "y": 2}}}),
            json!({"p": {"free": {"x": 1}, "k": {"x": "1"}}}),
            &["p.k.y"],
        );
    }

    #[test]
    fn maps_prune_their_values() {
        check(
            json!({"type": "object", "properties": {
                "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
                "any": {"type": "object", "additionalProperties": true},
            }}),
            json!({"m": {"a": {"x": "1", "y": 1}}, "any": {"s": 1, "o": {"x": 1}}}),
            json!({"m": {"a": {"x": "1"}}, "any": {"s": 1, "o": {}}}),
            &["any.o.x", "m.a.y"],
        );
    }

    #[test]
    fn embedded_resources_keep_their_identity() {
        check(
            json!({"type": "object", "properties": {"e": {"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object"}}}}}),
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {"x": 1}, "other": 1}}),
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}, "spec": {}}}),
            &["e.other", "e.spec.x"],
        );
    }
}
