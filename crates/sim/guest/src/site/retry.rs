//! Retries with a deadline, as kubeadm does.

use std::time::Duration;

use tokio::time::Instant;

/// Delay between attempts.
const INTERVAL: Duration = Duration::from_secs(5);

/// Attempts until a deadline.
pub(super) struct Retry {
    ends: Instant,
}

impl Retry {
    pub(super) fn with_timeout(lasts: Duration) -> Self {
        Self { ends: Instant::now() + lasts }
    }

    /// Waits for the next attempt; after the deadline, returns the last failure.
    pub(super) async fn wait_or<E>(&self, failure: E) -> Result<(), E> {
        if Instant::now() + INTERVAL > self.ends {
            return Err(failure);
        }
        tokio::time::sleep(INTERVAL).await;
        Ok(())
    }
}
