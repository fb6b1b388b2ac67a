//! Identity of list entries.

use std::sync::Arc;

use serde_json::Value;

use super::{ListAtom, MapAtom};
use crate::apply::fieldpath::PathElement;
use crate::golang;

impl ListAtom<'_> {
    /// The path element of an entry: its key fields, or its value in a set.
    pub(super) fn element_of(&self, item: &Value) -> Result<PathElement, String> {
        if !self.associative {
            return Err("invalid indexing of non-associative list".to_owned());
        }
        if self.keys.is_empty() { set_element(item) } else { self.keyed_element(item) }
    }

    fn keyed_element(&self, item: &Value) -> Result<PathElement, String> {
        let map = match item {
            Value::Object(map) => map,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let mut fields = Vec::new();
        for name in self.keys.iter() {
            // An absent key field without a default is not part of the key: an entry that has it is another entry.
            let value = match map.get(name) {
                Some(value) => Some(value),
                None => self.key_default(name)?,
            };
            if let Some(value) = value {
                fields.push((name.to_owned(), value.clone()));
            }
        }
        if fields.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(golang::quote).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        Ok(PathElement::key(fields))
    }

    fn key_default(&self, name: &str) -> Result<Option<&Value>, String> {
        let map: MapAtom<'_> = self.element.atom().map.ok_or_else(|| {
            format!("couldn't find default value for {name}: associative list may not have non-map types")
        })?;
        Ok(map.default_of(name))
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        scalar => Ok(PathElement::Value(Arc::new(scalar.clone()))),
    }
}
