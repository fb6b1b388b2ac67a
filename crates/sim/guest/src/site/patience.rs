//! Trying again for a while, as kubeadm does.

use std::time::Duration;

use tokio::time::Instant;

/// How long kubeadm waits between two attempts.
const INTERVAL: Duration = Duration::from_secs(5);

/// Attempts until a deadline.
pub(super) struct Patience {
    ends: Instant,
}

impl Patience {
    /// Begins now.
    pub(super) fn of(lasts: Duration) -> Self {
        Self { ends: Instant::now() + lasts }
    }

    /// Waits for the next attempt; when there is none, what the last one said counts.
    pub(super) async fn after<E>(&self, failure: E) -> Result<(), E> {
        if Instant::now() + INTERVAL > self.ends {
            return Err(failure);
        }
        tokio::time::sleep(INTERVAL).await;
        Ok(())
    }
}
