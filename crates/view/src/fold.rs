//! Folding: healthy siblings become one row, and what lies below something healthy is not shown.

use crate::{Part, Standing, Tree};

/// One row of the picture.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// How deep it stands.
    pub depth: usize,
    /// For each level above it, whether more siblings follow there; its own level last.
    pub more: Vec<bool>,
    /// The parts it stands for: one, or healthy siblings of one kind.
    pub parts: Vec<&'a Part>,
}

/// Rows of a tree from the top down; with `all`, nothing is folded.
pub fn rows(tree: &Tree, all: bool) -> Vec<Row<'_>> {
    let mut rows = vec![Row { depth: 0, more: Vec::new(), parts: vec![&tree.part] }];
    descend(tree, all, &[], &mut rows);
    rows
}

fn descend<'a>(tree: &'a Tree, all: bool, above: &[bool], rows: &mut Vec<Row<'a>>) {
    let groups = groups(tree, all);
    let count = groups.len();
    for (n, group) in groups.into_iter().enumerate() {
        let more: Vec<bool> = above.iter().copied().chain([n + 1 < count]).collect();
        let parts = group.iter().map(|child| &child.part).collect();
        rows.push(Row { depth: more.len(), more: more.clone(), parts });
        if let [child] = group.as_slice()
            && (all || !healthy(child))
        {
            descend(child, all, &more, rows);
        }
    }
}

/// Healthy children of a kind together, where the first of them stands; others alone.
fn groups(tree: &Tree, all: bool) -> Vec<Vec<&Tree>> {
    let mut groups: Vec<Vec<&Tree>> = Vec::new();
    for child in &tree.children {
        let fits = |group: &&mut Vec<&Tree>| group[0].part.kind == child.part.kind && healthy(group[0]);
        let joined = if all || !healthy(child) { None } else { groups.iter_mut().find(fits) };
        match joined {
            Some(group) => group.push(child),
            None => groups.push(vec![child]),
        }
    }
    groups
}

/// Whether a part and all below it do well.
fn healthy(tree: &Tree) -> bool {
    matches!(tree.part.standing(), Standing::Well | Standing::Silent) && tree.children.iter().all(healthy)
}
