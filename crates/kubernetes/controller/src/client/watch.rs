//! The events of a watch: as a server in this process hands them over, or cut out of a body document by document.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use capstan_object::Key;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::limits::{Charge, Limit, Limits, held};
use super::{ApiError, Body, Events, ServerEvent};

#[derive(Debug)]
pub enum WatchEvent {
    /// An object was added or modified.
    Present(WatchedObject),
    /// An object was deleted, or is no longer selected.
    Gone(WatchedObject),
    /// Everything up to a version has been sent.
    Bookmark {
        resource_version: u64,
        /// What was there at the beginning has been sent.
        initial_end: bool,
    },
}

#[derive(Debug)]
pub struct WatchedObject {
    /// The object as JSON.
    pub bytes: Bytes,
    /// Known without parsing if the server is in this process.
    pub(crate) identity: Option<Identity>,
}

impl From<Bytes> for WatchedObject {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, identity: None }
    }
}

/// Which object it is, and in what version.
#[derive(Debug)]
pub(crate) struct Identity {
    pub key: Key,
    pub version: u64,
    /// Known of deleted objects.
    pub uid: Option<Box<str>>,
}

impl Identity {
    fn new(key: &str, version: u64, uid: Option<Box<str>>) -> Self {
        let (namespace, name) = key.split_once('/').unwrap_or(("", key));
        Self { key: Key::new(namespace, name), version, uid }
    }
}

/// A running watch.
pub struct WatchStream {
    source: Source,
    limits: Arc<Limits>,
    begun: Instant,
}

enum Source {
    /// A server in this process.
    Events {
        events: Events,
        received: std::vec::IntoIter<ServerEvent>,
    },
    Text(Documents),
}

/// The documents of a body.
struct Documents {
    body: Body,
    buffer: BytesMut,
    scan: Scan,
    /// For what is in the buffer.
    charge: Option<Charge>,
    /// When the first byte of the event in the buffer arrived.
    event_begun: Option<Instant>,
}

/// How far a document was searched for its end. Kubernetes writes one a line, which is quickly found; in-memory
/// servers of providers break lines and put nothing between two documents.
#[derive(Default)]
struct Scan {
    /// Bytes that need not be searched again.
    at: usize,
    /// It goes over several lines: braces are counted.
    over_lines: bool,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// The length of the document that `bytes` begin with, if all of it is there.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        if !self.over_lines {
            let Some(end) = bytes[self.at..].iter().position(|byte| *byte == b'\n') else {
                self.at = bytes.len();
                return None;
            };
            let end = self.at + end;
            if end > 1 && bytes[end - 1] == b'}' {
                return Some(end);
            }
            *self = Self { over_lines: true, ..Self::default() };
        }
        while let Some(byte) = bytes.get(self.at) {
            self.at += 1;
            if self.closes(*byte) {
                return Some(self.at);
            }
        }
        None
    }

    /// Whether the document ends with this byte.
    fn closes(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Marker {
    metadata: MarkerMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkerMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl WatchStream {
    pub(super) fn new(body: Body, limits: Arc<Limits>) -> Self {
        let source = match body.events() {
            Ok(events) => Source::Events { events, received: Vec::new().into_iter() },
            Err(body) => Source::Text(Documents {
                body,
                buffer: BytesMut::new(),
                scan: Scan::default(),
                charge: limits.charge(),
                event_begun: None,
            }),
        };
        Self { source, limits, begun: Instant::now() }
    }

    /// The next event; `None` when the server ends the watch in good order, or when it has lasted as long as one may.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        loop {
            if let Some(event) = self.ready() {
                return Some(event);
            }
            let Some(times) = self.limits.times() else {
                match self.source.receive(&self.limits).await? {
                    Ok(()) => continue,
                    Err(error) => return Some(Err(error)),
                }
            };
            // A server whose bytes are always there must not keep the thread from others.
            tokio::task::coop::consume_budget().await;
            let end = self.begun + times.watch;
            let due = self.source.event_begun().map_or(end, |begun| end.min(begun + times.event));
            match tokio::time::timeout_at(due, self.source.receive(&self.limits)).await {
                Ok(received) => {
                    if let Err(error) = received? {
                        return Some(Err(error));
                    }
                }
                Err(_) if due == end => return None,
                Err(_) => return Some(Err(self.limits.exceeded(Limit::EventTime(times.event)))),
            }
        }
    }

    /// An event that has arrived already, without waiting.
    pub fn ready(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        match &mut self.source {
            Source::Events { received, .. } => received.next().map(|event| admitted(event, &self.limits)),
            Source::Text(documents) => {
                documents.next(&self.limits).transpose().map(|document| event(&document?))
            }
        }
    }
}

impl Source {
    /// Waits for more; `None` at the end.
    async fn receive(&mut self, limits: &Limits) -> Option<Result<(), ApiError>> {
        match self {
            Self::Events { events, received } => match events.next().await? {
                Ok(events) => {
                    *received = events.into_iter();
                    Some(Ok(()))
                }
                Err(error) => Some(Err(error.into())),
            },
            Self::Text(documents) => {
                let piece = documents.body.next().await?;
                Some(piece.map_err(ApiError::from).and_then(|piece| documents.take_in(&piece, limits)))
            }
        }
    }

    fn event_begun(&self) -> Option<Instant> {
        match self {
            // Events of a server in this process are whole.
            Self::Events { .. } => None,
            Self::Text(documents) => documents.event_begun,
        }
    }
}

impl Documents {
    fn take_in(&mut self, piece: &[u8], limits: &Limits) -> Result<(), ApiError> {
        if let Some(charge) = &mut self.charge {
            charge.grow(piece.len()).map_err(|exhausted| limits.exhausted(exhausted))?;
        }
        self.buffer.extend_from_slice(piece);
        Ok(())
    }

    /// Takes bytes that were charged out of the buffer.
    fn split_charge(&mut self, bytes: usize) -> Option<Charge> {
        self.charge.as_mut().map(|charge| charge.split(bytes))
    }

    /// The next document, if all of it has arrived.
    fn next(&mut self, limits: &Limits) -> Result<Option<Bytes>, ApiError> {
        if self.scan.at == 0 {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.buffer.advance(blank);
            self.split_charge(blank);
        }
        let end = self.scan.end(&self.buffer);
        let most = limits.sizes().event;
        if end.unwrap_or(self.buffer.len()) > most {
            return Err(limits.exceeded(Limit::Event(most)));
        }
        let Some(end) = end else {
            if !self.buffer.is_empty() && limits.times().is_some() {
                self.event_begun.get_or_insert_with(Instant::now);
            }
            return Ok(None);
        };
        self.scan = Scan::default();
        self.event_begun = None;
        let document = self.buffer.split_to(end).freeze();
        let mut charge = self.split_charge(end);
        limits.weigh(&document, &mut charge)?;
        Ok(Some(held(document, charge)))
    }
}

/// An event of a server in this process, within limits.
fn admitted(event: ServerEvent, limits: &Limits) -> Result<WatchEvent, ApiError> {
    let within_limits = |object: Bytes| {
        let most = limits.sizes().event;
        if object.len() > most {
            return Err(limits.exceeded(Limit::Event(most)));
        }
        let mut charge = limits.charge();
        if let Some(charge) = &mut charge {
            charge.grow(object.len()).map_err(|exhausted| limits.exhausted(exhausted))?;
        }
        limits.weigh(&object, &mut charge)?;
        Ok(held(object, charge))
    };
    match event {
        ServerEvent::Present { key, resource_version, object, .. } => {
            let identity = Some(Identity::new(&key, resource_version, None));
            Ok(WatchEvent::Present(WatchedObject { bytes: within_limits(object)?, identity }))
        }
        ServerEvent::Deleted { key, uid, resource_version, object } => {
            let uid = Some(uid).filter(|uid| !uid.is_empty());
            let identity = Some(Identity::new(&key, resource_version, uid));
            Ok(WatchEvent::Gone(WatchedObject { bytes: within_limits(object)?, identity }))
        }
        ServerEvent::Bookmark { resource_version, initial_events_end, .. } => {
            Ok(WatchEvent::Bookmark { resource_version, initial_end: initial_events_end })
        }
        ServerEvent::Error { code, status } => Err(ApiError::from_body(code, &status)),
    }
}

fn event(line: &Bytes) -> Result<WatchEvent, ApiError> {
    let parsed: Line<'_> = serde_json::from_slice(line).map_err(ApiError::Decode)?;
    let object = line.slice_ref(parsed.object.get().as_bytes());
    match parsed.kind {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Present(object.into())),
        "DELETED" => Ok(WatchEvent::Gone(object.into())),
        "BOOKMARK" => {
            let marker: Marker = serde_json::from_slice(&object).map_err(ApiError::Decode)?;
            Ok(WatchEvent::Bookmark {
                resource_version: marker.metadata.resource_version.parse().unwrap_or(0),
                initial_end: marker.metadata.annotations.contains_key("k8s.io/initial-events-end"),
            })
        }
        _ => {
            let code = serde_json::from_slice::<serde_json::Value>(&object)
                .ok()
                .and_then(|status| status["code"].as_u64())
                .and_then(|code| u16::try_from(code).ok());
            Err(ApiError::from_body(code.unwrap_or(500), &object))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// The objects of a watch that arrives in pieces of a size.
    async fn objects(body: &str, size: usize) -> Vec<String> {
        let pieces = body
            .as_bytes()
            .chunks(size)
            .map(|piece| Ok::<_, std::convert::Infallible>(Frame::data(Bytes::copy_from_slice(piece))));
        let pieces: Vec<_> = pieces.collect();
        let body = Body::new(StreamBody::new(futures::stream::iter(pieces).fuse()));
        let mut stream = WatchStream::new(body, Arc::new(Limits::in_process()));
        let mut objects = Vec::new();
        while let Some(event) = stream.next().await {
            let WatchEvent::Present(object) = event.expect("an event") else { panic!("an object") };
            let value: serde_json::Value = serde_json::from_slice(&object.bytes).expect("an object");
            objects.push(value["name"].as_str().unwrap_or_default().to_owned());
        }
        objects
    }

    #[tokio::test]
    async fn events_are_distinguished_however_they_are_written_and_arrive() {
        let compact = "{\"type\":\"ADDED\",\"object\":{\"name\":\"a\"}}\n\n\
                       {\"type\":\"MODIFIED\",\"object\":{\"name\":\"b}\\\"{\"}}\r\n";
        let indented = "{\n \"type\": \"ADDED\",\n \"object\": {\n  \"name\": \"a\"\n }\n}\
                        {\n \"type\": \"ADDED\",\n \"object\": {\n  \"name\": \"b}\\\"{\"\n }\n}";
        for body in [compact, indented] {
            for size in 1..body.len() {
                assert_eq!(objects(body, size).await, ["a", "b}\"{"], "{body} by {size}");
            }
        }
    }
}
