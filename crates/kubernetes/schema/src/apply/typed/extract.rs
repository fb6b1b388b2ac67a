//! Removes fields from a value, or keeps only them.

use serde_json::{Map, Value};

use super::{AtomKind, ListAtom, MapAtom, Type};
use crate::apply::fieldpath::{PathElement, Set};

/// The value without the fields of a set. An object or list that becomes empty becomes null.
pub fn remove(value: &Value, fields: &Set, of: Type<'_>) -> Value {
    Take { keep: false }.value(value, fields, of)
}

/// The value with only the fields of a set.
pub fn extract(value: &Value, fields: &Set, of: Type<'_>) -> Value {
    Take { keep: true }.value(value, fields, of)
}

#[derive(Clone, Copy)]
struct Take {
    keep: bool,
}

impl Take {
    fn value(self, value: &Value, fields: &Set, of: Type<'_>) -> Value {
        let whole = |keep: bool| if keep { value.clone() } else { Value::Null };
        match (of.atom().for_value(value).kind(), value) {
            (AtomKind::Scalar(_), _) => value.clone(),
            (AtomKind::Map(atom), Value::Object(map)) => {
                if map.is_empty() || atom.atomic {
                    return whole(self.keep);
                }
                self.map(map, fields, atom)
            }
            (AtomKind::List(atom), Value::Array(items)) => {
                if items.is_empty() || !atom.associative {
                    return whole(self.keep);
                }
                self.list(items, fields, atom)
            }
            _ => Value::Null,
        }
    }

    fn map(self, map: &Map<String, Value>, fields: &Set, atom: MapAtom<'_>) -> Value {
        let mut out = Map::new();
        for (name, value) in map {
            let element = PathElement::field(name.as_str());
            let of = atom.child(name);
            if fields.members.contains(&element) {
                if self.keep {
                    // As upstream, the paths below are looked up from the same level: a member is kept completely
                    // only if it is a leaf.
                    out.insert(name.clone(), self.value(value, fields, of));
                }
                continue;
            }
            match fields.below(&element) {
                Some(below) => {
                    out.insert(name.clone(), self.value(value, below, of));
                }
                None if self.keep => {}
                None => {
                    out.insert(name.clone(), value.clone());
                }
            }
        }
        if out.is_empty() { Value::Null } else { Value::Object(out) }
    }

    fn list(self, items: &[Value], fields: &Set, atom: ListAtom<'_>) -> Value {
        let mut out = Vec::new();
        for item in items {
            let element = atom.element_of(item).ok();
            let exact = element.as_ref().is_some_and(|e| fields.members.contains(e));
            let below = element.as_ref().and_then(|e| fields.below(e));
            match (self.keep, exact, below) {
                (false, true, _) | (true, false, None) => {}
                (_, _, Some(below)) => out.push(self.value(item, below, atom.element)),
                (_, _, None) => out.push(item.clone()),
            }
        }
        if out.is_empty() { Value::Null } else { Value::Array(out) }
    }
}
