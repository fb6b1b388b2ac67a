//! Why a cluster is not ready: every part that blocks it, each with the chain of causes that leads there.

use std::collections::BTreeSet;

use capstan_controller::catalogue::WORKLOAD_UNREACHABLE;
use capstan_object::{Condition, Time};
use jiff::Timestamp;
use serde::Serialize;

use crate::part::{blocked, code};
use crate::{Advice, Part, Problem, State, Tree, advice};

/// One link of a chain: a part and the condition that explains its state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// `Kind/name`.
    pub part: String,
    /// Type of the condition.
    pub condition: String,
    pub reason: String,
    pub message: String,
    pub since: Option<Time>,
}

/// A part that blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// `Kind/name`.
    pub part: String,
    pub problem: Problem,
    /// Where the workload cluster does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// It is being deleted.
    #[serde(rename = "going", skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Somebody has to act; otherwise it only waits.
    pub failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// The command that takes back the upgrade which it blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The last line on the console of the machine, of one that starts or whose node has not joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console: Option<String>,
}

/// A cause, with the chain that leads to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// From the root of the tree down to the cause.
    pub chain: Vec<Link>,
    pub cause: Cause,
    /// `Kind/name` of other parts with the same problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// All blockers of a tree, of which there is at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The one to fix first.
    #[serde(flatten)]
    pub first: Blocker,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Blocker>,
}

impl Why {
    pub fn blockers(&self) -> impl Iterator<Item = &Blocker> {
        std::iter::once(&self.first).chain(&self.others)
    }

    pub fn blockers_mut(&mut self) -> impl Iterator<Item = &mut Blocker> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

impl Blocker {
    /// Since when the cause is in this state.
    pub fn since(&self) -> Option<Time> {
        self.chain.last().and_then(|link| link.since)
    }
}

/// Finds what blocks a tree; `None` if all its parts are healthy. The tree's root can be healthy nevertheless, such as a
/// cluster whose cloud does not answer.
///
/// If any part failed or needs somebody to act, those parts are the blockers. Otherwise it is the one part that the others
/// wait for.
pub fn why(tree: &Tree, now: Timestamp) -> Option<Why> {
    let mut found = Vec::new();
    collect(with_problem(tree)?, now, &mut Vec::new(), &mut found);
    let mut blockers = grouped(found);
    blockers.sort_by_key(|blocker| blocker.cause.problem.rank());
    let mut blockers = blockers.into_iter();
    Some(Why { first: blockers.next()?, others: blockers.collect() })
}

fn collect<'a>(tree: &'a Tree, now: Timestamp, path: &mut Vec<&'a Part>, found: &mut Vec<Blocker>) {
    path.push(&tree.part);
    let before = found.len();
    // Nothing below a paused part is reconciled either.
    if tree.part.state() != State::Paused {
        let in_deletion = in_deletion(path);
        for child in tree.children.iter().filter(|child| has_blocker(child, in_deletion, now)) {
            collect(child, now, path, found);
        }
        if found.len() == before
            && !blocks(tree, in_deletion, now)
            && let Some(child) = explaining_child(tree)
        {
            collect(child, now, path, found);
        }
    }
    if found.len() == before || is_own_problem(tree, now, &found[before..]) {
        found.push(blocker(path, &tree.part, now));
    }
    path.pop();
}

/// Whether a part has a problem that `below` does not explain. Parents repeat the codes and messages of their children.
fn is_own_problem(tree: &Tree, now: Timestamp, below: &[Blocker]) -> bool {
    let part = &tree.part;
    if part.not_settled().is_some() {
        return true;
    }
    match Problem::of(part, false, now) {
        Problem::Unreachable | Problem::DoesNotExist | Problem::TopologyFailed | Problem::HookBlocks => true,
        Problem::Failed => {
            let condition = part.explaining_condition().filter(|it| !repeats_a_child(tree, it, below));
            let own = condition.and_then(code);
            condition.is_some_and(blocked)
                || own.is_some_and(|own| {
                    below.iter().all(|it| it.cause.code.as_deref() != Some(own)) && !is_of_deleted(tree, own)
                })
        }
        _ => false,
    }
}

/// Whether a condition only aggregates what a child says that is listed in `below`.
fn repeats_a_child(tree: &Tree, condition: &Condition, below: &[Blocker]) -> bool {
    let words = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "*").collect();
        words.join(" ")
    };
    let message = words(&condition.message);
    let listed = |child: &&Tree| {
        let title = child.part.title();
        below.iter().any(|blocker| blocker.chain.iter().any(|link| link.part == title))
    };
    let says = |child: &Tree| {
        let messages = child.part.conditions.iter().map(|it| words(&it.message));
        messages.into_iter().any(|text| !text.is_empty() && message.contains(&text))
    };
    tree.children.iter().filter(listed).any(says)
}

/// Whether a part of a path is being deleted.
fn in_deletion(path: &[&Part]) -> bool {
    path.iter().any(|part| part.deleted.is_some())
}

/// Whether somebody has to act on this part itself. `in_deletion`: a parent is being deleted.
fn blocks(tree: &Tree, in_deletion: bool, now: Timestamp) -> bool {
    let own_code = || tree.part.explaining_condition().and_then(code);
    match Problem::of(&tree.part, in_deletion, now) {
        Problem::Deleting => own_code().is_some(),
        Problem::Failed => own_code().is_none_or(|code| !is_of_deleted(tree, code)),
        problem => problem.needs_action(),
    }
}

/// Whether a code comes from a child that is being deleted, or from below it.
fn is_of_deleted(tree: &Tree, own: &str) -> bool {
    let reported = |part: &Part| part.conditions.iter().any(|it| code(it) == Some(own));
    tree.children.iter().any(|child| match child.part.deleted {
        Some(_) => child.walk().any(reported),
        None => is_of_deleted(child, own),
    })
}

fn has_blocker(tree: &Tree, in_deletion: bool, now: Timestamp) -> bool {
    let deletes = in_deletion || tree.part.deleted.is_some();
    let below = || tree.children.iter().any(|child| has_blocker(child, deletes, now));
    blocks(tree, in_deletion, now) || (tree.part.state() != State::Paused && below())
}

/// Merges blockers that differ only in the part: the same problem of parts of one kind.
fn grouped(found: Vec<Blocker>) -> Vec<Blocker> {
    let mut groups: Vec<(Key, Blocker)> = Vec::new();
    for blocker in found {
        let key = Key::of(&blocker);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, group)) => group.also.push(blocker.cause.part),
            None => groups.push((key, blocker)),
        }
    }
    groups.into_iter().map(|(_, blocker)| blocker).collect()
}

#[derive(PartialEq)]
struct Key {
    kind: String,
    problem: Problem,
    code: Option<String>,
    /// Without the names of the parts of the chain.
    message: BTreeSet<String>,
}

impl Key {
    fn of(blocker: &Blocker) -> Self {
        let cause = &blocker.cause;
        let kind = cause.part.split('/').next().unwrap_or_default().to_owned();
        let message = match (cause.problem, blocker.chain.last()) {
            (Problem::Failed | Problem::Waiting | Problem::DoesNotExist, Some(link)) => {
                let names: Vec<&str> = blocker
                    .chain
                    .iter()
                    .filter_map(|link| link.part.split_once('/'))
                    .map(|it| it.1)
                    .collect();
                let words = link.message.split_whitespace();
                words
                    .filter(|word| !names.iter().any(|name| word.contains(name)))
                    .map(str::to_owned)
                    .collect()
            }
            _ => BTreeSet::new(),
        };
        Self { kind, problem: cause.problem, code: cause.code.clone(), message }
    }
}

/// The blocker at the end of a path from the root, which is `part`.
fn blocker(path: &[&Part], part: &Part, now: Timestamp) -> Blocker {
    let mut chain: Vec<Link> = path.iter().map(|part| link(part)).collect();
    let problem = Problem::of(part, in_deletion(path), now);
    let own_code = part.explaining_condition().and_then(code).map(str::to_owned);
    let code = match problem {
        Problem::Unreachable => Some(WORKLOAD_UNREACHABLE.id().to_owned()),
        // It failed before its parent was deleted, and its fix would change what is kept.
        Problem::StillExists => None,
        _ => own_code.clone(),
    };
    if problem == Problem::StillExists
        && own_code.is_some()
        && let Some(last) = chain.last_mut()
    {
        let message = "the controller of its parent has not deleted it yet".to_owned();
        *last = Link { part: part.title(), message, ..Link::default() };
    }
    let failed = code.is_some() || problem == Problem::Failed || problem.needs_action();
    let message = chain.last().map(|link| link.message.clone()).unwrap_or_default();
    let advice = advice::of(problem, path, &message).filter(|_| code.is_none() || problem != Problem::Failed);
    let mut title = part.title();
    if problem == Problem::DoesNotExist
        && let Some((kind, name)) = part.missing.first()
    {
        title = format!("{kind}/{name}");
        let message = format!("{} refers to it", part.title());
        chain.push(Link { part: title.clone(), message, ..Link::default() });
    }
    Blocker {
        cause: Cause {
            part: title,
            problem,
            endpoint: part.endpoint.clone().filter(|_| problem == Problem::Unreachable),
            deleting: part.deleted.is_some(),
            code,
            failed,
            advice,
            undo: None,
            console: None,
        },
        chain,
        also: Vec::new(),
    }
}

/// The tree, if anything in it is not healthy.
pub(crate) fn with_problem(tree: &Tree) -> Option<&Tree> {
    let found = !is_healthy(&tree.part) || tree.children.iter().any(|child| with_problem(child).is_some());
    found.then_some(tree)
}

fn is_healthy(part: &Part) -> bool {
    matches!(part.state(), State::Healthy | State::NoConditions) && part.silent_cloud().is_none()
}

/// The child that explains the state of its parent, in the order in which a cluster needs them. A part that is being
/// deleted is explained by what is left below it, unless none of that is being deleted yet and the part itself says why.
fn explaining_child(tree: &Tree) -> Option<&Tree> {
    let has_message = tree.part.explaining_condition().is_some_and(|it| !it.message.is_empty());
    let children_deleting = tree.children.iter().any(|child| child.part.deleted.is_some());
    let candidates = tree.children.iter().filter(|child| match tree.part.deleted {
        Some(_) => children_deleting || !has_message,
        None => with_problem(child).is_some(),
    });
    candidates
        .enumerate()
        .min_by_key(|(position, child)| (is_healthy(&child.part), *position))
        .map(|(_, child)| child)
}

fn link(part: &Part) -> Link {
    let condition: Option<&Condition> = part.explaining_condition();
    Link {
        part: part.title(),
        condition: condition.map(|it| it.kind.clone()).unwrap_or_default(),
        reason: condition.map(|it| it.reason.clone()).unwrap_or_default(),
        message: match condition {
            Some(condition) => condition.message.clone(),
            None if part.deleted.is_some() => {
                format!("waits for finalizers: {}", part.finalizers.join(", "))
            }
            None if part.unobserved => "its controller has not observed the last change yet".to_owned(),
            None => String::new(),
        },
        since: condition.map(|it| it.last_transition_time).or(part.deleted),
    }
}
