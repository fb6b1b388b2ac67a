//! The parts of a cluster, each below its owner.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::Part;

/// A part and what belongs to it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The part.
    #[serde(flatten)]
    pub part: Part,
    /// What belongs to it, what is needed first first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Tree>,
}

impl Tree {
    /// The tree below `root`, out of all objects of its namespace; `None` if the root is not among them. Templates and
    /// what no owner leads to are left out; an object that several own is shown below the one that controls it.
    pub fn below(root: &str, parts: Vec<Part>) -> Option<Self> {
        let mut top = None;
        let known: BTreeSet<String> = parts.iter().map(|part| part.uid.clone()).collect();
        let mut owned: BTreeMap<String, Vec<Part>> = BTreeMap::new();
        for part in parts {
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

    /// Whether it is as wanted in all its parts, says so, and nothing is being done about it.
    pub fn is_as_wanted(&self) -> bool {
        let part = &self.part;
        part.summary().is_some_and(|summary| summary.is_true())
            && part.operation.as_ref().is_none_or(|operation| operation.is_over())
            && crate::why(self).is_none()
    }

    /// Its parts from the top down.
    pub fn walk(&self) -> Box<dyn Iterator<Item = &Part> + '_> {
        Box::new(std::iter::once(&self.part).chain(self.children.iter().flat_map(Self::walk)))
    }

    /// Takes what it shows out of `owned`, so that owners in a circle end.
    fn grow(part: Part, owned: &mut BTreeMap<String, Vec<Part>>) -> Self {
        let mut below = owned.remove(&part.uid).unwrap_or_default();
        let place = |child: &Part| {
            let needed =
                part.needs.iter().position(|(kind, name)| (kind, name) == (&child.kind, &child.name));
            needed.unwrap_or(part.needs.len())
        };
        below.sort_by(|a, b| {
            (place(a), &a.kind, a.created, &a.name).cmp(&(place(b), &b.kind, b.created, &b.name))
        });
        let children = below.into_iter().map(|child| Self::grow(child, owned)).collect();
        Self { part, children }
    }
}
