//! Tables of resources: JSON objects with an `id`, oldest first.
//!
//! A resource is kept as the object that its API shows. Fields whose name begins with `_` are the simulator's own and
//! are never shown. So a dump of a cloud is its tables, and what a client sent and what it reads back cannot drift apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A resource.
pub(crate) type Object = Map<String, Value>;

/// All resources of one kind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Object>", into = "Vec<Object>")]
pub(crate) struct Table {
    rows: BTreeMap<u64, Object>,
    numbers: BTreeMap<String, u64>,
    next: u64,
}

impl Table {
    /// Adds a resource, or replaces the one with its id in its place.
    pub(crate) fn insert(&mut self, object: Object) {
        let id = object.text("id").to_owned();
        let number = self.numbers.get(&id).copied().unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.numbers.insert(id, number);
        self.rows.insert(number, object);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Object> {
        self.rows.get(self.numbers.get(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Object> {
        self.rows.get_mut(self.numbers.get(id)?)
    }

    pub(crate) fn remove(&mut self, id: &str) -> Option<Object> {
        self.rows.remove(&self.numbers.remove(id)?)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Object> {
        self.rows.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.rows.values_mut()
    }

    pub(crate) fn retain(&mut self, keep: impl Fn(&Object) -> bool) {
        self.rows.retain(|_, object| keep(object));
        let rows = &self.rows;
        self.numbers.retain(|_, number| rows.contains_key(number));
    }
}

impl From<Vec<Object>> for Table {
    fn from(rows: Vec<Object>) -> Self {
        let mut table = Self::default();
        for row in rows {
            table.insert(row);
        }
        table
    }
}

impl From<Table> for Vec<Object> {
    fn from(table: Table) -> Self {
        table.rows.into_values().collect()
    }
}

/// Reads fields of an object. Absent fields and fields of another type read as empty.
pub(crate) trait Fields {
    fn text(&self, name: &str) -> &str;
    fn flag(&self, name: &str) -> bool;
    fn number(&self, name: &str) -> i64;
    fn list(&self, name: &str) -> &[Value];
    /// The strings of a list.
    fn texts(&self, name: &str) -> Vec<&str>;
    fn object(&self, name: &str) -> Option<&Object>;
    /// Present and not null.
    fn has(&self, name: &str) -> bool;
}

impl Fields for Object {
    fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    fn object(&self, name: &str) -> Option<&Object> {
        self.get(name).and_then(Value::as_object)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.is_null())
    }
}

/// The object that a `json!` literal is; anything else is an empty object.
pub(crate) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// What a client may see of an object.
pub(crate) fn shown(object: &Object) -> Object {
    object.iter().filter(|(name, _)| !name.starts_with('_')).map(|(k, v)| (k.clone(), v.clone())).collect()
}
