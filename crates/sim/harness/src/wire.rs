//! What a process hears of its server: every watch passes here on its way, is shown to the checkers, and breaks on
//! request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use capstan_controller::{Body, Transport, TransportError};
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use serde::Deserialize;
use tokio::sync::watch;

use crate::gate::SimGate;

/// What a watch follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// Where the store keeps it.
    pub bucket: String,
    /// What its keys begin with.
    pub prefix: String,
    /// The selectors that leave some of it out; empty for all of it.
    pub selectors: String,
}

/// What a process heard on a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The watch begins: with all there is, or after a version.
    Begins(Option<u64>),
    /// An object is there, new or changed, in this version.
    Present(String, u64),
    /// An object went with this version.
    Gone(String, u64),
    /// Everything up to this version has been told.
    Everything(u64),
    /// The watch is over.
    Ends,
}

/// The way to the server from one process.
pub(crate) struct Wire {
    inner: Arc<dyn Transport>,
    gate: Arc<SimGate>,
    /// Watches so far: several may follow the same collection.
    watches: AtomicU64,
}

impl Wire {
    pub fn new(inner: Arc<dyn Transport>, gate: Arc<SimGate>) -> Self {
        Self { inner, gate, watches: AtomicU64::new(0) }
    }
}

impl Transport for Wire {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        let collection = watched(request.uri());
        Box::pin(async move {
            let response = self.inner.send(request).await?;
            let Some((collection, from)) = collection.filter(|_| response.status().is_success()) else {
                return Ok(response);
            };
            let (gate, cut) = (self.gate.clone(), self.gate.shared.cuts.subscribe());
            let watch = self.watches.fetch_add(1, Ordering::Relaxed);
            Ok(response.map(|body| {
                let ear = Ear { body, cut, gate, watch, collection, buffer: BytesMut::new() };
                ear.hears(&Told::Begins(from));
                let pieces = futures::stream::unfold(ear, |mut ear| async move {
                    let piece = ear.next().await?;
                    Some((piece.map(http_body::Frame::data), ear))
                });
                Body::new(http_body_util::StreamBody::new(pieces))
            }))
        })
    }
}

/// One watch that runs.
struct Ear {
    body: Body,
    cut: watch::Receiver<u64>,
    gate: Arc<SimGate>,
    watch: u64,
    collection: Collection,
    buffer: BytesMut,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.hears(&Told::Ends);
    }
}

impl Ear {
    fn hears(&self, told: &Told) {
        self.gate.told(self.watch, &self.collection, told);
    }

    async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        let piece = tokio::select! {
            biased;
            _ = self.cut.changed() => return Some(Err(TransportError::ambiguous("the connection was cut"))),
            piece = self.body.next() => piece?,
        };
        if let Ok(piece) = &piece {
            self.buffer.extend_from_slice(piece);
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                if let Some(told) = told(&line) {
                    self.hears(&told);
                }
            }
        }
        Some(piece)
    }
}

/// The collection a request watches, and the version after which; `None` for what is no watch.
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

/// What a line of a watch says; `None` for errors, which end it.
fn told(line: &[u8]) -> Option<Told> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let Meta { namespace, name, resource_version } = line.object.metadata;
    let version = resource_version.parse().ok()?;
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    match line.kind.as_str() {
        "ADDED" | "MODIFIED" => Some(Told::Present(key, version)),
        "DELETED" => Some(Told::Gone(key, version)),
        "BOOKMARK" => Some(Told::Everything(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_it_watches() {
        let of = |bucket: &str, prefix: &str, selectors: &str| Collection {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
            selectors: selectors.to_owned(),
        };
        for (uri, watched_there) in [
            ("/api/v1/secrets?watch=true&resourceVersion=7", Some((of("/secrets", "", ""), Some(7)))),
            ("/api/v1/namespaces?watch=true&sendInitialEvents=true", Some((of("/namespaces", "", ""), None))),
            (
                "/apis/sim.test/v1/namespaces/a/widgets?watch=true&labelSelector=x%3Dy&resourceVersion=1",
                Some((of("sim.test/widgets", "a/", "x%3Dy"), Some(1))),
            ),
            ("/api/v1/secrets?limit=500", None),
            ("/api/v1/namespaces/a/secrets/b", None),
        ] {
            assert_eq!(watched(&uri.parse().expect("a URI")), watched_there, "{uri}");
        }
    }
}
