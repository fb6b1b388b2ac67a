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
    /// The time.
    pub now: Timestamp,
    /// Why nothing may be done, if so.
    pub paused: Option<String>,
    /// Effects that were tried and failed, newest attempt each, until they succeed or are no longer wanted.
    pub failures: Vec<Failure<C::Call>>,
    /// Calls whose end became known since the last decision that was carried out to its end.
    pub concluded: Vec<Concluded<C::Call>>,
}

/// An effect that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure<K> {
    /// The effect in a few words.
    pub effect: String,
    /// The call, if it was one.
    pub call: Option<K>,
    /// What went wrong.
    pub error: Error,
    /// When it first failed.
    pub since: Timestamp,
    /// How often it has been tried.
    pub attempts: u32,
}

/// A call whose end is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Concluded<K> {
    /// The call.
    pub call: K,
    /// What it said; `None` if it turned out never to have happened.
    pub result: Option<Value>,
}

/// A call that was about to be made, as the journal holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent<K> {
    /// The thing it is about.
    pub key: String,
    /// The call.
    pub call: K,
    /// When.
    pub at: Time,
}

impl<C: Controller> Look<C> {
    /// An observation without failures and pauses: where tests of decisions begin.
    pub fn new(object: Arc<C::Kind>, seen: C::Seen, now: Timestamp) -> Self {
        Self { object, seen, now, paused: None, failures: Vec::new(), concluded: Vec::new() }
    }

    /// The result of a call that became known.
    pub fn result_of(&self, call: &C::Call) -> Option<&Value> {
        let of_call = self.concluded.iter().rev().find(|concluded| concluded.call == *call);
        of_call.and_then(|concluded| concluded.result.as_ref())
    }

    /// The failure of a call.
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
