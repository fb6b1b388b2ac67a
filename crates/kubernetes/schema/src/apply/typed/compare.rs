//! Differences between two values, as sets of paths.

use std::collections::BTreeMap;

use serde_json::Value;

use super::validate::scalar_error;
use super::{Atom, AtomKind, ListAtom, MapAtom, Scalar, Type, TypedErrors};
use crate::apply::fieldpath::{Path, PathElement, PathText, Set, value};

/// The differences. No path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Paths only the first value has.
    pub removed: Set,
    /// Paths both values have, with different values.
    pub modified: Set,
    /// Paths only the second value has.
    pub added: Set,
}

impl Comparison {
    /// The comparison without the fields of a set and all below them.
    #[must_use]
    pub fn excluding(self, fields: &Set) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

/// Compares two values of one type.
///
/// # Errors
/// When the values differ at a place where neither has the declared type.
pub fn compare(old: &Value, new: &Value, of: Type<'_>) -> Result<Comparison, TypedErrors> {
    let mut walk = Compare { path: Path::new(), out: Comparison::default(), errors: TypedErrors::default() };
    walk.values(Some(old), Some(new), of);
    if walk.errors.is_empty() { Ok(walk.out) } else { Err(walk.errors) }
}

struct Compare {
    path: Path,
    out: Comparison,
    errors: TypedErrors,
}

impl Compare {
    fn values(&mut self, old: Option<&Value>, new: Option<&Value>, of: Type<'_>) {
        let atom = of.atom();
        let narrowed = |value: Option<&Value>| value.map_or(atom, |value| atom.for_value(value));
        let (left, right) = (narrowed(old), narrowed(new));
        let leaf = match (old, new) {
            (Some(_), None) => self.atoms(old, new, left),
            (Some(_), Some(_)) if !left.same_kinds(&right) => {
                self.atoms(old, new, left);
                self.atoms(old, new, right)
            }
            _ => self.atoms(old, new, right),
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.out.added.insert(&self.path),
                (_, None) => self.out.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares as one kind. Returns whether the values were compared as a leaf.
    fn atoms(&mut self, old: Option<&Value>, new: Option<&Value>, atom: Atom<'_>) -> bool {
        match atom.kind() {
            AtomKind::Map(atom) => {
                let (left, right) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let empty = left.is_none_or(|m| m.is_empty()) && right.is_none_or(|m| m.is_empty());
                // Two empty objects are a leaf, which distinguishes absent, null and empty.
                if atom.atomic || empty {
                    self.leaf(old, new);
                    return true;
                }
                self.map(left, right, atom);
                false
            }
            AtomKind::List(atom) => {
                let items = |value: Option<&'_ Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
                if !atom.associative || (items(old) == 0 && items(new) == 0) {
                    self.leaf(old, new);
                    return true;
                }
                let list = |value| Option::and_then(value, Value::as_array).map_or(&[][..], Vec::as_slice);
                self.list(list(old), list(new), atom);
                false
            }
            AtomKind::Scalar(scalar) => self.scalar(old, new, scalar),
            AtomKind::None => {
                self.error("schema error: invalid atom: inlined".to_owned());
                false
            }
        }
    }

    fn error(&mut self, message: String) {
        self.errors.push(|| PathText(&self.path).to_string(), message);
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(old), Some(new)) if !value::equal(old, new) => self.out.modified.insert(&self.path),
            _ => {}
        }
    }

    fn scalar(&mut self, old: Option<&Value>, new: Option<&Value>, scalar: Scalar) -> bool {
        let error = |value: Option<&Value>| value.and_then(|value| scalar_error(scalar, value));
        if let (Some(left), Some(right)) = (error(old), error(new)) {
            self.error(format!("lhs: {left}"));
            self.error(format!("rhs: {right}"));
            return false;
        }
        self.leaf(old, new);
        true
    }

    fn below(&mut self, element: PathElement, old: Option<&Value>, new: Option<&Value>, of: Type<'_>) {
        self.path.push(element);
        self.values(old, new, of);
        self.path.pop();
    }

    fn map(
        &mut self,
        old: Option<&serde_json::Map<String, Value>>,
        new: Option<&serde_json::Map<String, Value>>,
        atom: MapAtom<'_>,
    ) {
        for (name, left) in old.into_iter().flatten() {
            let right = new.and_then(|new| new.get(name));
            // Equal parts, which are most of an object, are skipped.
            if right == Some(left) {
                continue;
            }
            self.below(PathElement::field(name.as_str()), Some(left), right, atom.child(name));
        }
        for (name, right) in new.into_iter().flatten() {
            if old.is_none_or(|old| !old.contains_key(name)) {
                self.below(PathElement::field(name.as_str()), None, Some(right), atom.child(name));
            }
        }
    }

    fn list(&mut self, old: &[Value], new: &[Value], atom: ListAtom<'_>) {
        let mut entries: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for (i, item) in items.iter().enumerate() {
                match atom.element_of(item) {
                    Ok(element) => {
                        let (left, right) = entries.entry(element).or_default();
                        if side == 0 { left.push(item) } else { right.push(item) }
                    }
                    Err(why) => self.error(format!("element {i}: {why}")),
                }
            }
        }
        for (element, (left, right)) in entries {
            match (left.as_slice(), right.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.below(element, left.first().copied(), right.first().copied(), atom.element);
                }
                // Entries with the same key count as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let same =
                        left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| value::equal(a, b));
                    if !same {
                        self.mark(element, |out| &mut out.modified);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(one) = right.first() {
                        self.below(element.clone(), None, Some(one), atom.element);
                    }
                    self.mark(element, |out| &mut out.removed);
                }
                (_, [_, _, ..]) => {
                    if let Some(one) = left.first() {
                        self.below(element.clone(), Some(one), None, atom.element);
                    }
                    self.mark(element, |out| &mut out.added);
                }
            }
        }
    }

    fn mark(&mut self, element: PathElement, set: impl Fn(&mut Comparison) -> &mut Set) {
        self.path.push(element);
        set(&mut self.out).insert(&self.path);
        self.path.pop();
    }
}
