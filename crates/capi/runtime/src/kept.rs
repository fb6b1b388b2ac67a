//! Responses that are used again, bounded in time and size.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// How long a response of a hook without side effects is used. A server that changes is noticed after this time.
const KEPT: Duration = Duration::from_secs(600);
/// Most bytes of all responses, as JSON.
const MOST_KEPT: usize = 64 * 1024 * 1024;

/// A request and who is asked.
pub(crate) type Digested = [u8; 32];

struct KeptResponse {
    since: Timestamp,
    /// Length as JSON.
    bytes: usize,
    response: Arc<Value>,
}

/// Responses with the time of the call, by request.
pub(crate) struct KeptResponses {
    by_request: HashMap<Digested, KeptResponse>,
    /// Of all responses.
    bytes: usize,
    most: usize,
    /// When expired responses were dropped.
    cleaned: Timestamp,
}

impl Default for KeptResponses {
    fn default() -> Self {
        Self { by_request: HashMap::new(), bytes: 0, most: MOST_KEPT, cleaned: Timestamp::MIN }
    }
}

fn is_fresh(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since).unsigned_abs() < KEPT
}

impl KeptResponses {
    pub(crate) fn get(&self, key: &Digested, now: Timestamp) -> Option<Arc<Value>> {
        let kept = self.by_request.get(key)?;
        is_fresh(kept.since, now).then(|| kept.response.clone())
    }

    pub(crate) fn remove(&mut self, key: &Digested) {
        if let Some(kept) = self.by_request.remove(key) {
            self.bytes = self.bytes.saturating_sub(kept.bytes);
        }
    }

    pub(crate) fn keep(&mut self, key: Digested, now: Timestamp, response: Arc<Value>) {
        self.remove(&key);
        let bytes = response.to_string().len();
        if bytes > self.most {
            return;
        }
        if !is_fresh(self.cleaned, now) || self.bytes.saturating_add(bytes) > self.most {
            self.by_request.retain(|_, kept| is_fresh(kept.since, now));
            self.bytes = self.by_request.values().map(|kept| kept.bytes).sum();
            self.cleaned = now;
        }
        if self.bytes.saturating_add(bytes) > self.most {
            self.drop_oldest(bytes);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_request.insert(key, KeptResponse { since: now, bytes, response });
    }

    /// Makes room, and some more: sorting for each response would cost more than asking again for a few.
    fn drop_oldest(&mut self, bytes: usize) {
        let enough = (self.most / 4 * 3).min(self.most.saturating_sub(bytes));
        let mut by_age: Vec<(Timestamp, Digested)> =
            self.by_request.iter().map(|(key, kept)| (kept.since, *key)).collect();
        by_age.sort_unstable();
        for (_, key) in by_age {
            if self.bytes <= enough {
                return;
            }
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    /// A response of 100 bytes.
    fn response() -> Arc<Value> {
        Arc::new(json!("x".repeat(98)))
    }

    #[test]
    fn a_response_that_is_renewed_counts_once() {
        let mut kept = KeptResponses { most: 1000, ..KeptResponses::default() };
        for second in 0..50 {
            kept.keep([1; 32], at(second * 700), response());
            kept.keep([2; 32], at(second * 700), response());
            assert_eq!((kept.by_request.len(), kept.bytes), (2, 200), "after {second} times");
        }
        kept.remove(&[1; 32]);
        kept.remove(&[1; 32]);
        assert_eq!(kept.bytes, 100);
    }

    #[test]
    fn expired_responses_go_and_then_the_oldest_while_the_newest_stay() {
        let mut kept = KeptResponses { most: 1000, ..KeptResponses::default() };
        for number in 0..10 {
            kept.keep([number; 32], at(i64::from(number)), response());
        }
        assert_eq!(kept.bytes, 1000);
        kept.keep([10; 32], at(10), response());
        let known = |kept: &KeptResponses, now: i64| -> Vec<u8> {
            (0..=20).filter(|number| kept.get(&[*number; 32], at(now)).is_some()).collect()
        };
        assert_eq!(known(&kept, 10), [3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(known(&kept, 605), [6, 7, 8, 9, 10]);

        kept.keep([11; 32], at(1200), response());
        assert_eq!((known(&kept, 1200), kept.bytes), (vec![11], 100));
        kept.keep([12; 32], at(1200), Arc::new(json!("x".repeat(2000))));
        assert_eq!((known(&kept, 1200), kept.bytes), (vec![11], 100), "too long to be kept");
    }
}
