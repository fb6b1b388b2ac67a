//! Keeps a cache as the server is: a streaming list, a watch that goes on from there, again and again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::objects::Source;
use super::{Cache, Cached};
use crate::client::{ApiError, Client, List, ListOptions, WatchEvent};
use crate::reconcile::chain;

/// First and longest pause after a failure, as client-go's reflector.
const PAUSES: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));
/// Failures in a row that are everyday: a server restarts, a machine behind a load balancer goes, a definition that has
/// just been written is not served for a moment.
const EVERYDAY: u32 = 3;
/// Longest pause for a kind the server does not know.
const UNKNOWN_KIND: Duration = Duration::from_secs(2);
/// Watches end after this long and are taken up again: upstream spreads them over 5 to 10 minutes.
const WATCH_SECONDS: u32 = 420;

/// Why following ended.
enum End {
    /// The watch ended or broke; the version to go on from is known.
    Resume,
    /// The version is too old: what is there must be listed again.
    Relist,
}

/// Follows the server for as long as the task lives.
pub(super) async fn follow<T: Cached>(cache: Arc<Cache<T>>, client: Client) {
    let mut trouble = Trouble::default();
    let mut from: Option<u64> = None;
    let mut streaming = true;
    loop {
        let mut answered = false;
        let result = match from {
            Some(version) => watch(&cache, &client, version, &mut from, &mut answered).await,
            None if streaming => stream(&cache, &client, &mut from, &mut answered).await,
            None => list(&cache, &client, &mut from).await.map(|()| End::Resume),
        };
        // A watch that broke off is not the failure that the last one was.
        if answered {
            trouble = Trouble::default();
        }
        match result {
            Ok(End::Resume) => {
                trouble = Trouble::default();
                continue;
            }
            Ok(End::Relist) => {
                from = None;
                continue;
            }
            Err(error) if error.is_expired() => {
                from = None;
                continue;
            }
            // A server that does not know streaming lists says that the request is wrong.
            Err(error) if streaming && from.is_none() && error.is_invalid() => {
                streaming = false;
                continue;
            }
            // The kind is not there yet: somebody is about to define it, or never will.
            Err(error) if error.is_not_found() => trouble.pause = trouble.pause.min(UNKNOWN_KIND),
            Err(error) if trouble.failures < EVERYDAY => {
                tracing::debug!(kind = %cache.kind(), error = chain(&error), "following objects failed; trying again");
            }
            Err(error) => {
                tracing::warn!(
                    kind = %cache.kind(), error = chain(&error), failures = trouble.failures + 1,
                    "following objects fails again and again; trying on"
                );
            }
        }
        tokio::time::sleep(trouble.pause).await;
        trouble.again();
    }
}

/// What has failed in a row.
#[derive(Debug, PartialEq)]
struct Trouble {
    failures: u32,
    pause: Duration,
}

impl Default for Trouble {
    fn default() -> Self {
        Self { failures: 0, pause: PAUSES.0 }
    }
}

impl Trouble {
    fn again(&mut self) {
        self.failures += 1;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }
}

fn options<T: Cached>(cache: &Cache<T>) -> ListOptions {
    ListOptions { labels: cache.scope().labels.clone(), ..ListOptions::default() }
}

/// A streaming list, and the watch that goes on after it.
async fn stream<T: Cached>(
    cache: &Cache<T>,
    client: &Client,
    from: &mut Option<u64>,
    answered: &mut bool,
) -> Result<End, ApiError> {
    let options =
        ListOptions { initial_events: true, timeout_seconds: Some(WATCH_SECONDS), ..options(cache) };
    let mut events = client.watch(cache.kind(), &cache.scope().namespace, &options).await?;
    *answered = true;
    let mut named = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Present(bytes) if from.is_none() => named.extend(cache.present(&bytes, Source::List)),
            WatchEvent::Present(bytes) => {
                cache.present(&bytes, Source::Watch);
            }
            WatchEvent::Gone(bytes) => cache.gone(&bytes),
            WatchEvent::Bookmark { resource_version, initial_end } => {
                if initial_end && from.is_none() {
                    cache.complete(&std::mem::take(&mut named), resource_version);
                    *from = Some(resource_version);
                }
                cache.advance(resource_version);
            }
        }
        if from.is_some() {
            *from = Some(cache.progress());
        }
    }
    Ok(if from.is_some() { End::Resume } else { End::Relist })
}

/// A list page by page, for servers without streaming lists.
async fn list<T: Cached>(cache: &Cache<T>, client: &Client, from: &mut Option<u64>) -> Result<(), ApiError> {
    let mut options = ListOptions { limit: Some(500), ..options(cache) };
    let mut named = BTreeSet::new();
    loop {
        let page: List<Box<RawValue>> = client.list(cache.kind(), &cache.scope().namespace, &options).await?;
        for item in &page.items {
            named.extend(cache.present(&Bytes::copy_from_slice(item.get().as_bytes()), Source::List));
        }
        if page.next.is_empty() {
            let version = page.resource_version.parse().unwrap_or(0);
            cache.complete(&named, version);
            *from = Some(version);
            return Ok(());
        }
        options.next = page.next;
    }
}

/// A watch from a version.
async fn watch<T: Cached>(
    cache: &Cache<T>,
    client: &Client,
    version: u64,
    from: &mut Option<u64>,
    answered: &mut bool,
) -> Result<End, ApiError> {
    let options = ListOptions {
        resource_version: version.to_string(),
        timeout_seconds: Some(WATCH_SECONDS),
        ..options(cache)
    };
    let mut events = client.watch(cache.kind(), &cache.scope().namespace, &options).await?;
    *answered = true;
    let mut reached = version;
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Present(bytes) => {
                cache.present(&bytes, Source::Watch);
            }
            WatchEvent::Gone(bytes) => cache.gone(&bytes),
            WatchEvent::Bookmark { resource_version, .. } => cache.advance(resource_version),
        }
        reached = reached.max(cache.progress());
        *from = Some(reached);
    }
    Ok(End::Resume)
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use futures::future::BoxFuture;
    use http::{Request, Response};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::super::Caches;
    use super::*;
    use crate::KindName;
    use crate::client::{Body, Transport, TransportError};

    /// A server whose connections never last, or that cannot be reached at all; and when it was asked.
    struct Unsteady {
        reachable: bool,
        asked: Mutex<Vec<Instant>>,
    }

    impl Transport for Unsteady {
        fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
            self.asked.lock().push(Instant::now());
            let mark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
            let pieces = [Ok(Frame::data(Bytes::from(format!("{mark}\n")))), Err("the connection broke off")];
            let answer = match self.reachable {
                true => Ok(Response::new(Body::new(StreamBody::new(futures::stream::iter(pieces).fuse())))),
                false => Err(TransportError { message: "refused".to_owned(), never_sent: true }),
            };
            Box::pin(std::future::ready(answer))
        }
    }

    /// Pauses between the first requests, in milliseconds.
    async fn pauses(reachable: bool) -> Vec<u128> {
        let server = Arc::new(Unsteady { reachable, asked: Mutex::default() });
        let caches = Caches::new("");
        caches.ensure_dynamic(&KindName::namespaced("", "v1", "Secret", "secrets"));
        caches.start(&Client::new(server.clone(), "test"));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let asked = server.asked.lock();
        asked.windows(2).take(4).map(|pair| (pair[1] - pair[0]).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_broke_off_is_taken_up_soon_however_often_that_happens() {
        assert_eq!(pauses(true).await, [800; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_asked_ever_less_often() {
        assert_eq!(pauses(false).await, [800, 1600, 3200, 6400]);
    }
}
