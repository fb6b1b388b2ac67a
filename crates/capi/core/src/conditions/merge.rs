//! Merges conditions: summaries of one object, aggregates of many.

use std::collections::BTreeMap;

use capstan_object::{Condition, ConditionStatus, Conditions, Time};
use jiff::Timestamp;

use super::shortened;

/// Status, reason and message of a condition, without type and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionState {
    pub status: ConditionStatus,
    pub reason: String,
    pub message: String,
}

impl ConditionState {
    pub fn new(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Self {
        Self { status, reason: reason.to_owned(), message: message.into() }
    }
}

/// How a condition counts in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Issue,
    Unknown,
    Info,
}

/// The priority of a condition; `negative` ones are good when False.
pub fn priority(condition: &Condition, negative: bool) -> Priority {
    match (condition.status, negative) {
        (ConditionStatus::Unknown, _) => Priority::Unknown,
        (ConditionStatus::True, false) | (ConditionStatus::False, true) => Priority::Info,
        _ => Priority::Issue,
    }
}

/// Reasons of a merged condition.
#[derive(Debug, Clone, Copy)]
pub struct Reasons {
    pub issue: &'static str,
    pub unknown: &'static str,
    pub fine: &'static str,
}

impl Reasons {
    fn of(self, worst: Priority) -> &'static str {
        match worst {
            Priority::Issue => self.issue,
            Priority::Unknown => self.unknown,
            Priority::Info => self.fine,
        }
    }
}

fn status(worst: Priority, negative: bool) -> ConditionStatus {
    match (worst, negative) {
        (Priority::Unknown, _) => ConditionStatus::Unknown,
        (Priority::Issue, false) | (Priority::Info, true) => ConditionStatus::False,
        _ => ConditionStatus::True,
    }
}

fn not_reported(kind: &str, message: String) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: ConditionStatus::Unknown,
        observed_generation: None,
        // Conditions that were never reported sort first.
        last_transition_time: Time::new(Timestamp::MIN),
        reason: "NotYetReported".to_owned(),
        message,
    }
}

/// An object whose condition is aggregated.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    /// Control plane machines are listed first.
    pub control_plane: bool,
    pub conditions: &'a [Condition],
}

/// Maximum number of messages, and of objects per message.
const SHOWN: usize = 3;

/// Aggregates one condition of many objects. Objects that lack it count as Unknown. `None` without objects.
pub fn aggregate(
    sources: &[Source<'_>],
    kind: &str,
    negative: bool,
    reasons: Reasons,
) -> Option<ConditionState> {
    let mut reported: Vec<(Source<'_>, Condition)> = sources
        .iter()
        .map(|source| {
            let condition = source.conditions.iter().find(|condition| condition.kind == kind).cloned();
            (
                *source,
                condition.unwrap_or_else(|| not_reported(kind, format!("Condition {kind} not yet reported"))),
            )
        })
        .collect();
    reported.sort_by_key(|(_, condition)| condition.last_transition_time);
    let worst = reported.iter().map(|(_, condition)| priority(condition, negative)).min()?;
    let fine = worst == Priority::Info;
    let shown = reported.iter().filter(|(_, condition)| {
        if fine { !condition.message.is_empty() } else { priority(condition, negative) != Priority::Info }
    });
    Some(ConditionState::new(status(worst, negative), reasons.of(worst), messages(shown, negative)))
}

/// Objects of one kind with the same message.
struct Group<'a> {
    message: &'a str,
    priority: Priority,
    control_plane: bool,
    names: Vec<(bool, &'a str)>,
}

fn messages<'a>(reported: impl Iterator<Item = &'a (Source<'a>, Condition)>, negative: bool) -> String {
    let mut kinds: BTreeMap<&str, BTreeMap<&str, Group<'_>>> = BTreeMap::new();
    for (source, condition) in reported {
        let found = priority(condition, negative);
        let group = kinds.entry(source.kind).or_default().entry(&condition.message).or_insert_with(|| {
            Group { message: &condition.message, priority: found, control_plane: false, names: Vec::new() }
        });
        group.priority = group.priority.min(found);
        group.control_plane |= source.control_plane;
        group.names.push((!source.control_plane, source.name));
    }
    let mut left = SHOWN;
    let mut lines = Vec::new();
    for (kind, groups) in kinds {
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.names.sort_unstable();
        }
        groups.sort_by_key(|group| {
            let names: Vec<_> = group.names.iter().map(|(_, name)| *name).collect();
            (!group.control_plane, group.priority, std::cmp::Reverse(names.len()), names.join(","))
        });
        let shown = groups.len().min(left);
        left -= shown;
        let (shown, rest) = groups.split_at(shown);
        lines.extend(shown.iter().map(|group| line(kind, group)));
        for (priority, words) in [
            (Priority::Issue, "with other issues"),
            (Priority::Unknown, "with status unknown"),
            (Priority::Info, "with additional info"),
        ] {
            let others: usize =
                rest.iter().filter(|group| group.priority == priority).map(|group| group.names.len()).sum();
            if others > 0 {
                lines.push(format!("And {others} {kind}{} {words}", if others == 1 { "" } else { "s" }));
            }
        }
    }
    lines.join("\n")
}

fn line(kind: &str, group: &Group<'_>) -> String {
    let names: Vec<_> = group.names.iter().map(|(_, name)| *name).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("* {kind}{plural} {}:{}", shortened(&names, SHOWN), indented(group.message))
}

/// Puts a message with several lines or bullets on separate lines below its subject.
fn indented(message: &str) -> String {
    let is_bullet =
        |line: &str| line.split_once('*').is_some_and(|(_, rest)| rest.starts_with(char::is_whitespace));
    if !message.contains('\n') && !is_bullet(message) {
        return format!(" {message}");
    }
    let mixed = !message.split('\n').all(is_bullet);
    let lines = message.split('\n').map(|line| {
        let prefix = match (mixed, is_bullet(line)) {
            (false, _) => "  ",
            (true, false) => "  * ",
            (true, true) => "    ",
        };
        format!("\n{prefix}{line}")
    });
    lines.collect()
}

/// Summarizes conditions of one object.
pub struct Summary<'a> {
    /// Types, most important first.
    pub types: &'a [&'a str],
    /// Types that may be missing.
    pub optional: &'a [&'a str],
    /// Replacements for conditions of the object.
    pub overrides: &'a [Condition],
    /// How a condition counts in a merge.
    pub priority: &'a dyn Fn(&Condition) -> Priority,
    pub reasons: Reasons,
}

impl Summary<'_> {
    /// The summary, and its message as lines.
    pub fn lines(&self, conditions: &[Condition]) -> (ConditionState, Vec<String>) {
        let own = conditions.to_vec();
        let chosen: Vec<Condition> = self
            .types
            .iter()
            .filter_map(|kind| {
                let reported = self.overrides.iter().find(|condition| condition.kind == *kind);
                let reported = reported.or_else(|| own.condition(kind)).cloned();
                let needed = !self.optional.contains(kind);
                reported
                    .or_else(|| needed.then(|| not_reported(kind, "Condition not yet reported".to_owned())))
            })
            .collect();
        let worst = chosen.iter().map(|condition| (self.priority)(condition)).min().unwrap_or(Priority::Info);
        let shown = chosen.iter().filter(|condition| match (self.priority)(condition) {
            Priority::Info => worst == Priority::Info && !condition.message.is_empty(),
            _ => true,
        });
        let lines = shown.map(|condition| {
            let reported = if condition.message.is_empty() {
                format!(" {}", condition.reason)
            } else {
                indented(&condition.message)
            };
            format!("* {}:{reported}", condition.kind)
        });
        let lines: Vec<String> = lines.collect();
        (ConditionState::new(status(worst, false), self.reasons.of(worst), lines.join("\n")), lines)
    }

    pub fn of(&self, conditions: &[Condition]) -> ConditionState {
        self.lines(conditions).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: Reasons = Reasons { issue: "NotReady", unknown: "ReadyUnknown", fine: "Ready" };

    fn condition(kind: &str, status: ConditionStatus, message: &str) -> Condition {
        Condition { status, reason: "Why".to_owned(), ..not_reported(kind, message.to_owned()) }
    }

    #[test]
    fn kinds_are_grouped_and_true_is_an_issue_with_negative_polarity() {
        use ConditionStatus::{False, True};
        let rolling = |status, message| vec![condition("RollingOut", status, message)];
        let (plane, one, two) =
            (rolling(True, "3 not up to date"), rolling(False, ""), rolling(True, "x\ny"));
        let source = |kind, name, conditions| Source { kind, name, control_plane: false, conditions };
        let sources = [
            source("KubeadmControlPlane", "cp", &plane[..]),
            source("MachineDeployment", "a", &one),
            source("MachineDeployment", "b", &two),
        ];
        let state = aggregate(&sources, "RollingOut", true, REASONS);
        let message = "* KubeadmControlPlane cp: 3 not up to date\n* MachineDeployment b:\n  * x\n  * y";
        assert_eq!(state, Some(ConditionState::new(True, "NotReady", message)));
        assert_eq!(
            aggregate(&sources[1..2], "RollingOut", true, REASONS),
            Some(ConditionState::new(False, "Ready", ""))
        );
        assert_eq!(aggregate(&[], "RollingOut", true, REASONS), None);
    }

    #[test]
    fn control_plane_machines_are_listed_first_and_the_rest_is_counted() {
        let reported: Vec<_> =
            ["1", "2", "3", "4"].map(|text| vec![condition("Ready", ConditionStatus::False, text)]).into();
        let names = ["w1", "w2", "w3", "cp"];
        let sources: Vec<_> = names
            .iter()
            .zip(&reported)
            .map(|(name, conditions)| Source {
                kind: "Machine",
                name,
                control_plane: *name == "cp",
                conditions,
            })
            .collect();
        let state = aggregate(&sources, "Ready", false, REASONS).expect("a result");
        assert_eq!(
            state.message,
            "* Machine cp: 4\n* Machine w1: 1\n* Machine w2: 2\nAnd 1 Machine with other issues"
        );
    }

    #[test]
    fn a_summary_lists_issues_and_unknowns_or_info_messages() {
        use ConditionStatus::{False, True, Unknown};
        for (conditions, expected) in [
            (
                vec![condition("A", True, ""), condition("B", True, "")],
                ConditionState::new(True, "Ready", ""),
            ),
            (
                vec![condition("A", True, "hm"), condition("B", True, "")],
                ConditionState::new(True, "Ready", "* A: hm"),
            ),
            (
                vec![condition("A", True, "hm"), condition("B", False, "")],
                ConditionState::new(False, "NotReady", "* B: Why"),
            ),
            (
                vec![condition("A", True, "hm")],
                ConditionState::new(Unknown, "ReadyUnknown", "* B: Condition not yet reported"),
            ),
            (
                vec![
                    condition("B", Unknown, "who"),
                    condition("A", False, "* x: 1"),
                    condition("C", False, "not asked"),
                ],
                ConditionState::new(False, "NotReady", "* A:\n  * x: 1\n* B: who"),
            ),
        ] {
            let summary = Summary {
                types: &["A", "B", "D"],
                optional: &["D"],
                overrides: &[],
                priority: &|condition| priority(condition, false),
                reasons: REASONS,
            };
            assert_eq!(summary.of(&conditions), expected, "{conditions:?}");
        }
    }
}
