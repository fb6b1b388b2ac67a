//! Keeps a cache as the server is: a streaming list, a watch that goes on from there, again and again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::objects::Source;
use super::{Cache, Cached};
use crate::client::{ApiError, Client, List, ListOptions, WatchEvent};

/// First and longest pause after a failure, as client-go's reflector.
const PAUSES: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));
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
    let mut pause = PAUSES.0;
    let mut from: Option<u64> = None;
    let mut streaming = true;
    loop {
        let result = match from {
            Some(version) => watch(&cache, &client, version, &mut from).await,
            None if streaming => stream(&cache, &client, &mut from).await,
            None => list(&cache, &client, &mut from).await.map(|()| End::Resume),
        };
        match result {
            Ok(End::Resume) => {
                pause = PAUSES.0;
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
            Err(error) if error.is_not_found() => pause = pause.min(UNKNOWN_KIND),
            Err(error) => {
                tracing::warn!(kind = %cache.kind(), %error, "following objects failed; trying again");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
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
