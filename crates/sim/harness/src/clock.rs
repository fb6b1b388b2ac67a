//! Simulated wall-clock time: Tokio's paused clock, counted from a fixed moment.

use capstan_controller::Env;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// When simulations begin that say nothing about it: 2026-01-01T00:00:00Z.
pub(crate) const BEGIN: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The clock of a world.
#[derive(Clone, Copy)]
pub struct Clock {
    begun: Instant,
    at: Timestamp,
}

impl Clock {
    /// A clock that shows `at` now. Must be called inside the simulation's Tokio runtime.
    pub(crate) fn begin(at: Timestamp) -> Self {
        Self { begun: Instant::now(), at }
    }

    /// The simulated time.
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX);
        self.at.checked_add(since).unwrap_or(Timestamp::MAX)
    }

    /// Simulated seconds since the beginning.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Time and randomness for one part of the world.
    pub fn env(&self, seed: u64) -> Env {
        let clock = *self;
        Env::simulated(move || clock.now(), seed)
    }
}
