//! What a cloud refused or failed to do, as objects remember it: the next try comes after a pause, each twice as long as
//! the one before.

use capstan_controller::{Controller, Decision, Wait};
use capstan_object::{ObjectMeta, Time};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A try that came to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedTry {
    /// How many so far.
    pub attempts: u32,
    /// When the last one was.
    pub at: Time,
    /// The cloud's error message.
    pub message: String,
}

/// The pause after the first try, and the longest.
#[derive(Debug, Clone, Copy)]
pub struct Pauses {
    pub first: SignedDuration,
    pub longest: SignedDuration,
}

/// Pauses between orders that a cloud refused, and after deployments that failed.
pub const ORDERS: Pauses =
    Pauses { first: SignedDuration::from_secs(30), longest: SignedDuration::from_secs(600) };

/// What is done about an order.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderStep {
    /// It is sent.
    Send,
    /// It was refused: the next one follows after a pause.
    Pause(FailedTry),
}

impl OrderStep {
    /// The step after what an object remembers under an annotation and, if the order was just sent, its refusal. A refusal
    /// counts once: while orders pause, none is sent.
    pub fn of(meta: &ObjectMeta, annotation: &str, refused: Option<String>, now: Timestamp) -> Self {
        let before = FailedTry::of(meta, annotation);
        match (before, refused) {
            (Some(before), _) if now < before.next(ORDERS) => Self::Pause(before),
            (before, Some(message)) => Self::Pause(FailedTry::after(before.as_ref(), now, &message)),
            (_, None) => Self::Send,
        }
    }
}

impl FailedTry {
    /// Has a decision wait until the next order. Returns what to report.
    pub fn pause<C: Controller>(&self, reason: &str, now: Timestamp, decision: &mut Decision<C>) -> String {
        let next = self.next(ORDERS);
        decision.again_at(now, next);
        let mut wait = Wait::on(reason, self.message.as_str());
        wait.next = Some(next);
        decision.wait(wait);
        format!("{}; next try at {next:.0}", self.message)
    }

    /// What an object remembers under an annotation.
    pub fn of(meta: &ObjectMeta, annotation: &str) -> Option<Self> {
        serde_json::from_str(meta.annotations.get(annotation)?).ok()
    }

    /// One more.
    pub fn after(before: Option<&Self>, now: Timestamp, message: &str) -> Self {
        let attempts = before.map_or(0, |before| before.attempts).saturating_add(1);
        Self { attempts, at: now.into(), message: message.to_owned() }
    }

    /// Has an object remember it.
    pub fn put(&self, meta: &mut ObjectMeta, annotation: &str) {
        if let Ok(text) = serde_json::to_string(self) {
            meta.annotations.insert(annotation.to_owned(), text);
        }
    }

    /// When it is tried again.
    pub fn next(&self, pauses: Pauses) -> Timestamp {
        let doubled = pauses.first.checked_mul(1 << self.attempts.saturating_sub(1).min(16));
        let pause = doubled.unwrap_or(pauses.longest).min(pauses.longest);
        self.at.timestamp().checked_add(pause).unwrap_or(self.at.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_survive_on_the_object() {
        let pauses = Pauses { first: SignedDuration::from_secs(30), longest: SignedDuration::from_secs(600) };
        let mut meta = ObjectMeta::default();
        for pause in [30, 60, 120, 240, 480, 600, 600] {
            let before = FailedTry::of(&meta, "a");
            FailedTry::after(before.as_ref(), Timestamp::UNIX_EPOCH, "no").put(&mut meta, "a");
            let last = FailedTry::of(&meta, "a").expect("a failed try");
            assert_eq!(last.next(pauses), Timestamp::UNIX_EPOCH + SignedDuration::from_secs(pause));
        }
    }
}
