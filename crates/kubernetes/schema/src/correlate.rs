//! Correlates parts of the new object with parts of the old one, for ratcheting validation: unchanged parts are
//! accepted even if the schema would reject them today.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::Schema;
use crate::schema::{ListType, TypeName};

/// A value, its old value, and the schema that correlates their parts.
#[derive(Debug, Clone, Copy)]
pub struct Correlated<'a> {
    /// The new value.
    pub new: &'a Value,
    /// The old value.
    pub old: &'a Value,
    /// The schema of both.
    pub schema: &'a Schema,
}

impl<'a> Correlated<'a> {
    /// The correlated field, if it existed before.
    pub fn key(&self, key: &str) -> Option<Self> {
        let (Value::Object(new), Value::Object(old)) = (self.new, self.old) else { return None };
        Some(Self { new: new.get(key)?, old: old.get(key)?, schema: self.schema.child(key)? })
    }

    /// The correlation of list entries. Only lists with keys have one.
    pub fn entries(&self) -> Option<Entries<'a>> {
        let (Value::Array(_), Value::Array(old)) = (self.new, self.old) else { return None };
        (self.schema.list_type == Some(ListType::Map)).then(|| Entries::new(self.schema, old))
    }

    /// Whether nothing changed. Entries of keyed lists are compared by key, so their order does not matter. Fields
    /// without a schema make an object different.
    pub fn unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match self.entries() {
                    Some(entries) => new.iter().all(|item| entries.pair(item).is_some_and(|p| p.unchanged())),
                    None => new == old,
                }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|key| self.key(key).is_some_and(|p| p.unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// The old entries of a keyed list.
#[derive(Debug)]
pub struct Entries<'a> {
    by_key: HashMap<String, &'a Value>,
    items: Option<&'a Schema>,
    keys: &'a [String],
}

impl<'a> Entries<'a> {
    /// Indexes a list by its keys. The first of several equal ones counts.
    pub fn new(schema: &'a Schema, old: &'a [Value]) -> Self {
        let keys: &[String] = if schema.kind == Some(TypeName::Array) { &schema.list_map_keys } else { &[] };
        let mut by_key = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(key) = item.as_object().and_then(|item| composite_key(item, keys)) {
                by_key.entry(key).or_insert(item);
            }
        }
        Self { by_key, items: schema.items.as_deref(), keys }
    }

    /// The old entry with the keys of a new one.
    pub fn get(&self, item: &Value) -> Option<&'a Value> {
        self.by_key.get(&composite_key(item.as_object()?, self.keys)?).copied()
    }

    /// A new entry with its old value.
    pub fn pair<'b>(&self, item: &'b Value) -> Option<Correlated<'b>>
    where
        'a: 'b,
    {
        Some(Correlated { new: item, old: self.get(item)?, schema: self.items? })
    }
}

/// A text that is equal for two entries exactly if all keys are present, scalar and equal.
fn composite_key(item: &Map<String, Value>, keys: &[String]) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    let mut out = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => {
                out.push('\0');
                out.push_str(&scalar.to_string());
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unchanged(schema: Value, new: Value, old: Value) -> bool {
        let schema = Schema::from_json(&schema).expect("valid schema");
        Correlated { new: &new, old: &old, schema: &schema }.unchanged()
    }

    #[test]
    fn keyed_lists_may_be_reordered() {
        let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}});
        let (a, b) = (json!({"k": "a", "v": 1}), json!({"k": "b", "v": 2}));
        assert!(unchanged(keyed.clone(), json!([a, b]), json!([b, a])));
        assert!(!unchanged(keyed.clone(), json!([a]), json!([b])));
        assert!(!unchanged(keyed, json!([a, {"k": "b", "v": 3}]), json!([b, a])));
        let atomic = json!({"type": "array", "items": {"type": "integer"}});
        assert!(unchanged(atomic.clone(), json!([1, 2]), json!([1, 2])));
        assert!(!unchanged(atomic, json!([1, 2]), json!([2, 1])));
    }

    #[test]
    fn fields_without_a_schema_count_as_changed() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        assert!(unchanged(schema.clone(), json!({"a": "x"}), json!({"a": "x"})));
        assert!(!unchanged(schema, json!({"b": "x"}), json!({"b": "x"})));
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        assert!(unchanged(map, json!({"b": "x"}), json!({"b": "x"})));
    }
}
