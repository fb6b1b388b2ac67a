//! How long an operation still takes.
//!
//! Each open step has an expected duration. Steps that run, run together: the longest remainder counts. Those that wait
//! come after them, one by one. Between two changes of the operation the time left only falls.

use capstan_controller::operation::{History, Operation, Step, StepState};
use jiff::{SignedDuration, Timestamp};

use crate::text::span;

/// Weight of finished steps, in percent, below which they do not give a pace: validating takes no time at all.
const EARLY: u32 = 10;
/// Expected duration of a step per percent of its weight, if nothing else is known: five minutes for all.
const TYPICAL: SignedDuration = SignedDuration::from_secs(3);

/// What is known of the duration of operations.
#[derive(Debug, Clone, Copy)]
pub struct Experience<'a> {
    /// Earlier operations on the same object.
    pub history: &'a History,
    /// Duration of this operation in a plan.
    pub planned: Option<SignedDuration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// No earlier operation, no plan, and too little of this one.
    Typical,
    /// The finished steps of this operation, or else the plan: time per percent of weight.
    Pace(SignedDuration),
}

/// The words after the time that has passed; empty where an error is waited out, such as the hours until a cloud expunges
/// machines: what blocks the operation says when it is tried again.
pub fn time_left(operation: &Operation, experience: &Experience<'_>, now: Timestamp) -> String {
    let fails = operation.blocked_by.as_ref().is_some_and(|blocked| blocked.code.is_some());
    if operation.is_over() || fails {
        return String::new();
    }
    let planned = || experience.planned.and_then(|planned| planned.checked_div(100));
    let basis = pace(operation).or_else(planned).map_or(Basis::Typical, Basis::Pace);
    let (mut running, mut waiting) = (SignedDuration::ZERO, SignedDuration::ZERO);
    let mut guessed = false;
    let open = |step: &&Step| matches!(step.state, StepState::Waiting | StepState::Running);
    for step in operation.steps.iter().filter(open) {
        let expected = match (experience.history.median(operation.intention, &step.name), basis) {
            (Some(median), _) => median,
            (None, Basis::Pace(pace)) => weighted(pace, step),
            (None, Basis::Typical) => {
                guessed = true;
                weighted(TYPICAL, step)
            }
        };
        match step.started {
            Some(started) => running = running.max(expected - now.duration_since(started.timestamp())),
            None => waiting += expected,
        }
    }
    let left = running + waiting;
    match (left.as_secs(), guessed) {
        (0, _) => ", longer than estimated".to_owned(),
        (_, true) => format!(", perhaps {} left", span(left)),
        (_, false) => format!(", about {} left", span(left)),
    }
}

/// Time per percent of weight in the finished steps. They may overlap: the time that counts is until the last of them
/// ended.
fn pace(operation: &Operation) -> Option<SignedDuration> {
    let done = || operation.steps.iter().filter(|step| step.state == StepState::Done);
    let weight: u32 = done().map(|step| step.weight).sum();
    let last = done().filter_map(|step| step.ended).map(|ended| ended.timestamp()).max()?;
    let passed = last.duration_since(operation.started.timestamp());
    let divisor = i32::try_from(weight).ok().filter(|_| weight >= EARLY && !passed.is_negative())?;
    passed.checked_div(divisor)
}

fn weighted(per_percent: SignedDuration, step: &Step) -> SignedDuration {
    per_percent.saturating_mul(i32::try_from(step.weight).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use capstan_controller::operation::Intention;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).expect("a moment")
    }

    fn create() -> Operation {
        let steps = [("Validate", 1), ("Network", 9), ("ControlPlane", 50), ("Workers", 40)];
        let mut operation = Operation::begin(Intention::Create, 1, at(0), &steps);
        operation.progress("Validate", 1, 1, at(0));
        operation.progress("Network", 0, 1, at(0));
        operation
    }

    fn said(operation: &Operation, second: i64) -> String {
        estimate(operation, &History::default(), None, second)
    }

    fn estimate(
        operation: &Operation,
        history: &History,
        planned: Option<SignedDuration>,
        second: i64,
    ) -> String {
        time_left(operation, &Experience { history, planned }, at(second))
    }

    #[test]
    fn a_plan_is_the_estimate_until_the_operation_has_a_pace() {
        let planned = Some(SignedDuration::from_secs(100));
        let mut operation = create();
        assert_eq!(estimate(&operation, &History::default(), planned, 0), ", about 99s left");
        operation.progress("Network", 1, 1, at(20));
        operation.progress("ControlPlane", 0, 3, at(20));
        assert_eq!(estimate(&operation, &History::default(), planned, 20), ", about 3m0s left");
    }

    #[test]
    fn every_phase_of_a_first_run_has_an_estimate() {
        let mut operation = create();
        assert_eq!(said(&operation, 0), ", perhaps 4m57s left");
        operation.progress("Network", 1, 1, at(20));
        operation.progress("ControlPlane", 0, 3, at(20));
        assert_eq!(said(&operation, 20), ", about 3m0s left");
        operation.progress("ControlPlane", 3, 3, at(120));
        operation.progress("Workers", 0, 3, at(120));
        assert_eq!(said(&operation, 120), ", about 80s left");
        operation.progress("Workers", 3, 3, at(200));
        assert_eq!(said(&operation, 300), "");
    }

    #[test]
    fn while_nothing_changes_the_time_left_only_falls() {
        let mut operation = create();
        operation.progress("Network", 1, 1, at(20));
        operation.progress("ControlPlane", 1, 3, at(20));
        assert_eq!(said(&operation, 50), ", about 2m30s left");
        assert_eq!(said(&operation, 120), ", about 80s left");
        // The control plane is late. That is no reason to expect more of the workers.
        assert_eq!(said(&operation, 500), ", about 80s left");
        operation.progress("ControlPlane", 3, 3, at(120));
        operation.progress("Workers", 0, 3, at(120));
        assert_eq!(said(&operation, 201), ", longer than estimated");
    }

    #[test]
    fn earlier_runs_count_more_than_the_pace() {
        let mut history = History::default();
        let mut earlier = create();
        for (step, second) in [("Network", 10), ("ControlPlane", 40), ("Workers", 100)] {
            earlier.progress(step, 0, 1, at(second));
            earlier.progress(step, 1, 1, at(2 * second));
        }
        history.learn(&earlier);
        // Network took 20 s from its start at 0, the others 40 s and 100 s.
        let planned = Some(SignedDuration::from_secs(1));
        assert_eq!(estimate(&create(), &history, planned, 0), ", about 2m40s left");
    }

    #[test]
    fn of_steps_that_run_together_the_longest_counts() {
        let mut operation = create();
        operation.progress("Network", 1, 1, at(20));
        operation.progress("ControlPlane", 0, 3, at(20));
        operation.progress("Workers", 0, 3, at(20));
        assert_eq!(said(&operation, 30), ", about 90s left");
    }

    #[test]
    fn an_error_that_is_waited_out_has_no_estimate() {
        let mut operation = create();
        operation.block("Deleting", "E-CS-EXPUNGE: expunged tomorrow", Some("E-CS-EXPUNGE"), at(20));
        assert_eq!(said(&operation, 30), "");
    }
}
