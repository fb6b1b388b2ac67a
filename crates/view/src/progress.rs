//! How far an operation is, in words, and what changed between two looks.

use capstan_controller::operation::{History, Operation, Step, StepState};
use jiff::{SignedDuration, Timestamp};

use crate::text::{Paint, coloured, one_line, span};
use crate::{Standing, Tree};

/// Characters of the bar.
const BAR: u64 = 24;
/// Columns of the narrowest terminal that shows all steps.
const WIDTH: usize = 80;
/// Before this much is done, the pace so far says nothing.
const EARLY: u8 = 10;

/// An operation in a few lines: how far, how long still, its steps, what it waits for.
pub fn progress(operation: &Operation, history: &History, now: Timestamp, paint: Paint) -> Vec<String> {
    let percent = operation.percent();
    let full = BAR * u64::from(percent) / 100;
    let bar: String = (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect();
    let end = operation.ended.map_or(now, |ended| ended.timestamp());
    let taken = span(end.duration_since(operation.started.timestamp()));
    let left = match time_left(operation, history, now) {
        Some(left) if !operation.is_over() && left.as_secs() > 0 => format!(", about {} left", span(left)),
        _ => String::new(),
    };
    let mut lines = vec![format!("{:?} {bar} {percent:>3}%  {taken}{left}", operation.intention)];
    lines.extend(signs(operation, now, paint));
    if let (Some(blocked), Some(step)) = (&operation.blocked_by, operation.current()) {
        let says = if blocked.message.is_empty() { &blocked.reason } else { &blocked.message };
        let since = span(now.duration_since(blocked.since.timestamp()));
        let colour = if blocked.code.is_some() { Standing::Failing } else { Standing::Waiting };
        let text = format!("{} waits ({since}): {}", step.name, one_line(says));
        lines.push(format!("  {}", coloured(colour, &text, paint)));
    }
    lines
}

/// What is left, by earlier operations or else by the pace so far.
fn time_left(operation: &Operation, history: &History, now: Timestamp) -> Option<SignedDuration> {
    let by_pace = || {
        let percent = operation.percent();
        let passed = now.duration_since(operation.started.timestamp());
        (percent >= EARLY && !passed.is_negative())
            .then(|| passed * i32::from(100 - percent) / i32::from(percent))
    };
    operation.time_left(history, now).or_else(by_pace)
}

/// The steps, as many to a line as every terminal shows.
fn signs(operation: &Operation, now: Timestamp, paint: Paint) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for step in operation.steps.iter().filter(|step| step.state != StepState::Skipped) {
        // Colours take no room.
        let width = sign(step, now, Paint::Plain).chars().count() + 2;
        let sign = format!("  {}", sign(step, now, paint));
        match lines.last_mut().filter(|_| width <= room) {
            Some(line) => line.push_str(&sign),
            None => {
                lines.push(sign);
                room = WIDTH;
            }
        }
        room = room.saturating_sub(width);
    }
    lines
}

fn sign(step: &Step, now: Timestamp, paint: Paint) -> String {
    let parts = if step.of > 1 { format!(" {}/{}", step.done, step.of) } else { String::new() };
    match step.state {
        StepState::Done => {
            let took = step.took().map(|took| format!(" {}", span(took))).unwrap_or_default();
            coloured(Standing::Well, &format!("✓ {}{parts}{took}", step.name), paint)
        }
        StepState::Running => {
            let since = step.started.map(|at| span(now.duration_since(at.timestamp()))).unwrap_or_default();
            coloured(Standing::Waiting, &format!("▸ {}{parts} {since}", step.name), paint)
        }
        StepState::Waiting | StepState::Skipped => {
            coloured(Standing::Silent, &format!("· {}", step.name), paint)
        }
    }
}

/// What can be said of a cluster at a moment, each fact with its subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    /// The facts of a tree: steps of its operation, and how its larger parts do.
    pub fn of(tree: &Tree) -> Self {
        let mut facts = Vec::new();
        if let Some(operation) = &tree.part.operation {
            let title = format!("{:?}", operation.intention);
            for step in operation.steps.iter().filter(|step| step.state != StepState::Waiting) {
                let parts = if step.of > 1 { format!(" {}/{}", step.done, step.of) } else { String::new() };
                let word = match step.state {
                    StepState::Done => "done",
                    StepState::Skipped => continue,
                    _ => "begun",
                };
                facts.push((format!("{title} {}", step.name), format!("{word}{parts}")));
            }
            if let Some(code) = operation.blocked_by.as_ref().and_then(|blocked| blocked.code.as_ref()) {
                facts.push((format!("{title} blocked"), code.clone()));
            }
            if operation.is_over() {
                facts.push((title, format!("over {}", operation.started)));
            }
        }
        collect(tree, &mut facts);
        Self(facts)
    }

    /// What is new since `before`, a line each.
    pub fn since(&self, before: &Self) -> Vec<String> {
        let fresh = self.0.iter().filter(|fact| !before.0.contains(fact));
        let mut lines: Vec<String> = fresh
            .map(|(subject, says)| {
                let says = if says.starts_with("over ") { "over" } else { says.as_str() };
                format!("{subject}: {says}")
            })
            .collect();
        let gone = before.0.iter().filter(|(subject, _)| {
            subject.contains('/') && !self.0.iter().any(|(other, _)| other == subject)
        });
        lines.extend(gone.map(|(subject, _)| format!("{subject}: gone")));
        lines
    }
}

fn collect(tree: &Tree, facts: &mut Vec<(String, String)>) {
    let part = &tree.part;
    let large =
        part.kind == "Machine" || part.kind == "MachineDeployment" || part.kind.ends_with("ControlPlane");
    if large || part.kind.ends_with("Cluster") {
        let copies = part.copies.map(|(ready, wanted)| format!(" {ready}/{wanted}")).unwrap_or_default();
        let word = crate::text::word(part);
        if word != "-" {
            facts.push((part.title(), format!("{word}{copies}")));
        }
    }
    for child in &tree.children {
        collect(child, facts);
    }
}

#[cfg(test)]
mod tests {
    use capstan_controller::operation::Intention;
    use capstan_object::ObjectMeta;
    use serde_json::json;

    use super::*;
    use crate::Part;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).expect("a moment")
    }

    fn operation(workers: u32) -> Operation {
        let mut operation =
            Operation::begin(Intention::Create, 1, at(0), &[("Network", 1), ("Workers", 3), ("Ready", 1)]);
        operation.progress("Network", 1, 1, at(4));
        operation.progress("Workers", workers, 3, at(10));
        operation.block("NotReady", "2 machines boot", None, at(20));
        operation
    }

    fn tree(workers: u32, machines: &[&str]) -> Tree {
        let mut meta = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("default", "c") };
        operation(workers).put(&mut meta).expect("written");
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let mut objects = vec![json!({"kind": "Cluster", "metadata": meta})];
        objects.extend(machines.iter().map(|name| {
            json!({"kind": "Machine", "status": {"conditions": ready}, "metadata": {
                "name": name, "uid": name, "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Cluster", "name": "c", "uid": "u"}]}})
        }));
        Tree::below("u", objects.iter().filter_map(Part::of).collect()).expect("a tree")
    }

    #[test]
    fn an_operation_says_how_far_it_is_how_long_still_and_what_it_waits_for() {
        let lines = progress(&operation(1), &History::default(), at(30), Paint::Plain);
        assert_eq!(
            lines,
            [
                "Create █████████░░░░░░░░░░░░░░░  39%  30s, about 46s left",
                "  ✓ Network 0s  ▸ Workers 1/3 20s  · Ready",
                "  Workers waits (10s): 2 machines boot",
            ]
        );
    }

    #[test]
    fn every_transition_is_one_line_and_what_stays_is_none() {
        let first = Facts::of(&tree(0, &["a"]));
        assert_eq!(
            first.since(&Facts::default()),
            ["Create Network: done", "Create Workers: begun 0/3", "Machine/a: Ready"]
        );
        let second = Facts::of(&tree(1, &["b"]));
        assert_eq!(
            second.since(&first),
            ["Create Workers: begun 1/3", "Machine/b: Ready", "Machine/a: gone"]
        );
        assert_eq!(second.since(&second), [""; 0]);
    }
}
