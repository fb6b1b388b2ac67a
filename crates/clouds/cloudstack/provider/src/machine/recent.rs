//! Answers of the cloud that hold for a few seconds, so that the rounds of one reconcile, and machines that come up
//! together, ask once.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::account_cache::JUST_NOW;

/// Answers by the id they are about. Our own calls keep them up to date.
pub(super) struct Recent<V>(Mutex<BTreeMap<String, (Instant, V)>>);

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Clone> Recent<V> {
    /// The answer about an id, unless it is too old.
    pub(super) fn get(&self, id: &str) -> Option<V> {
        let all = self.0.lock();
        all.get(id).filter(|(at, _)| at.elapsed() < JUST_NOW).map(|(_, answer)| answer.clone())
    }

    /// Takes over an answer to a question that was asked at `asked`.
    pub(super) fn put(&self, id: &str, asked: Instant, answer: V) {
        let mut all = self.0.lock();
        all.retain(|_, (at, _)| at.elapsed() < JUST_NOW);
        all.insert(id.to_owned(), (asked, answer));
    }

    /// Takes over what one of our own calls changed.
    pub(super) fn change(&self, id: &str, change: impl FnOnce(&mut V)) {
        if let Some((_, answer)) = self.0.lock().get_mut(id) {
            change(answer);
        }
    }

    /// Nothing that is known of an id holds any more.
    pub(super) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_seconds_and_follows_our_own_calls() {
        let recent = Recent::default();
        recent.put("a", Instant::now(), vec![1]);
        recent.change("a", |known| known.push(2));
        recent.change("b", |known| known.push(2));
        assert_eq!((recent.get("a"), recent.get("b")), (Some(vec![1, 2]), None));
        tokio::time::advance(JUST_NOW).await;
        assert_eq!(recent.get("a"), None);
        recent.put("a", Instant::now(), vec![3]);
        recent.forget("a");
        assert_eq!(recent.get("a"), None);
        recent.put("a", Instant::now() - Duration::from_secs(9), vec![4]);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(recent.get("a"), None, "it is as old as the question");
    }
}
