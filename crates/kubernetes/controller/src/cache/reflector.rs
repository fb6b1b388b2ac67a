//! Keeps a cache as the server is: a streaming list, a watch that goes on from there, again and again.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_object::Key;
use serde::de::Error as _;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::objects::Source;
use super::{Cache, Cached};
use crate::KindName;
use crate::client::{
    ApiError, Client, Exhausted, Limit, LimitExceeded, List, ListOptions, WatchEvent, WatchedObject,
};
use crate::reconcile::chain;

/// First and longest pause after a failure, as client-go's reflector.
const PAUSES: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));
/// A watch that lasted this long was healthy: what failed before it is forgotten. A shorter one is a failure however it
/// ended, or a server that ends every watch at once would be asked without a pause.
const HEALTHY: Duration = Duration::from_secs(10);
/// Failures in a row that are expected: a server restarts, a machine behind a load balancer goes, a definition that has
/// just been written is not served for a moment.
const EXPECTED: u32 = 3;
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

/// Follows the server until the task ends.
pub(super) async fn follow<T: Cached>(cache: Arc<Cache<T>>, client: Client) {
    if let Some(share) = client.limits().cached() {
        cache.limit(share);
    }
    let mut pauses = Pauses::new(client.limits().server(), cache.kind());
    let mut from: Option<u64> = None;
    let mut streaming = true;
    loop {
        let begun = Instant::now();
        let result = match from {
            Some(version) => watch(&cache, &client, version, &mut from).await,
            None if streaming => stream(&cache, &client, &mut from).await,
            None => match list(&cache, &client, &mut from).await {
                // The watch that follows says whether the server is healthy.
                Ok(()) => {
                    cache.report(None);
                    continue;
                }
                Err(error) => Err(error),
            },
        };
        let healthy = begun.elapsed() >= HEALTHY;
        if healthy {
            pauses.failures = 0;
        }
        let mut longest = PAUSES.1;
        cache.report(result.as_ref().err().map(|error| chain(error)));
        match result {
            Ok(End::Resume) if healthy => continue,
            Ok(End::Resume) => {}
            Ok(End::Relist) => from = None,
            Err(error) if error.is_expired() => {
                from = None;
                if pauses.failures == 0 {
                    pauses.failures = 1;
                    continue;
                }
            }
            // A server that does not know streaming lists says that the request is wrong.
            Err(error) if streaming && from.is_none() && error.is_invalid() => {
                streaming = false;
                continue;
            }
            // The kind is not defined, or not yet.
            Err(error) if error.is_not_found() => longest = UNKNOWN_KIND,
            Err(error) => {
                if let ApiError::Limit(LimitExceeded {
                    limit: Limit::Cached(_) | Limit::Process(_), ..
                }) = error
                {
                    // Objects were left out.
                    from = None;
                }
                if pauses.failures < EXPECTED {
                    tracing::debug!(kind = %cache.kind(), error = chain(&error), "following objects failed; retrying");
                } else {
                    tracing::warn!(
                        kind = %cache.kind(), error = chain(&error), failures = pauses.failures + 1,
                        "following objects fails repeatedly; retrying"
                    );
                }
            }
        }
        tokio::time::sleep(pauses.next(longest)).await;
    }
}

/// The pauses after failures in a row: twice as long each time, and never all of the process's at the same moment.
/// What spreads them is a hash, so that one seed still gives one trace.
#[derive(Debug)]
struct Pauses {
    failures: u32,
    seed: DefaultHasher,
}

impl Pauses {
    fn new(server: &str, kind: &KindName) -> Self {
        let mut seed = DefaultHasher::new();
        (server, kind).hash(&mut seed);
        Self { failures: 0, seed }
    }

    /// Between half and all of the time that the failures so far have earned.
    fn next(&mut self, longest: Duration) -> Duration {
        let doubled = PAUSES.0.saturating_mul(2u32.saturating_pow(self.failures)).min(longest);
        self.failures = self.failures.saturating_add(1);
        let mut hasher = self.seed.clone();
        self.failures.hash(&mut hasher);
        let per_mille = u32::try_from(hasher.finish() % 500).unwrap_or(0);
        doubled / 2 + doubled * per_mille / 1000
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
) -> Result<End, ApiError> {
    let options =
        ListOptions { initial_events: true, timeout_seconds: Some(WATCH_SECONDS), ..options(cache) };
    let mut events = client.watch(cache.kind(), &cache.scope().namespace, &options).await?;
    let mut named = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Present(object) if from.is_none() => {
                named.extend(take_in(cache, client, object, Source::List)?);
            }
            WatchEvent::Present(object) => {
                take_in(cache, client, object, Source::Watch)?;
            }
            WatchEvent::Gone(object) => cache.gone(object),
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
            cache.report(None);
        }
    }
    Ok(if from.is_some() { End::Resume } else { End::Relist })
}

/// A list page by page, for servers without streaming lists.
async fn list<T: Cached>(cache: &Cache<T>, client: &Client, from: &mut Option<u64>) -> Result<(), ApiError> {
    let mut options = client.paged(options(cache));
    let mut named = BTreeSet::new();
    for _ in 0..client.limits().sizes().pages {
        let page: List<Box<RawValue>> = client.list(cache.kind(), &cache.scope().namespace, &options).await?;
        for item in &page.items {
            let bytes = Bytes::copy_from_slice(item.get().as_bytes());
            named.extend(take_in(cache, client, bytes.into(), Source::List)?);
        }
        if page.next.is_empty() {
            let version = page.resource_version.parse().unwrap_or(0);
            cache.complete(&named, version);
            *from = Some(version);
            return Ok(());
        }
        options.next = page.next;
    }
    Err(client.too_many_pages())
}

/// Has the cache take an object in. Fails if there is no room for it, or if a server that is not trusted sends what is no
/// object: it could do so for ever.
fn take_in<T: Cached>(
    cache: &Cache<T>,
    client: &Client,
    object: WatchedObject,
    source: Source,
) -> Result<Option<Key>, ApiError> {
    let key = cache.present(object, source);
    if key.is_some() || client.limits().cached().is_none() {
        return Ok(key);
    }
    Err(match cache.exhausted() {
        Some(Exhausted::Server(most)) => client.limits().exceeded(Limit::Cached(most)),
        Some(Exhausted::Process(most)) => client.limits().exceeded(Limit::Process(most)),
        None => ApiError::Decode(serde_json::Error::custom("an object has no readable metadata")),
    })
}

/// A watch from a version.
async fn watch<T: Cached>(
    cache: &Cache<T>,
    client: &Client,
    version: u64,
    from: &mut Option<u64>,
) -> Result<End, ApiError> {
    let options = ListOptions {
        resource_version: version.to_string(),
        timeout_seconds: Some(WATCH_SECONDS),
        ..options(cache)
    };
    let mut events = client.watch(cache.kind(), &cache.scope().namespace, &options).await?;
    let mut reached = version;
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Present(object) => {
                take_in(cache, client, object, Source::Watch)?;
            }
            WatchEvent::Gone(object) => cache.gone(object),
            WatchEvent::Bookmark { resource_version, .. } => cache.advance(resource_version),
        }
        cache.report(None);
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

    /// What a server does with every watch.
    #[derive(Clone, Copy, PartialEq)]
    enum Habit {
        /// It cannot be reached.
        Refuses,
        /// A bookmark, and the connection breaks.
        BreaksOff,
        /// It ends in good order, at once.
        Ends,
        /// Everything is too old.
        Expires,
        /// It lasts a minute and ends in good order.
        Lasts,
        /// The first ones end at once, later ones last a minute.
        Recovers,
    }

    /// A server with a habit; and when it was asked.
    struct Unsteady {
        habit: Habit,
        asked: Mutex<Vec<Instant>>,
    }

    impl Transport for Unsteady {
        fn send(&self, _: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
            let mut asked = self.asked.lock();
            asked.push(Instant::now());
            let habit = match self.habit {
                Habit::Recovers if asked.len() > 6 => Habit::Lasts,
                Habit::Recovers => Habit::Ends,
                habit => habit,
            };
            let mark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
            let old = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}"#;
            let data = |text: &str| Ok(Frame::data(Bytes::from(format!("{text}\n"))));
            let pieces = match habit {
                Habit::Refuses => {
                    return Box::pin(std::future::ready(Err(TransportError::never_sent("refused"))));
                }
                Habit::BreaksOff => vec![data(mark), Err("the connection broke off")],
                Habit::Expires => vec![data(old)],
                _ => vec![data(mark)],
            };
            let end = futures::stream::once(async move {
                if habit == Habit::Lasts {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
                Ok(Frame::data(Bytes::new()))
            });
            let body = futures::stream::iter(pieces).chain(end).boxed();
            Box::pin(std::future::ready(Ok(Response::new(Body::new(StreamBody::new(body))))))
        }
    }

    /// Pauses between the requests of an hour, in milliseconds.
    async fn pauses(habit: Habit) -> Vec<u64> {
        let server = Arc::new(Unsteady { habit, asked: Mutex::default() });
        let caches = Caches::new("");
        caches.ensure_dynamic(&KindName::namespaced("", "v1", "Secret", "secrets"));
        caches.start(&Client::new(server.clone(), "test"));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let asked = server.asked.lock();
        asked
            .windows(2)
            .map(|pair| u64::try_from((pair[1] - pair[0]).as_millis()).unwrap_or(u64::MAX))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_watches_do_not_last_is_asked_ever_less_often() {
        for habit in [Habit::Refuses, Habit::BreaksOff, Habit::Ends] {
            let pauses = pauses(habit).await;
            for (n, pause) in pauses.iter().enumerate() {
                let earned = (800 << n.min(10)).min(30_000);
                assert!((earned / 2..=earned).contains(pause), "pause {n} is {pause}: {pauses:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_version_that_is_too_old_is_listed_anew_at_once_but_not_again_and_again() {
        let pauses = pauses(Habit::Expires).await;
        assert_eq!(pauses[0], 0);
        assert!(pauses[1] >= 800 && pauses[8..].iter().all(|pause| *pause >= 15_000), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_lasted_is_taken_up_at_once() {
        assert!(pauses(Habit::Lasts).await.iter().all(|pause| *pause == 60_000));
        let pauses = pauses(Habit::Recovers).await;
        assert!(pauses[5] > 10_000 && pauses[6..].iter().all(|pause| *pause == 60_000), "{pauses:?}");
    }

    #[test]
    fn servers_and_kinds_do_not_pause_for_the_same_time() {
        let pause = |server: &str, kind: &str| {
            Pauses::new(server, &KindName::namespaced("", "v1", kind, "x")).next(PAUSES.1)
        };
        let pauses = [pause("a", "Node"), pause("b", "Node"), pause("a", "Secret")];
        assert_eq!(pauses.iter().collect::<BTreeSet<_>>().len(), 3, "{pauses:?}");
    }
}
