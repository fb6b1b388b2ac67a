//! When to try again, and how often to ask.

use std::time::Duration;

use crate::command::Effect;
use crate::error::Error;

/// How a client deals with what may pass.
#[derive(Debug, Clone)]
pub struct Policy {
    /// How often a request is sent at most.
    pub attempts: u32,
    /// The pause before the second attempt; later ones double.
    pub first_pause: Duration,
    /// The longest pause between attempts.
    pub longest_pause: Duration,
    /// How jobs are waited for.
    pub jobs: Patience,
    /// Entries per page of a list. Servers allow 500 by default.
    pub page_size: u32,
    /// How often a list is read anew when it changed while its pages were read.
    pub list_attempts: u32,
    /// How long look-ups of things that change rarely are believed.
    pub remember: Duration,
    /// How many refusals of the keys in a row, without a success between them, make the client stop asking for a while.
    pub refusals: u32,
    /// How long that while is. Other keys end it at once.
    pub refusal_pause: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(15),
            jobs: Patience::default(),
            page_size: 500,
            list_attempts: 3,
            remember: Duration::from_secs(300),
            refusals: 3,
            refusal_pause: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// Whether a request may be sent again after this error: of a command that changes something only if it certainly
    /// changed nothing.
    pub(crate) fn may_repeat(&self, error: &Error, attempts: u32) -> bool {
        attempts < self.attempts
            && error.is_retryable()
            && (error.effect == Effect::Read || !error.is_ambiguous())
    }

    /// The pause after so many attempts, longer if the server asks for it.
    pub(crate) fn pause(&self, attempts: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled.max(asked.unwrap_or_default()).min(self.longest_pause)
    }
}

/// How a job is waited for.
#[derive(Debug, Clone)]
pub struct Patience {
    /// The pause before the first question.
    pub first: Duration,
    /// The longest pause between questions; they grow by half each time.
    pub longest: Duration,
    /// When to give up waiting. The job goes on.
    pub total: Duration,
    /// From how many jobs of one account on their state is read from one list instead of one by one.
    pub crowd: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(300),
            longest: Duration::from_secs(10),
            total: Duration::from_secs(900),
            crowd: 4,
        }
    }
}
