//! Simulated wall-clock time: Tokio's paused clock, counted from a fixed moment.

use capstan_controller::Env;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Default start time of a simulation: 2026-01-01T00:00:00Z.
pub(crate) const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);

#[derive(Clone, Copy)]
pub struct Clock {
    begun: Instant,
    at: Timestamp,
}

impl Clock {
    /// A clock that starts at `at`. Must be called inside the simulation's Tokio runtime.
    pub(crate) fn begin(at: Timestamp) -> Self {
        Self { begun: Instant::now(), at }
    }

    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX);
        self.at.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Simulated seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Time and randomness with its own seed, for one component.
    pub fn env(&self, seed: u64) -> Env {
        let clock = *self;
        Env::simulated(move || clock.now(), seed)
    }
}
