//! A `JSONSchemaProps` as JSON, with Go's zero values for absent fields.

use serde_json::{Map, Value};

/// A view of one schema of a CRD.
#[derive(Debug, Clone, Copy)]
pub struct Props<'a>(pub &'a Map<String, Value>);

/// Types a schema may name.
pub const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

impl<'a> Props<'a> {
    /// The schema of a value, if it is an object.
    pub fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// A keyword's value unless it is absent or null.
    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    pub fn text(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn optional_text(self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    pub fn flag(self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    pub fn integer(self, key: &str) -> Option<i64> {
        self.get(key).and_then(Value::as_i64)
    }

    pub fn texts(self, key: &str) -> Vec<&'a str> {
        self.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn kind(self) -> &'a str {
        self.text("type")
    }

    pub fn schema(self, key: &str) -> Option<Self> {
        self.get(key).and_then(Self::of)
    }

    pub fn list(self, key: &str) -> impl Iterator<Item = Self> + use<'a> {
        self.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Self::of)
    }

    pub fn map(self, key: &str) -> impl Iterator<Item = (&'a String, Self)> + use<'a> {
        let entries = self.get(key).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name, Self::of(value)?)))
    }

    pub fn properties(self) -> impl Iterator<Item = (&'a String, Self)> + use<'a> {
        self.map("properties")
    }

    pub fn property(self, name: &str) -> Option<Self> {
        self.get("properties")?.get(name).and_then(Self::of)
    }

    pub fn has_properties(self) -> bool {
        self.properties().next().is_some()
    }

    /// Whether `additionalProperties` is present, as a schema or a flag.
    pub fn has_additional(self) -> bool {
        self.get("additionalProperties").is_some()
    }

    /// The schema of a list's entries, unless it is an (unsupported) array of schemas.
    pub fn items(self) -> Option<Self> {
        self.schema("items")
    }

    pub fn item_list(self) -> impl Iterator<Item = Self> + use<'a> {
        self.list("items")
    }

    pub fn list_type(self) -> Option<&'a str> {
        self.optional_text("x-kubernetes-list-type")
    }

    pub fn rules(self) -> impl Iterator<Item = Self> + use<'a> {
        self.list("x-kubernetes-validations")
    }

    /// Whether a predicate holds for a schema or any below it.
    pub fn any(self, is: &mut dyn FnMut(Self) -> bool) -> bool {
        let dependencies =
            |is: &mut dyn FnMut(Self) -> bool| self.map("dependencies").any(|(_, s)| s.any(is));
        is(self)
            || self.items().is_some_and(|s| s.any(is))
            || self.item_list().any(|s| s.any(is))
            || ["allOf", "anyOf", "oneOf"].iter().any(|key| self.list(key).any(|s| s.any(is)))
            || self.schema("not").is_some_and(|s| s.any(is))
            || self.properties().any(|(_, s)| s.any(is))
            || self.schema("additionalProperties").is_some_and(|s| s.any(is))
            || ["patternProperties", "definitions"].iter().any(|key| self.map(key).any(|(_, s)| s.any(is)))
            || self.schema("additionalItems").is_some_and(|s| s.any(is))
            || dependencies(is)
    }

    /// Whether schemas are nested deeper than `limit`. Stops counting there.
    pub fn deeper_than(self, limit: usize) -> bool {
        fn walk(value: &Value, budget: usize) -> bool {
            match value {
                Value::Object(map) => budget == 0 || map.values().any(|v| walk(v, budget - 1)),
                Value::Array(items) => budget == 0 || items.iter().any(|v| walk(v, budget - 1)),
                _ => false,
            }
        }
        self.0.values().any(|value| walk(value, limit))
    }
}
