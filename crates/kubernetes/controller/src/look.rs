//! Everything a decision may depend on.

use std::sync::Arc;

use capstan_object::{Condition, ConditionStatus, Object, Time};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Controller;
use crate::controller::Error;

/// What was observed: the only thing a decision may depend on.
pub struct Look<C: Controller> {
    /// The object the decision is about.
    pub object: Arc<C::Kind>,
    /// What the controller observed beside it.
    pub seen: C::Seen,
    pub now: Timestamp,
    /// Why effects are paused, if they are.
    pub paused: Option<String>,
    /// Effects that were tried and failed, newest attempt each, until they succeed or are no longer wanted.
    pub failures: Vec<Failure<C::Call>>,
    /// Calls whose outcome became known since the last completed reconcile.
    pub concluded: Vec<Concluded<C::Call>>,
}

/// An effect that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure<K> {
    /// Summary of the effect.
    pub effect: String,
    /// The call, if it was one.
    pub call: Option<K>,
    pub error: Error,
    /// When it first failed.
    pub since: Timestamp,
    /// Number of attempts.
    pub attempts: u32,
}

/// A call whose outcome is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Concluded<K> {
    pub call: K,
    /// Its result; `None` if it did not happen.
    pub result: Option<Value>,
}

/// An intent of the journal: a call that was about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent<K> {
    /// The resource it concerns.
    pub key: String,
    pub call: K,
    pub at: Time,
}

impl<C: Controller> Look<C> {
    /// An observation without failures and pauses, for tests of decisions.
    pub fn new(object: Arc<C::Kind>, seen: C::Seen, now: Timestamp) -> Self {
        Self { object, seen, now, paused: None, failures: Vec::new(), concluded: Vec::new() }
    }

    /// The result of a call, if its outcome became known.
    pub fn result_of(&self, call: &C::Call) -> Option<&Value> {
        let of_call = self.concluded.iter().rev().find(|concluded| concluded.call == *call);
        of_call.and_then(|concluded| concluded.result.as_ref())
    }

    pub fn failure_of(&self, call: &C::Call) -> Option<&Failure<C::Call>> {
        self.failures.iter().find(|failure| failure.call.as_ref() == Some(call))
    }

    /// A condition as of now, about the generation that was observed.
    pub fn condition(
        &self,
        kind: &str,
        status: ConditionStatus,
        reason: &str,
        message: impl Into<String>,
    ) -> Condition {
        Condition {
            kind: kind.to_owned(),
            status,
            observed_generation: Some(self.object.metadata().generation)
                .filter(|generation| *generation != 0),
            last_transition_time: self.now.into(),
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}
