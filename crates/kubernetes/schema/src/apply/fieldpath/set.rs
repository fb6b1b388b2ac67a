//! Sets of paths.

use std::collections::{BTreeMap, BTreeSet};

use super::{Path, PathElement};

/// A set of paths, stored as a tree. Membership of a path is independent of its parents and children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    pub(crate) members: BTreeSet<PathElement>,
    pub(crate) children: BTreeMap<PathElement, Set>,
}

impl Set {
    /// The empty set.
    pub const fn new() -> Self {
        Self { members: BTreeSet::new(), children: BTreeMap::new() }
    }

    /// The set of these field paths, each given as field names.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Path = path.iter().map(|name| PathElement::field(*name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds a path. The path of the whole object is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut set = self;
        for element in parents {
            set = set.children.entry(element.clone()).or_default();
        }
        set.members.insert(last.clone());
    }

    /// Whether a path is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut set = self;
        for element in parents {
            match set.children.get(element) {
                Some(child) => set = child,
                None => return false,
            }
        }
        set.members.contains(last)
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// Number of paths in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
    }

    /// The members below an element, without the element.
    pub fn below(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element).filter(|set| !set.is_empty())
    }

    /// Paths in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.extend(other);
        out
    }

    fn extend(&mut self, other: &Self) {
        self.members.extend(other.members.iter().cloned());
        for (element, set) in &other.children {
            self.children.entry(element.clone()).or_default().extend(set);
        }
    }

    /// Paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, set)| {
            let both = set.intersection(other.children.get(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self { members, children: children.collect() }
    }

    /// Paths in this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, set)| {
            let rest = match other.children.get(element) {
                Some(theirs) => set.difference(theirs),
                None => return Some((element.clone(), set.clone())),
            };
            (!rest.is_empty()).then(|| (element.clone(), rest))
        });
        Self { members, children: children.collect() }
    }

    /// Paths in this set that are neither in the other nor below a path of the other.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter(|(element, _)| !other.members.contains(element));
        let children = children.filter_map(|(element, set)| {
            let rest = match other.children.get(element) {
                Some(theirs) => set.recursive_difference(theirs),
                None => return Some((element.clone(), set.clone())),
            };
            (!rest.is_empty()).then(|| (element.clone(), rest))
        });
        Self { members, children: children.collect() }
    }

    /// The members that have no members below them.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let members = self.members.iter().filter(|m| !self.children.contains_key(m)).cloned().collect();
        Self { members, children: self.children.iter().map(|(e, s)| (e.clone(), s.leaves())).collect() }
    }

    /// All members: those of a level before those below it, each level sorted.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Path, out: &mut Vec<Path>) {
        for member in &self.members {
            prefix.push(member.clone());
            out.push(prefix.clone());
            prefix.pop();
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.collect(prefix, out);
            prefix.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::fieldpath::PathText;

    fn fields(paths: &[&str]) -> Set {
        let mut set = Set::new();
        for path in paths {
            set.insert(&path.split('.').map(PathElement::field).collect::<Path>());
        }
        set
    }

    fn texts(set: &Set) -> Vec<String> {
        set.paths().iter().map(|p| PathText(p).to_string()).collect()
    }

    #[test]
    fn a_difference_keeps_children_and_a_recursive_one_does_not() {
        let set = fields(&["a", "a.b", "a.b.c", "d.e"]);
        let other = fields(&["a.b", "d"]);
        assert_eq!(texts(&set.difference(&other)), [".a", ".a.b.c", ".d.e"]);
        assert_eq!(texts(&set.recursive_difference(&other)), [".a"]);
    }

    #[test]
    fn unions_intersections_and_leaves_work_by_path() {
        let (a, b) = (fields(&["a", "a.b", "c.d"]), fields(&["a.b", "c", "c.e"]));
        assert_eq!(texts(&a.union(&b)), [".a", ".c", ".a.b", ".c.d", ".c.e"]);
        assert_eq!(texts(&a.intersection(&b)), [".a.b"]);
        assert_eq!(texts(&a.leaves()), [".a.b", ".c.d"]);
        assert!(a.has(&[PathElement::field("a")]) && !b.has(&[PathElement::field("a")]));
        assert_eq!(a.len(), 3);
    }
}
