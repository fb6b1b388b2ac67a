//! Configuration of a store.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{Cipher, window::Window};

/// Source of the current time.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Configuration of a store. The defaults suit a management plane; tests use small values.
#[derive(Clone)]
pub struct Options {
    /// Transactions kept for watches to resume from and for reads of older revisions.
    pub history_revisions: u64,
    /// Age at which history is dropped, even if it is short.
    pub history_age: Duration,
    /// Bytes of history to keep. Replaced and deleted values stay in memory until their history is dropped.
    pub history_bytes: u64,
    /// Pending events after which a watch ends with [`crate::WatchError::Lagged`].
    pub watch_lag: usize,
    /// Log bytes after which a snapshot is written, if the live data is smaller than that.
    pub checkpoint_bytes: u64,
    /// Size at which the log continues in a new file.
    pub segment_bytes: u64,
    /// Only used for the age of history.
    pub clock: Clock,
    /// Seals values on disk. `None` leaves all of them plain.
    pub cipher: Option<Arc<dyn Cipher>>,
}

impl Options {
    /// The defaults with a clock.
    pub fn with_clock(clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..Self::default() }
    }

    pub(crate) fn window(&self) -> Window {
        Window::new(self.history_revisions, self.history_age, self.history_bytes)
    }

    pub(crate) fn cipher(&self) -> Option<&dyn Cipher> {
        self.cipher.as_deref()
    }

    /// Milliseconds since 1970, as the log records it.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Default for Options {
    /// One hour, 100,000 transactions or 64 MiB of history, with a clock that stands still.
    fn default() -> Self {
        Self {
            history_revisions: 100_000,
            history_age: Duration::from_secs(3600),
            history_bytes: 64 << 20,
            watch_lag: 10_000,
            checkpoint_bytes: 64 << 20,
            segment_bytes: 64 << 20,
            clock: Arc::new(|| SystemTime::UNIX_EPOCH),
            cipher: None,
        }
    }
}
