//! Taps the watches of a process: shows their events to the checkers and breaks them on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use capstan_controller::{Body, Events, ServerEvent, Transport, TransportError};
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use serde::Deserialize;
use tokio::sync::watch;

use crate::gate::SimGate;

/// The collection that a watch follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Bucket in the store.
    pub bucket: String,
    /// Prefix of its keys.
    pub prefix: String,
    /// Label and field selectors; empty for none.
    pub selectors: String,
}

/// An event that a process receives on a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The watch starts: with an initial list, or after a version.
    Started(Option<u64>),
    /// An object was added or modified.
    Present(String, u64),
    /// An object was deleted.
    Deleted(String, u64),
    /// All events up to this version have been sent.
    Bookmark(u64),
    Ended,
}

/// The transport of one process to its server.
pub(crate) struct WatchTap {
    inner: Arc<dyn Transport>,
    gate: Arc<SimGate>,
    /// Watches so far. Several may follow the same collection.
    watches: AtomicU64,
}

impl WatchTap {
    pub fn new(inner: Arc<dyn Transport>, gate: Arc<SimGate>) -> Self {
        Self { inner, gate, watches: AtomicU64::new(0) }
    }
}

impl Transport for WatchTap {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let collection = watched(request.uri());
        Box::pin(async move {
            let response = self.inner.send(request).await?;
            let Some((collection, from)) = collection.filter(|_| response.status().is_success()) else {
                return Ok(response);
            };
            let (gate, cut) = (self.gate.clone(), self.gate.observers.cuts.subscribe());
            let watch = self.watches.fetch_add(1, Ordering::Relaxed);
            let watch = TappedWatch { cut, gate, watch, collection };
            watch.report(&WatchEvent::Started(from));
            Ok(response.map(|body| match body.events() {
                Ok(events) => watch.tap_events(events),
                Err(body) => watch.tap_text(body),
            }))
        })
    }
}

/// A running watch.
struct TappedWatch {
    cut: watch::Receiver<u64>,
    gate: Arc<SimGate>,
    watch: u64,
    collection: Collection,
}

impl Drop for TappedWatch {
    fn drop(&mut self) {
        self.report(&WatchEvent::Ended);
    }
}

impl TappedWatch {
    fn report(&self, event: &WatchEvent) {
        self.gate.watch_event(self.watch, &self.collection, event);
    }

    /// The events of the server of this process.
    fn tap_events(self, events: Events) -> Body {
        Body::watch(futures::stream::unfold((self, events), |(mut watch, mut events)| async move {
            let next = watch.unless_cut(events.next()).await?;
            for event in next.iter().flatten() {
                if let Some(event) = reported(event) {
                    watch.report(&event);
                }
            }
            Some((next, (watch, events)))
        }))
    }

    /// The text of a server that a test stands in for.
    fn tap_text(self, body: Body) -> Body {
        let state = (self, body, BytesMut::new());
        let pieces = futures::stream::unfold(state, |(mut watch, mut body, mut buffer)| async move {
            let piece = watch.unless_cut(body.next()).await?;
            if let Ok(piece) = &piece {
                buffer.extend_from_slice(piece);
                while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    if let Some(event) = parse_event(&buffer.split_to(end + 1)) {
                        watch.report(&event);
                    }
                }
            }
            Some((piece.map(http_body::Frame::data), (watch, body, buffer)))
        });
        Body::new(http_body_util::StreamBody::new(pieces))
    }

    /// What comes next, or an error once the connection is cut.
    async fn unless_cut<T>(
        &mut self,
        next: impl Future<Output = Option<Result<T, TransportError>>>,
    ) -> Option<Result<T, TransportError>> {
        tokio::select! {
            biased;
            _ = self.cut.changed() => Some(Err(TransportError::ambiguous("the connection was cut"))),
            next = next => next,
        }
    }
}

/// An event as the checkers see it; `None` for errors, which end the watch.
fn reported(event: &ServerEvent) -> Option<WatchEvent> {
    match event {
        ServerEvent::Present { key, resource_version, .. } => {
            Some(WatchEvent::Present(key.to_string(), *resource_version))
        }
        ServerEvent::Deleted { key, resource_version, .. } => {
            Some(WatchEvent::Deleted(key.to_string(), *resource_version))
        }
        ServerEvent::Bookmark { resource_version, .. } => Some(WatchEvent::Bookmark(*resource_version)),
        ServerEvent::Error { .. } => None,
    }
}

/// The collection that a request watches, and the version it starts after; `None` if the request is not a watch.
fn watched(uri: &Uri) -> Option<(Collection, Option<u64>)> {
    let query: Vec<(&str, &str)> = uri.query()?.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let value = |name: &str| query.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    if value("watch") != Some("true") {
        return None;
    }
    let mut path = uri.path().split('/').skip(1);
    let group = match path.next()? {
        "api" => "",
        _ => path.next()?,
    };
    let mut rest = path.skip(1);
    let (prefix, plural) = match (rest.next()?, rest.next(), rest.next()) {
        ("namespaces", Some(namespace), Some(plural)) => (format!("{namespace}/"), plural),
        (plural, _, _) => (String::new(), plural),
    };
    let selectors = ["labelSelector", "fieldSelector"].map(|name| value(name).unwrap_or_default()).concat();
    let collection = Collection { bucket: format!("{group}/{plural}"), prefix, selectors };
    match value("sendInitialEvents") {
        Some("true") => Some((collection, None)),
        _ => Some((collection, Some(value("resourceVersion")?.parse().ok()?))),
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Named,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    metadata: Meta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    namespace: String,
    name: String,
    resource_version: String,
}

/// Parses a line of a watch; `None` for errors, which end the watch.
fn parse_event(line: &[u8]) -> Option<WatchEvent> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let Meta { namespace, name, resource_version } = line.object.metadata;
    let version = resource_version.parse().ok()?;
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    match line.kind.as_str() {
        "ADDED" | "MODIFIED" => Some(WatchEvent::Present(key, version)),
        "DELETED" => Some(WatchEvent::Deleted(key, version)),
        "BOOKMARK" => Some(WatchEvent::Bookmark(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_request_names_its_collection() {
        let of = |bucket: &str, prefix: &str, selectors: &str| Collection {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            selectors: selectors.to_owned(),
        };
        for (uri, expected) in [
            ("/api/v1/secrets?watch=true&resourceVersion=7", Some((of("/secrets", "", ""), Some(7)))),
            ("/api/v1/namespaces?watch=true&sendInitialEvents=true", Some((of("/namespaces", "", ""), None))),
            (
                "/apis/sim.test/v1/namespaces/a/widgets?watch=true&labelSelector=x%3Dy&resourceVersion=1",
                Some((of("sim.test/widgets", "a/", "x%3Dy"), Some(1))),
            ),
            ("/api/v1/secrets?limit=500", None),
            ("/api/v1/namespaces/a/secrets/b", None),
        ] {
            assert_eq!(watched(&uri.parse().expect("a URI")), expected, "{uri}");
        }
    }
}
