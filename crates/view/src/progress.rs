//! Progress of an operation as text, and what changed between two polls.

use capstan_controller::code_in;
use capstan_controller::operation::{BlockedBy, Intention, Operation, Step, StepState};
use capstan_object::Condition;
use jiff::Timestamp;

use crate::estimate::{Experience, time_left};
use crate::printable::in_line;
use crate::text::{Paint, coloured, one_line, span};
use crate::{State, Tree};

/// Characters of the bar.
const BAR: u64 = 24;
/// Columns of the narrowest supported terminal.
const WIDTH: usize = 80;
/// Prefix of the state of an operation that has ended.
const ENDED: &str = "ended at ";

/// An operation in a few lines: percentage, time left, steps, what it waits for. The message of the wait is that of the
/// condition now: the one in the operation is written seldom, and may be about machines that are done.
pub fn progress(
    operation: &Operation,
    experience: &Experience<'_>,
    conditions: &[Condition],
    now: Timestamp,
    paint: Paint,
) -> Vec<String> {
    let percent = operation.percent();
    let full = BAR * u64::from(percent) / 100;
    let bar: String = (0..BAR).map(|at| if at < full { '█' } else { '░' }).collect();
    let end = operation.ended.map_or(now, |ended| ended.timestamp());
    let taken = span(end.duration_since(operation.started.timestamp()));
    let left = time_left(operation, experience, now);
    let mut lines = vec![format!("{:?} {bar} {percent:>3}%  {taken}{left}", operation.intention)];
    lines.extend(step_lines(operation, now, paint));
    if let (Some(blocked), Some(step)) = (&operation.blocked_by, operation.current())
        && let Some(message) = message(operation, blocked, step, conditions)
    {
        let since = span(now.duration_since(blocked.since.timestamp()));
        let colour = if blocked.code.is_some() { State::Failing } else { State::Waiting };
        let text = format!("{} waits ({since}): {}", step.name, one_line(message));
        lines.push(format!("  {}", coloured(colour, &text, paint)));
    }
    lines
}

/// The conditions of a cluster that a step waits for.
fn conditions_of(operation: &Operation, step: &Step) -> &'static [&'static str] {
    match step.name.as_str() {
        _ if operation.intention == Intention::Delete => &["Deleting"],
        "Network" | "Endpoint" => &["InfrastructureReady"],
        "ControlPlaneInit" | "ControlPlane" => &["ControlPlaneAvailable", "ControlPlaneMachinesReady"],
        "CNI" => &["ControlPlaneMachinesReady"],
        "Workers" => &["WorkersAvailable", "WorkerMachinesReady"],
        "Ready" => &["Available"],
        _ => &[],
    }
}

/// What a step waits for; `None` if its conditions do not report it any more.
fn message<'a>(
    operation: &Operation,
    blocked: &'a BlockedBy,
    step: &Step,
    conditions: &'a [Condition],
) -> Option<&'a str> {
    let text = |message: &'a str, reason: &'a str| if message.is_empty() { reason } else { message };
    let kinds = conditions_of(operation, step);
    let known: Vec<&Condition> =
        kinds.iter().filter_map(|kind| conditions.iter().find(|it| it.kind == *kind)).collect();
    if known.is_empty() {
        return Some(text(&blocked.message, &blocked.reason));
    }
    let open = |it: &&&Condition| it.is_true() == (operation.intention == Intention::Delete);
    let same = |it: &&&Condition| code_in(&it.message) == blocked.code.as_deref();
    let live = known.iter().filter(open).find(same).or_else(|| known.iter().find(open));
    live.map(|live| text(&live.message, &live.reason))
}

/// The steps, wrapped at [`WIDTH`].
fn step_lines(operation: &Operation, now: Timestamp, paint: Paint) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for step in operation.steps.iter().filter(|step| step.state != StepState::Skipped) {
        // Colour codes have no width.
        let width = step_label(step, now, Paint::Plain).chars().count() + 2;
        let label = format!("  {}", step_label(step, now, paint));
        match lines.last_mut().filter(|_| width <= room) {
            Some(line) => line.push_str(&label),
            None => {
                lines.push(label);
                room = WIDTH;
            }
        }
        room = room.saturating_sub(width);
    }
    lines
}

fn step_label(step: &Step, now: Timestamp, paint: Paint) -> String {
    let parts = if step.of > 1 { format!(" {}/{}", step.done, step.of) } else { String::new() };
    match step.state {
        StepState::Done => {
            let took = step.took().map(|took| format!(" {}", span(took))).unwrap_or_default();
            coloured(State::Healthy, &format!("✓ {}{parts}{took}", step.name), paint)
        }
        StepState::Running => {
            let since = step.started.map(|at| span(now.duration_since(at.timestamp()))).unwrap_or_default();
            coloured(State::Waiting, &format!("▸ {}{parts} {since}", step.name), paint)
        }
        StepState::Waiting | StepState::Skipped => {
            coloured(State::NoConditions, &format!("· {}", step.name), paint)
        }
    }
}

/// Progress of a cluster at one moment, as (subject, state) pairs; two of them give a log line per transition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgressSnapshot(Vec<(String, String)>);

impl ProgressSnapshot {
    /// The steps of the operation, and the states of the cluster, its control plane, deployments and machines.
    pub fn of(tree: &Tree) -> Self {
        let mut states = Vec::new();
        if let Some(operation) = &tree.part.operation {
            let title = format!("{:?}", operation.intention);
            for step in operation.steps.iter().filter(|step| step.state != StepState::Waiting) {
                let parts = if step.of > 1 { format!(" {}/{}", step.done, step.of) } else { String::new() };
                let word = match step.state {
                    StepState::Done => "done",
                    StepState::Skipped => continue,
                    _ => "started",
                };
                states.push((format!("{title} {}", step.name), format!("{word}{parts}")));
            }
            if let Some(code) = operation.blocked_by.as_ref().and_then(|blocked| blocked.code.as_ref()) {
                states.push((format!("{title} blocked"), code.clone()));
            }
            if operation.is_over() {
                states.push((title, format!("{ENDED}{}", operation.started)));
            }
        }
        collect(tree, &mut states);
        Self(states)
    }

    /// What changed since `before`, a line each.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = self.0.iter().filter(|state| !before.0.contains(state));
        let mut lines: Vec<String> = new
            .map(|(subject, state)| {
                // The start time distinguishes an operation from the one before; it is not shown.
                let state = if state.starts_with(ENDED) { "done" } else { state.as_str() };
                format!("{subject}: {state}")
            })
            .collect();
        let gone = before.0.iter().filter(|(subject, _)| {
            subject.contains('/') && !self.0.iter().any(|(other, _)| other == subject)
        });
        lines.extend(gone.map(|(subject, _)| format!("{subject}: gone")));
        lines.iter().map(|line| in_line(line).into_owned()).collect()
    }
}

fn collect(tree: &Tree, states: &mut Vec<(String, String)>) {
    let part = &tree.part;
    let large = matches!(part.kind.as_str(), "Machine" | "MachineDeployment" | "MachinePool")
        || part.kind.ends_with("ControlPlane");
    if large || part.kind.ends_with("Cluster") {
        let replicas =
            part.replicas.map(|(ready, desired)| format!(" {ready}/{desired}")).unwrap_or_default();
        let word = crate::text::state_word(part);
        if word != "-" {
            states.push((part.title(), format!("{word}{replicas}")));
        }
    }
    for child in &tree.children {
        collect(child, states);
    }
}

#[cfg(test)]
mod tests {
    use capstan_controller::operation::History;
    use capstan_object::{ConditionStatus, ObjectMeta};
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
    fn an_operation_shows_percentage_time_left_steps_and_what_it_waits_for() {
        let lines = progress(
            &operation(1),
            &Experience { history: &History::default(), planned: None },
            &[],
            at(30),
            Paint::Plain,
        );
        assert_eq!(
            lines,
            [
                "Create █████████░░░░░░░░░░░░░░░  39%  30s, perhaps 3s left",
                "  ✓ Network 0s  ▸ Workers 1/3 20s  · Ready",
                "  Workers waits (10s): 2 machines boot",
            ]
        );
    }

    #[test]
    fn a_wait_has_the_message_of_its_condition_now_and_goes_with_it() {
        let condition = |kind: &str, status, message: &str| Condition {
            kind: kind.to_owned(),
            status,
            reason: "NotReady".to_owned(),
            message: message.to_owned(),
            last_transition_time: at(20).into(),
            observed_generation: None,
        };
        let (no, yes) = (ConditionStatus::False, ConditionStatus::True);
        let of_workers = |status, message| condition("WorkerMachinesReady", status, message);
        for (conditions, expected) in [
            (vec![], Some("2 machines boot")),
            (vec![condition("Available", no, "other")], Some("2 machines boot")),
            (vec![of_workers(no, "* Machine w2: boots")], Some("Machine w2: boots")),
            (vec![condition("WorkersAvailable", yes, ""), of_workers(no, "w3 boots")], Some("w3 boots")),
            (vec![of_workers(yes, "")], None),
        ] {
            let experience = Experience { history: &History::default(), planned: None };
            let lines = progress(&operation(1), &experience, &conditions, at(30), Paint::Plain);
            let expected = expected.map(|text| format!("  Workers waits (10s): {text}"));
            assert_eq!(lines.get(2), expected.as_ref(), "{conditions:?}");
        }
    }

    #[test]
    fn an_operation_that_waits_out_an_error_shows_no_time_left() {
        let mut operation = operation(1);
        operation.block(
            "Deleting",
            "E-CS-EXPUNGE: CloudStack expunges them tomorrow",
            Some("E-CS-EXPUNGE"),
            at(20),
        );
        let lines = progress(
            &operation,
            &Experience { history: &History::default(), planned: None },
            &[],
            at(30),
            Paint::Plain,
        );
        assert_eq!(lines[0], "Create █████████░░░░░░░░░░░░░░░  39%  30s");
    }

    #[test]
    fn every_transition_is_one_line_and_no_change_is_none() {
        let first = ProgressSnapshot::of(&tree(0, &["a"]));
        assert_eq!(
            first.changes_since(&ProgressSnapshot::default()),
            ["Create Network: done", "Create Workers: started 0/3", "Machine/a: Ready"]
        );
        let second = ProgressSnapshot::of(&tree(1, &["b"]));
        assert_eq!(
            second.changes_since(&first),
            ["Create Workers: started 1/3", "Machine/b: Ready", "Machine/a: gone"]
        );
        assert_eq!(second.changes_since(&second), [""; 0]);
    }
}
