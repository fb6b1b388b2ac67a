//! Merges a partial object into a complete one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::validate::scalar_error;
use super::{Atom, AtomKind, ListAtom, MapAtom, Type, TypedErrors};
use crate::apply::fieldpath::{Path, PathElement, PathText};

/// The first value with all leaves of the second. Where the second changes a list, its order wins. `None` when
/// nothing is left.
///
/// # Errors
/// When entries of a list have the same key, or neither value has the declared type somewhere.
pub fn merge(live: &Value, config: &Value, of: Type<'_>) -> Result<Option<Value>, TypedErrors> {
    let mut walk = Merge { path: Path::new(), errors: TypedErrors::default() };
    let out = walk.values(Some(live), Some(config), of);
    if walk.errors.is_empty() { Ok(out) } else { Err(walk.errors) }
}

struct Merge {
    path: Path,
    errors: TypedErrors,
}

impl Merge {
    fn values(&mut self, live: Option<&Value>, config: Option<&Value>, of: Type<'_>) -> Option<Value> {
        let atom = of.atom();
        let narrowed = |value: Option<&Value>| value.map_or(atom, |value| atom.for_value(value));
        let (left, right) = (narrowed(live), narrowed(config));
        match (live, config) {
            (Some(_), None) => self.atoms(live, config, left),
            (Some(_), Some(_)) if !left.same_kinds(&right) => {
                self.atoms(live, config, left);
                self.atoms(live, config, right)
            }
            _ => self.atoms(live, config, right),
        }
    }

    fn atoms(&mut self, live: Option<&Value>, config: Option<&Value>, atom: Atom<'_>) -> Option<Value> {
        let leaf = || config.or(live).cloned();
        match atom.kind() {
            AtomKind::Map(atom) => {
                let (left, right) = (live.and_then(Value::as_object), config.and_then(Value::as_object));
                if atom.atomic || (left.is_none_or(|m| m.is_empty()) && right.is_none_or(|m| m.is_empty())) {
                    return leaf();
                }
                self.map(left, right, atom)
            }
            AtomKind::List(atom) => {
                let list = |value| Option::and_then(value, Value::as_array).map_or(&[][..], Vec::as_slice);
                let (left, right): (&[Value], &[Value]) = (list(live), list(config));
                if !atom.associative || (left.is_empty() && right.is_empty()) {
                    return leaf();
                }
                self.list(left, right, atom)
            }
            AtomKind::Scalar(scalar) => {
                let error = |value: Option<&Value>| value.and_then(|value| scalar_error(scalar, value));
                if let (Some(left), Some(right)) = (error(live), error(config)) {
                    self.error(format!("lhs: {left}"));
                    self.error(format!("rhs: {right}"));
                    return None;
                }
                leaf()
            }
            AtomKind::None => {
                self.error("schema error: invalid atom: inlined".to_owned());
                None
            }
        }
    }

    fn error(&mut self, message: String) {
        self.errors.push(|| PathText(&self.path).to_string(), message);
    }

    fn map(
        &mut self,
        live: Option<&Map<String, Value>>,
        config: Option<&Map<String, Value>>,
        atom: MapAtom<'_>,
    ) -> Option<Value> {
        let mut out = Map::new();
        let names: BTreeSet<&String> =
            live.into_iter().flat_map(Map::keys).chain(config.into_iter().flat_map(Map::keys)).collect();
        for name in names {
            let (left, right) = (live.and_then(|m| m.get(name)), config.and_then(|m| m.get(name)));
            self.path.push(PathElement::field(name.as_str()));
            if let Some(value) = self.values(left, right, atom.child(name)) {
                out.insert(name.clone(), value);
            }
            self.path.pop();
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    /// Merges entry by entry. Common entries take the order of the configuration; other entries of the live list keep
    /// their position relative to their neighbours.
    fn list(&mut self, live: &[Value], config: &[Value], atom: ListAtom<'_>) -> Option<Value> {
        let before = self.errors.found();
        let right = self.index(config, atom, false);
        let left = self.index(live, atom, true);
        if self.errors.found() > before {
            return None;
        }
        let shared = |e: &&PathElement| left.by_element.contains_key(*e);
        let mut shared: VecDeque<&PathElement> = right.order.iter().map(|(e, _)| e).filter(shared).collect();
        let mut next_shared = shared.pop_front();
        let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
        let mut out = Vec::new();
        let (mut l, mut r) = (0, 0);
        while l < left.order.len() || r < right.order.len() {
            if let (Some((le, _)), Some((re, _))) = (left.order.get(l), right.order.get(r)) {
                if le == re {
                    merged.insert(re);
                    out.extend(self.entry(re, left.get(re), right.get(re), atom));
                    l += 1;
                    r += 1;
                    next_shared = shared.pop_front();
                    continue;
                }
                if right.by_element.contains_key(le) && next_shared.is_some_and(|next| next != le) {
                    // A common entry that comes later in the configuration.
                    l += 1;
                    continue;
                }
            }
            if let Some((le, item)) = left.order.get(l) {
                if !right.by_element.contains_key(le) {
                    out.extend(self.entry(le, Some(item), None, atom));
                    l += 1;
                    continue;
                }
                if merged.contains(le) {
                    l += 1;
                }
            }
            if let Some((re, _)) = right.order.get(r) {
                merged.insert(re);
                out.extend(self.entry(re, left.get(re), right.get(re), atom));
                r += 1;
                if next_shared == Some(re) {
                    next_shared = shared.pop_front();
                }
            }
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }

    /// One entry of a list. As upstream, errors inside are ignored.
    fn entry(
        &mut self,
        element: &PathElement,
        live: Option<&Value>,
        config: Option<&Value>,
        atom: ListAtom<'_>,
    ) -> Option<Value> {
        let before = self.errors.found();
        self.path.push(element.clone());
        let out = self.values(live, config, atom.element);
        self.path.pop();
        self.errors.truncate(before);
        out
    }

    fn index<'v>(&mut self, items: &'v [Value], atom: ListAtom<'_>, duplicates: bool) -> Entries<'v> {
        let mut entries = Entries { order: Vec::with_capacity(items.len()), by_element: BTreeMap::new() };
        for (i, item) in items.iter().enumerate() {
            let element = match atom.element_of(item) {
                Ok(element) => element,
                Err(why) => {
                    self.error(format!("element {i}: {why}"));
                    continue;
                }
            };
            let known = entries.by_element.contains_key(&element);
            if known && !duplicates {
                self.error(format!("duplicate entries for key {element}"));
                continue;
            }
            // A duplicated entry is not merged with a new one but replaced.
            entries.by_element.insert(element.clone(), if known { &Value::Null } else { item });
            entries.order.push((element, item));
        }
        entries
    }
}

struct Entries<'v> {
    order: Vec<(PathElement, &'v Value)>,
    by_element: BTreeMap<PathElement, &'v Value>,
}

impl Entries<'_> {
    fn get(&self, element: &PathElement) -> Option<&Value> {
        self.by_element.get(element).copied()
    }
}
