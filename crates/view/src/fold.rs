//! Folding: healthy siblings become one row, and what lies below something healthy is not shown. Of siblings that are
//! not as wanted in the same words, the first is opened and the others become one row.

use crate::{Part, Standing, Tree};

/// One row of the picture.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// How deep it stands.
    pub depth: usize,
    /// For each level above it, whether more siblings follow there; its own level last.
    pub more: Vec<bool>,
    /// The parts it stands for: one, or siblings of one kind that do well, or that all say the same.
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

/// Healthy children of a kind together, where the first of them stands. Of others that say the same, the first stands
/// alone and the rest together.
fn groups(tree: &Tree, all: bool) -> Vec<Vec<&Tree>> {
    let mut groups: Vec<Vec<&Tree>> = Vec::new();
    for child in &tree.children {
        let alike: Vec<usize> =
            (0..groups.len()).filter(|at| !all && says_the_same(groups[*at][0], child)).collect();
        match alike.as_slice() {
            [one] if healthy(child) => groups[*one].push(child),
            [_, rest] => groups[*rest].push(child),
            _ => groups.push(vec![child]),
        }
    }
    groups
}

/// Whether two siblings of a kind do well, or have the same trouble.
fn says_the_same(one: &Tree, other: &Tree) -> bool {
    if one.part.kind != other.part.kind || healthy(one) != healthy(other) {
        return false;
    }
    let words = |tree: &Tree| {
        let says = tree.part.complaint()?;
        // Of what the same thing is said, each by its own name.
        let message = says.message.replace(&tree.part.name, "");
        (!message.is_empty()).then(|| (tree.part.standing(), says.kind.clone(), message))
    };
    healthy(one) || words(one).is_some_and(|said| Some(said) == words(other))
}

/// Whether a part and all below it do well.
fn healthy(tree: &Tree) -> bool {
    matches!(tree.part.standing(), Standing::Well | Standing::Silent) && tree.children.iter().all(healthy)
}
