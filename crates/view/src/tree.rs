//! The parts of a cluster as a tree of owners.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Part, add_on};

/// A part and the parts that it owns.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    #[serde(flatten)]
    pub part: Part,
    /// In the order in which a cluster needs them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Tree>,
}

impl Tree {
    /// The tree below `root`, out of all objects of its namespace; `None` if the root is not among them. Templates and
    /// objects without a known owner are left out; an object with several owners is below its controller.
    pub fn below(root: &str, mut parts: Vec<Part>) -> Option<Self> {
        add_on::attach(&mut parts);
        let mut top = None;
        let known: BTreeSet<String> = parts.iter().map(|part| part.uid.clone()).collect();
        let names: BTreeSet<(String, String)> =
            parts.iter().map(|part| (part.kind.clone(), part.name.clone())).collect();
        let mut owned: BTreeMap<String, Vec<Part>> = BTreeMap::new();
        for mut part in parts {
            part.missing = part.needs.iter().filter(|needed| !names.contains(*needed)).cloned().collect();
            if part.uid == root {
                top = Some(part);
            } else if !part.kind.ends_with("Template")
                && let Some(owner) = part.owners.iter().find(|owner| known.contains(*owner)).cloned()
            {
                owned.entry(owner).or_default().push(part);
            }
        }
        Some(Self::grow(top?, &mut owned))
    }

    /// Whether all parts are healthy, the root's summary condition is true, and no operation is in progress.
    pub fn is_ready(&self) -> bool {
        let part = &self.part;
        part.summary().is_some_and(|summary| summary.is_true())
            && part.operation.as_ref().is_none_or(|operation| operation.is_over())
            && crate::why::with_problem(self).is_none()
    }

    /// All parts, parents before children.
    pub fn walk(&self) -> Box<dyn Iterator<Item = &Part> + '_> {
        Box::new(std::iter::once(&self.part).chain(self.children.iter().flat_map(Self::walk)))
    }

    /// Removes what it uses from `owned`, so that a cycle of owners ends.
    fn grow(part: Part, owned: &mut BTreeMap<String, Vec<Part>>) -> Self {
        let mut below = owned.remove(&part.uid).unwrap_or_default();
        let position = |child: &Part| {
            let needed =
                part.needs.iter().position(|(kind, name)| (kind, name) == (&child.kind, &child.name));
            needed.unwrap_or(part.needs.len())
        };
        below.sort_by(|a, b| {
            (position(a), &a.kind, a.created, &a.name).cmp(&(position(b), &b.kind, b.created, &b.name))
        });
        let children = below.into_iter().map(|child| Self::grow(child, owned)).collect();
        Self { part, children }
    }
}
