//! When to call again what failed.

use std::collections::BTreeMap;
use std::time::Duration;

use capstan_object::Key;
use parking_lot::Mutex;

const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(120);

/// Consecutive failures by object, for a back-off that grows.
#[derive(Debug, Default)]
pub struct Retries(Mutex<BTreeMap<Key, u32>>);

impl Retries {
    /// Counts a failure; returns how long to wait.
    pub fn failed(&self, key: &Key) -> Duration {
        let mut failures = self.0.lock();
        let count = failures.entry(key.clone()).or_default();
        let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
        *count = count.saturating_add(1);
        wait
    }

    pub fn succeeded(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Objects whose last call failed.
    pub fn waiting(&self) -> Vec<Key> {
        self.0.lock().keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_a_call_succeeds() {
        let (retries, key) = (Retries::default(), Key::new("ns", "one"));
        let waits: Vec<u64> = (0..8).map(|_| retries.failed(&key).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!(retries.waiting(), std::slice::from_ref(&key));
        retries.succeeded(&key);
        assert_eq!((retries.failed(&key).as_secs(), retries.waiting().len()), (2, 1));
    }
}
