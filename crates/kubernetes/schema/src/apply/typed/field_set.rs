//! The paths of a value: the fields that a manager who writes it owns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{AtomKind, ListAtom, MapAtom, Type};
use crate::apply::fieldpath::{Path, PathElement, Set};

/// Every leaf of a value, every entry of a merged list, and every key that is not a declared field.
pub fn field_set(value: &Value, of: Type<'_>) -> Set {
    let mut walk = FieldSet { path: Path::new(), set: Set::new() };
    walk.value(value, of);
    walk.set
}

struct FieldSet {
    path: Path,
    set: Set,
}

impl FieldSet {
    fn value(&mut self, value: &Value, of: Type<'_>) {
        match of.atom().for_value(value).kind() {
            AtomKind::Map(map) if map.atomic => self.set.insert(&self.path),
            AtomKind::Map(map) => self.map(value, map),
            AtomKind::Scalar(_) => self.set.insert(&self.path),
            AtomKind::List(list) if !list.associative => self.set.insert(&self.path),
            AtomKind::List(list) => self.list(value, list),
            AtomKind::None => {}
        }
    }

    fn map(&mut self, value: &Value, atom: MapAtom<'_>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            let field = atom.field(name);
            self.path.push(PathElement::field(name.as_str()));
            self.value(value, field.unwrap_or(atom.element));
            let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            if empty || field.is_none() {
                self.set.insert(&self.path);
            }
            self.path.pop();
        }
    }

    fn list(&mut self, value: &Value, atom: ListAtom<'_>) {
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        let mut seen = BTreeSet::new();
        let mut twice = BTreeSet::new();
        for item in items {
            if let Ok(element) = atom.element_of(item)
                && !seen.insert(element.clone())
            {
                twice.insert(element);
            }
        }
        // Entries with the same key are owned as one.
        for item in items {
            let Ok(element) = atom.element_of(item) else { continue };
            let duplicate = twice.contains(&element);
            self.path.push(element);
            if !duplicate {
                self.value(item, atom.element);
            }
            self.set.insert(&self.path);
            self.path.pop();
        }
    }
}

/// Adds every declared field that has members below it, so that a struct is removed when all of its fields are.
/// Entries of maps and lists are unchanged.
pub fn with_named_parents(set: &Set, of: Type<'_>) -> Set {
    let atom = of.atom();
    let mut out = Set { members: set.members.clone(), children: Default::default() };
    for (element, below) in &set.children {
        let child = match (element, atom.map, atom.list) {
            (PathElement::Field(name), Some(map), _) => {
                if map.field(name).is_some() {
                    out.members.insert(element.clone());
                }
                map.child(name)
            }
            (PathElement::Key(_), _, Some(list)) => list.element,
            _ => Type(super::Source::Undeclared),
        };
        out.children.insert(element.clone(), with_named_parents(below, child));
    }
    out
}
