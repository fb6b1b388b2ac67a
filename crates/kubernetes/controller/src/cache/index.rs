//! Objects by something else than their name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_object::Key;

/// The values under which an object is found.
pub(super) type Values<T> = Arc<dyn Fn(&T) -> Vec<String> + Send + Sync>;

/// Keys by value, in order.
pub(super) struct Index<T> {
    values: Values<T>,
    keys: BTreeMap<String, BTreeSet<Key>>,
}

impl<T> Index<T> {
    pub fn new(values: Values<T>) -> Self {
        Self { values, keys: BTreeMap::new() }
    }

    pub fn add(&mut self, key: &Key, object: &T) {
        for value in (self.values)(object) {
            self.keys.entry(value).or_default().insert(key.clone());
        }
    }

    pub fn remove(&mut self, key: &Key, object: &T) {
        for value in (self.values)(object) {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }

    pub fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }
}
