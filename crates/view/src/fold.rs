//! Collapsing: healthy siblings share one row, and nothing is shown below a healthy part. Of siblings with the same
//! problem, the first is expanded and the others share one row.

use crate::{Part, State, Tree};

/// One row of the drawn tree.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    pub depth: usize,
    /// For each level above it, whether more siblings follow there; its own level last.
    pub more: Vec<bool>,
    /// One part, or several siblings of one kind that are healthy or have the same problem.
    pub parts: Vec<&'a Part>,
}

/// Rows of a tree from the top down; with `all`, nothing is collapsed.
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

/// Groups children into rows: healthy ones of a kind together; of those with the same problem, the first alone and the
/// rest together.
fn groups(tree: &Tree, all: bool) -> Vec<Vec<&Tree>> {
    let mut groups: Vec<Vec<&Tree>> = Vec::new();
    for child in &tree.children {
        let alike: Vec<usize> =
            (0..groups.len()).filter(|at| !all && have_same_problem(groups[*at][0], child)).collect();
        match alike.as_slice() {
            [one] if healthy(child) => groups[*one].push(child),
            [_, rest] => groups[*rest].push(child),
            _ => groups.push(vec![child]),
        }
    }
    groups
}

/// Whether two siblings of a kind are both healthy, or have the same problem.
fn have_same_problem(one: &Tree, other: &Tree) -> bool {
    if one.part.kind != other.part.kind || healthy(one) != healthy(other) {
        return false;
    }
    let problem = |tree: &Tree| {
        let condition = tree.part.explaining_condition()?;
        // Messages often contain the name of their object, and ids of the cloud.
        let message = without_ids(&condition.message.replace(&tree.part.name, ""));
        (!message.is_empty()).then(|| (tree.part.state(), condition.kind.clone(), message))
    };
    healthy(one) || problem(one).is_some_and(|problem_of_one| Some(problem_of_one) == problem(other))
}

/// The words of a text that are no UUID.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_hexdigit());
        word.len() == 36 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
    };
    text.split_whitespace().filter(|word| !is_id(word)).collect::<Vec<_>>().join(" ")
}

/// Whether a part and everything below it is healthy.
fn healthy(tree: &Tree) -> bool {
    matches!(tree.part.state(), State::Healthy | State::NoConditions) && tree.children.iter().all(healthy)
}

#[cfg(test)]
mod tests {
    use super::without_ids;

    #[test]
    fn ids_of_the_cloud_do_not_make_a_problem_another_one() {
        let waiting = "Waiting for CloudStack (job 0f2dc157-99cf-4fb1-8dde-3b67d568d727) to start";
        assert_eq!(without_ids(waiting), "Waiting for CloudStack (job to start");
        assert_eq!(without_ids("no id: decade-facade"), "no id: decade-facade");
    }
}
