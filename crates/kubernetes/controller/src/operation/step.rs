//! A step of an operation.

use capstan_object::Time;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Where a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepState {
    /// Not begun.
    Waiting,
    /// Under way.
    Running,
    Done,
    /// Not needed.
    Skipped,
}

/// A step, of one part or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Name: `Network`, `ControlPlane`, `Workers` …
    pub name: String,
    /// How much of the operation it is.
    pub weight: u32,
    /// Where it is.
    pub state: StepState,
    /// Parts that are done.
    #[serde(default)]
    pub done: u32,
    /// Parts there are.
    #[serde(default)]
    pub of: u32,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
}

impl Step {
    pub(super) fn new(name: &str, weight: u32) -> Self {
        Self {
            name: name.to_owned(),
            weight,
            state: StepState::Waiting,
            done: 0,
            of: 0,
            started: None,
            ended: None,
        }
    }

    pub(super) fn progress(&mut self, done: u32, of: u32, now: Timestamp) {
        (self.done, self.of) = (done, of);
        self.started = self.started.or_else(|| Some(now.into()));
        if done >= of {
            self.state = StepState::Done;
            self.ended = self.ended.or_else(|| Some(now.into()));
        } else {
            self.state = StepState::Running;
            self.ended = None;
        }
    }

    /// How much of it is done, in thousandths.
    pub(super) fn permille(&self) -> u64 {
        match self.state {
            StepState::Done => 1000,
            StepState::Waiting | StepState::Skipped => 0,
            StepState::Running => {
                (u64::from(self.done) * 1000).checked_div(u64::from(self.of)).unwrap_or(0).min(999)
            }
        }
    }

    /// How long it took.
    pub fn took(&self) -> Option<SignedDuration> {
        Some(self.ended?.timestamp().duration_since(self.started?.timestamp()))
    }
}
