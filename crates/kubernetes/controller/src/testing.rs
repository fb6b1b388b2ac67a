//! Helpers for tests of decisions.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{Controller, Decision, Effect, Look, Need};

/// The time of tests.
///
/// # Panics
///
/// Never: the value is in range.
#[expect(clippy::expect_used, reason = "a constant within range")]
pub fn now() -> Timestamp {
    Timestamp::from_second(1_000_000_000).expect("a moment")
}

/// A look at an object at [`now`].
pub fn look<C: Controller>(object: C::Kind, seen: C::Seen) -> Look<C> {
    Look::new(Arc::new(object), seen, now())
}

/// The decided calls.
///
/// # Panics
///
/// If there are other effects than calls.
#[expect(clippy::panic, reason = "for tests")]
pub fn calls<C: Controller>(decision: &Decision<C>) -> Vec<C::Call> {
    let call = |effect: &Effect<C::Call>| match effect {
        Effect::Call(call) => call.clone(),
        other => panic!("no call: {}", other.summary()),
    };
    decision.effects.iter().map(|planned| call(&planned.effect)).collect()
}

/// Summaries of all effects.
pub fn effects<C: Controller>(decision: &Decision<C>) -> Vec<String> {
    decision.effects.iter().map(|planned| planned.effect.summary()).collect()
}

/// Summaries of the effects whose failure does not stop the rest.
pub fn best_efforts<C: Controller>(decision: &Decision<C>) -> Vec<String> {
    let planned = decision.effects.iter().filter(|planned| planned.need == Need::BestEffort);
    planned.map(|planned| planned.effect.summary()).collect()
}
