//! A list of the cloud's things that several reconciles share.

use std::sync::Arc;
use std::time::Duration;

use capstan_openstack_client::List;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// All things of a kind in a project, as of the last list and our own calls since. Whoever needs a newer one lists it for
/// all; others wait for that answer.
pub(crate) struct Listing<R>(Mutex<State<R>>);

struct State<R> {
    /// When the list was asked for; `None` if it must be asked for again.
    at: Option<Instant>,
    items: Arc<Vec<R>>,
}

impl<R> Default for Listing<R> {
    fn default() -> Self {
        Self(Mutex::new(State { at: None, items: Arc::default() }))
    }
}

impl<R> Listing<R> {
    /// The list, not older than `age`.
    pub(crate) async fn read<E>(
        &self,
        age: Duration,
        list: impl Future<Output = Result<Vec<R>, E>>,
    ) -> Result<Arc<Vec<R>>, E> {
        let mut state = self.0.lock().await;
        if state.at.is_none_or(|at| at.elapsed() >= age) {
            let at = Instant::now();
            state.items = Arc::new(list.await?);
            state.at = Some(at);
        }
        Ok(state.items.clone())
    }

    /// The next reader lists again.
    pub(crate) async fn forget(&self) {
        self.0.lock().await.at = None;
    }
}

impl<R: List + Clone> Listing<R> {
    /// Takes over the answer of a call that created or changed a thing.
    pub(crate) async fn put(&self, item: &R) {
        let mut state = self.0.lock().await;
        if state.at.is_some() {
            let items = Arc::make_mut(&mut state.items);
            items.retain(|known| known.marker() != item.marker());
            items.push(item.clone());
        }
    }

    /// Applies a change that a call of ours made.
    pub(crate) async fn change(&self, id: &str, change: impl FnOnce(&mut R)) {
        let mut state = self.0.lock().await;
        if let Some(known) = Arc::make_mut(&mut state.items).iter_mut().find(|known| known.marker() == id) {
            change(known);
        }
    }

    /// Drops a thing that a call of ours removed.
    pub(crate) async fn remove(&self, id: &str) {
        let mut state = self.0.lock().await;
        Arc::make_mut(&mut state.items).retain(|known| known.marker() != id);
    }
}

#[cfg(test)]
mod tests {
    use capstan_openstack_client::network::Network;

    use super::*;

    fn network(id: &str) -> Network {
        Network { id: id.into(), ..Network::default() }
    }

    async fn read(listing: &Listing<Network>, age: u64, answer: &[&str]) -> Vec<String> {
        let list = async { Ok::<_, ()>(answer.iter().map(|id| network(id)).collect()) };
        let items = listing.read(Duration::from_secs(age), list).await.expect("a list");
        items.iter().map(|item| item.id.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_shared_until_it_is_too_old_and_follows_our_calls() {
        let listing = Listing::default();
        listing.put(&network("early")).await;
        assert_eq!(read(&listing, 60, &["a"]).await, ["a"], "a call before the first list adds nothing");
        listing.put(&network("b")).await;
        listing.remove("a").await;
        assert_eq!(read(&listing, 60, &["other"]).await, ["b"]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(read(&listing, 5, &["c"]).await, ["c"]);
        listing.forget().await;
        assert_eq!(read(&listing, 60, &["d"]).await, ["d"]);
    }
}
