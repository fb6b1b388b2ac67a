//! Retries failed work with backoff.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(60);

/// Failed work, by due time.
#[derive(Debug)]
pub(crate) struct Retry<T> {
    due: BTreeMap<(Instant, u64), T>,
    failures: HashMap<T, u32>,
    sequence: u64,
}

impl<T: Clone + Eq + Hash> Retry<T> {
    pub fn new() -> Self {
        Self { due: BTreeMap::new(), failures: HashMap::new(), sequence: 0 }
    }

    /// Schedules a retry.
    pub fn failed(&mut self, work: T) {
        let failures = self.failures.entry(work.clone()).or_default();
        *failures += 1;
        let delay = (FIRST * 2u32.saturating_pow((*failures - 1).min(20))).min(LONGEST);
        self.sequence += 1;
        self.due.insert((Instant::now() + delay, self.sequence), work);
    }

    /// Resets the backoff.
    pub fn succeeded(&mut self, work: &T) {
        self.failures.remove(work);
    }

    /// Waits until a retry is due; forever if there is none.
    pub async fn next(&mut self) -> T {
        let Some((&(at, sequence), _)) = self.due.first_key_value() else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(at).await;
        match self.due.remove(&(at, sequence)) {
            Some(work) => work,
            // Only this method removes entries, and it borrows the map while it waits.
            None => std::future::pending().await,
        }
    }
}
