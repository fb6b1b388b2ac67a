//! Operations: what is being done about something a user asked for, step by step, in the words that the command
//! line, the dashboard and other doors all show.
//!
//! ```text
//! decide ─▶ Operation (pure) ─▶ annotation on the object (moves and backups keep it)
//!              │                      │
//!              │                      └─ finished: its steps' times go into History, an annotation too
//!              └─ percentage, and from the medians of earlier runs the time that is left
//! ```
//!
//! Everything is a function of what is stored and the time; nothing here reads or writes.

mod history;
mod step;

use std::collections::BTreeMap;

use capstan_object::{ObjectMeta, Time};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use history::History;
pub use step::{Step, StepState};

/// Annotation with the operation under way, or the last one.
pub const OPERATION: &str = "capstan.dev/operation";
/// Annotation with how long steps of earlier operations took.
pub const HISTORY: &str = "capstan.dev/operation-history";

/// The requested operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Intention {
    /// Something is made.
    Create,
    /// It gets another version.
    Upgrade,
    /// It gets more or fewer parts.
    Scale,
    /// It goes.
    Delete,
    /// A broken part is replaced.
    Heal,
    /// Keys or certificates are replaced.
    Rotate,
    /// Something else about it changes.
    Change,
}

/// The error or condition that blocks an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockedBy {
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// The error code, if it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Since when.
    pub since: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The requested operation.
    pub intention: Intention,
    /// The generation of the object that asked.
    pub generation: i64,
    /// The result it aims at, named by whoever opened it. It distinguishes this request from others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub target: BTreeMap<String, String>,
    /// The target of the operation before it; empty if that is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub origin: BTreeMap<String, String>,
    /// An error blocked it, or its request was taken back: how long it took says nothing about others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
    /// When it began.
    pub started: Time,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// The current blocker, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<BlockedBy>,
}

impl Operation {
    /// An operation that begins now, with steps by name and weight.
    pub fn begin(intention: Intention, generation: i64, now: Timestamp, steps: &[(&str, u32)]) -> Self {
        Self {
            intention,
            generation,
            target: BTreeMap::new(),
            origin: BTreeMap::new(),
            disturbed: false,
            started: now.into(),
            ended: None,
            steps: steps.iter().map(|(name, weight)| Step::new(name, *weight)).collect(),
            blocked_by: None,
        }
    }

    /// The operation on an object, if there is one that can be read.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        serde_json::from_str(meta.annotations.get(OPERATION)?).ok()
    }

    /// Writes the operation on an object.
    pub fn put(&self, meta: &mut ObjectMeta) -> Result<(), serde_json::Error> {
        meta.annotations.insert(OPERATION.to_owned(), serde_json::to_string(self)?);
        Ok(())
    }

    /// A step is where it is now: `done` of `of` parts. Steps begin when they are first heard of and end when all
    /// parts are done; a step that loses parts again goes on.
    pub fn progress(&mut self, name: &str, done: u32, of: u32, now: Timestamp) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.name == name) {
            step.progress(done, of, now);
        }
        self.settle(now);
    }

    /// A step is not needed this time.
    pub fn skip(&mut self, name: &str, now: Timestamp) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.name == name) {
            step.state = StepState::Skipped;
            (step.done, step.of) = (0, 0);
        }
        self.settle(now);
    }

    /// It gets another target. A part of the target that is again what it was before the operation was taken back.
    pub fn retarget(&mut self, target: BTreeMap<String, String>) {
        let is_back = |(name, value): (&String, &String)| {
            target.get(name) == Some(value) && self.target.get(name).is_some_and(|held| held != value)
        };
        self.disturbed |= self.origin.iter().any(is_back);
        self.target = target;
    }

    /// Something stands in the way; the time it began stays while the reason does.
    pub fn block(&mut self, reason: &str, message: &str, code: Option<&str>, now: Timestamp) {
        let since =
            self.blocked_by.as_ref().filter(|before| before.reason == reason).map(|before| before.since);
        self.disturbed |= code.is_some();
        self.blocked_by = Some(BlockedBy {
            reason: reason.to_owned(),
            message: message.to_owned(),
            code: code.map(str::to_owned),
            since: since.unwrap_or_else(|| now.into()),
        });
    }

    /// Nothing stands in the way any more.
    pub fn unblock(&mut self) {
        self.blocked_by = None;
    }

    fn settle(&mut self, now: Timestamp) {
        let over = self.steps.iter().all(|step| matches!(step.state, StepState::Done | StepState::Skipped));
        self.ended = if over { self.ended.or_else(|| Some(now.into())) } else { None };
    }

    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    pub fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The step it is at.
    pub fn current(&self) -> Option<&Step> {
        let open =
            || self.steps.iter().filter(|step| !matches!(step.state, StepState::Done | StepState::Skipped));
        open().find(|step| step.state == StepState::Running).or_else(|| open().next())
    }

    /// How much of it is done, from 0 to 100; 100 only when it is over.
    pub fn percent(&self) -> u8 {
        if self.is_over() {
            return 100;
        }
        let counted = || self.steps.iter().filter(|step| step.state != StepState::Skipped);
        let whole: u64 = counted().map(|step| u64::from(step.weight) * 1000).sum();
        let done: u64 = counted().map(|step| u64::from(step.weight) * step.permille()).sum();
        let percent = (done * 100).checked_div(whole).unwrap_or(0);
        u8::try_from(percent.min(99)).unwrap_or(99)
    }

    /// How long it will still take, if earlier operations are recorded: the medians of the steps that are left, less what
    /// of the running ones has passed.
    pub fn time_left(&self, history: &History, now: Timestamp) -> Option<SignedDuration> {
        if self.is_over() {
            return Some(SignedDuration::ZERO);
        }
        let mut left = SignedDuration::ZERO;
        for step in
            self.steps.iter().filter(|step| matches!(step.state, StepState::Waiting | StepState::Running))
        {
            let median = history.median(self.intention, &step.name)?;
            let passed = step.started.map_or(SignedDuration::ZERO, |at| now.duration_since(at.timestamp()));
            left += (median - passed).max(SignedDuration::ZERO);
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + seconds).expect("a moment")
    }

    fn create() -> Operation {
        Operation::begin(Intention::Create, 1, at(0), &[("Network", 1), ("ControlPlane", 3), ("Workers", 4)])
    }

    #[test]
    fn the_percentage_follows_weights_and_parts_and_is_whole_only_at_the_end() {
        let mut operation = create();
        assert_eq!(operation.percent(), 0);
        operation.progress("Network", 1, 1, at(10));
        operation.progress("ControlPlane", 1, 3, at(20));
        assert_eq!(
            (operation.percent(), operation.current().map(|s| s.name.as_str())),
            (24, Some("ControlPlane"))
        );
        operation.progress("ControlPlane", 3, 3, at(90));
        operation.progress("Workers", 999, 1000, at(95));
        assert_eq!((operation.percent(), operation.is_over()), (99, false));
        operation.progress("Workers", 1000, 1000, at(99));
        assert_eq!((operation.percent(), operation.ended), (100, Some(at(99).into())));
    }

    #[test]
    fn a_step_that_loses_a_part_goes_on_and_with_it_the_operation() {
        let mut operation = create();
        for step in ["Network", "ControlPlane", "Workers"] {
            operation.progress(step, 1, 1, at(5));
        }
        operation.progress("ControlPlane", 0, 1, at(6));
        assert!(!operation.is_over());
        assert_eq!(operation.current().map(|step| step.name.as_str()), Some("ControlPlane"));
    }

    #[test]
    fn the_time_left_is_what_earlier_operations_took_less_what_has_passed() {
        let mut history = History::default();
        for seconds in [30, 50, 40] {
            let mut earlier = create();
            let mut now = 0;
            for (step, weight) in [("Network", 1), ("ControlPlane", 2), ("Workers", 3)] {
                earlier.progress(step, 0, 1, at(now));
                now += seconds * weight;
                earlier.progress(step, 1, 1, at(now));
            }
            history.learn(&earlier);
        }
        let mut operation = create();
        operation.progress("Network", 0, 1, at(0));
        assert_eq!(operation.time_left(&history, at(10)), Some(SignedDuration::from_secs(30 + 80 + 120)));
        operation.progress("Network", 1, 1, at(60));
        operation.progress("ControlPlane", 0, 3, at(60));
        assert_eq!(
            operation.time_left(&history, at(300)),
            Some(SignedDuration::from_secs(120)),
            "late is not early"
        );
        assert_eq!(operation.time_left(&History::default(), at(300)), None, "nobody knows");
    }

    #[test]
    fn only_undisturbed_operations_are_learned() {
        type Event = Box<dyn Fn(&mut Operation)>;
        let target = |version: &str, count: &str| {
            [("version", version), ("count", count)].map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let retarget = |version: &'static str, count: &'static str| {
            move |operation: &mut Operation| operation.retarget(target(version, count).into())
        };
        let table: [(&str, Event, bool); 7] = [
            ("nothing happens", Box::new(|_| ()), true),
            ("a wait without an error", Box::new(|it| it.block("Draining", "a pod", None, at(5))), true),
            ("an error", Box::new(|it| it.block("Template", "none", Some("E-CS-TEMPLATE"), at(5))), false),
            (
                "an error that is mended",
                Box::new(|it| {
                    it.block("Template", "none", Some("E-CS-TEMPLATE"), at(5));
                    it.unblock();
                }),
                false,
            ),
            ("a later version", Box::new(retarget("3", "1")), true),
            ("more machines on the way", Box::new(retarget("2", "5")), true),
            ("the version before", Box::new(retarget("1", "1")), false),
        ];
        for (what, happens, learned) in table {
            let mut operation = create();
            operation.origin = target("1", "1").into();
            operation.target = target("2", "1").into();
            happens(&mut operation);
            for step in ["Network", "ControlPlane", "Workers"] {
                operation.progress(step, 1, 1, at(9));
            }
            let mut history = History::default();
            history.learn(&operation);
            assert_eq!(history.median(Intention::Create, "Network").is_some(), learned, "{what}");
        }
    }

    #[test]
    fn a_block_remembers_when_it_began() {
        let mut operation = create();
        operation.block("Quota", "no room", Some("E-CS-QUOTA"), at(5));
        operation.block("Quota", "still no room", Some("E-CS-QUOTA"), at(50));
        assert_eq!(operation.blocked_by.as_ref().map(|blocked| blocked.since), Some(at(5).into()));
        operation.block("Image", "no image", None, at(60));
        assert_eq!(operation.blocked_by.as_ref().map(|blocked| blocked.since), Some(at(60).into()));
    }

    #[test]
    fn an_operation_survives_on_its_object() {
        let mut operation = create();
        operation.progress("Network", 0, 2, at(1));
        operation.block("Quota", "no room", None, at(5));
        let mut meta = ObjectMeta::default();
        operation.put(&mut meta).expect("written");
        assert_eq!(Operation::of(&meta), Some(operation));
    }
}
