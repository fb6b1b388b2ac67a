//! When a request is sent again.

use std::time::Duration;

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
    /// How long an answer may take.
    pub timeout: Duration,
    /// Requests under way at a time.
    pub concurrent: usize,
    /// The longest answer that is read, in bytes.
    pub longest_answer: usize,
    /// Entries per page of a list. Services allow 1000.
    pub page_size: u32,
    /// How often a list is read anew when the entry that ended a page is gone.
    pub list_attempts: u32,
    /// How long before its end a token is replaced; a fifth of its lifetime if that is less.
    pub renew_before: Duration,
    /// How long Keystone is left alone after it refused the credentials: accounts are locked after a few refusals.
    pub refusal_pause: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(15),
            timeout: Duration::from_secs(120),
            concurrent: 16,
            longest_answer: 32 * 1024 * 1024,
            page_size: 500,
            list_attempts: 3,
            renew_before: Duration::from_secs(300),
            refusal_pause: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// Whether a request may be sent again after this error.
    pub(crate) fn may_repeat(&self, error: &Error, attempts: u32) -> bool {
        attempts < self.attempts && error.is_repeatable()
    }

    /// The pause after so many attempts, longer if the service asks for it.
    pub(crate) fn pause(&self, attempts: u32, asked: Option<Duration>) -> Duration {
        let doubled = self.first_pause.saturating_mul(1 << attempts.saturating_sub(1).min(16));
        doubled.max(asked.unwrap_or_default()).min(self.longest_pause)
    }
}
