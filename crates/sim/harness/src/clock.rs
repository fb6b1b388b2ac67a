//! Simulated wall-clock time: Tokio's paused clock, counted from a fixed moment.

use capstan_controller::Env;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where every simulation begins: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600;

/// The clock of a world.
#[derive(Clone, Copy)]
pub struct Clock {
    begun: Instant,
}

impl Clock {
    /// A clock that begins now. Must be called inside the simulation's Tokio runtime.
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// The simulated time.
    pub fn now(&self) -> Timestamp {
        let since = SignedDuration::try_from(self.begun.elapsed()).unwrap_or(SignedDuration::MAX);
        let begin = Timestamp::from_second(BEGIN).unwrap_or(Timestamp::UNIX_EPOCH);
        begin.checked_add(since).unwrap_or(Timestamp::MAX)
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
