//! Field sets after a schema change: an owner of parts of what is now a leaf owns the leaf.

use super::{AtomKind, ListAtom, MapAtom, Type};
use crate::apply::fieldpath::{Path, PathElement, Set};

/// The set in terms of the current type; `None` if nothing changes. (As upstream, leaves that became divisible are
/// unchanged: their owner keeps the whole.)
pub fn reconcile(set: &Set, of: Type<'_>) -> Option<Set> {
    let mut walk = Reconcile { path: Vec::new(), leaves: None };
    walk.level(Some(set), of, false);
    // The root of a leaf is both removed with everything below it and added back.
    walk.leaves.map(|leaves| set.recursive_difference(&leaves).union(&leaves))
}

struct Reconcile<'s> {
    path: Vec<&'s PathElement>,
    leaves: Option<Set>,
}

impl<'s> Reconcile<'s> {
    /// The current path is a leaf now.
    fn leaf(&mut self) {
        let path: Path = self.path.iter().copied().cloned().collect();
        self.leaves.get_or_insert_default().insert(&path);
    }

    fn level(&mut self, set: Option<&'s Set>, of: Type<'_>, leaf: bool) {
        match of.atom().kind() {
            AtomKind::Map(atom) => self.map(set, atom, leaf),
            AtomKind::List(atom) => self.list(set, atom, leaf),
            AtomKind::Scalar(_) | AtomKind::None => {}
        }
    }

    fn map(&mut self, set: Option<&'s Set>, atom: MapAtom<'_>, leaf: bool) {
        if atom.element.is_deduced() && atom.declares_nothing() {
            return;
        }
        if !leaf && atom.atomic {
            if set.is_some_and(|set| !set.is_empty()) {
                self.leaf();
            }
            return;
        }
        let Some(set) = set else { return };
        for element in elements(set) {
            let of = match element {
                PathElement::Field(name) => atom.child(name),
                _ => atom.element,
            };
            if of.is_declared() {
                self.below(set, element, of);
            }
        }
    }

    fn list(&mut self, set: Option<&'s Set>, atom: ListAtom<'_>, leaf: bool) {
        if !leaf && !atom.associative {
            self.leaf();
            return;
        }
        let Some(set) = set else { return };
        for element in elements(set) {
            self.below(set, element, atom.element);
        }
    }

    fn below(&mut self, set: &'s Set, element: &'s PathElement, of: Type<'_>) {
        let children = set.children.get(element);
        let leaf = set.members.contains(element) && children.is_none();
        self.path.push(element);
        self.level(children, of, leaf);
        self.path.pop();
    }
}

fn elements(set: &Set) -> impl Iterator<Item = &PathElement> {
    let only_children = set.children.keys().filter(|element| !set.members.contains(element));
    only_children.chain(&set.members)
}
