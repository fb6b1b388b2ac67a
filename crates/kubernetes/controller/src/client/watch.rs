//! The events of a watch, cut out of the body document by document.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::limits::{Charge, Limit, Limits, held};
use super::{ApiError, Body};

/// One event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// An object is there, new or changed.
    Present(Bytes),
    /// An object is gone, or no longer selected.
    Gone(Bytes),
    /// Everything up to a version has been told.
    Bookmark {
        /// The version.
        resource_version: u64,
        /// What was there at the beginning has been told.
        initial_end: bool,
    },
}

/// A running watch.
pub struct WatchStream {
    body: Body,
    buffer: BytesMut,
    scan: Scan,
    limits: Arc<Limits>,
    /// For what is in the buffer.
    charge: Option<Charge>,
    begun: Instant,
    /// When the first byte of the event in the buffer arrived.
    event_begun: Option<Instant>,
}

/// How far a document was looked through for its end. Kubernetes writes one a line, which is quickly found; in-memory
/// servers of providers break lines and put nothing between two documents.
#[derive(Default)]
struct Scan {
    /// Bytes that need not be looked at again.
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
        let charge = limits.charge();
        let (buffer, scan) = (BytesMut::new(), Scan::default());
        Self { body, buffer, scan, limits, charge, begun: Instant::now(), event_begun: None }
    }

    /// The next event; `None` when the server ends the watch in good order, or when it has lasted as long as one may.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        loop {
            match self.document() {
                Ok(Some(document)) => return Some(event(&document)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            let piece = match self.limits.times() {
                None => self.body.next().await?,
                Some(times) => {
                    // A server whose bytes are always there must not keep the thread from others.
                    tokio::task::coop::consume_budget().await;
                    let end = self.begun + times.watch;
                    let due = self.event_begun.map_or(end, |begun| end.min(begun + times.event));
                    match tokio::time::timeout_at(due, self.body.next()).await {
                        Ok(piece) => piece?,
                        Err(_) if due == end => return None,
                        Err(_) => return Some(Err(self.limits.exceeded(Limit::EventTime(times.event)))),
                    }
                }
            };
            match piece {
                Ok(piece) => {
                    if let Err(error) = self.take_in(&piece) {
                        return Some(Err(error));
                    }
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// An event that has arrived already, without waiting.
    pub fn ready(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        self.document().transpose().map(|document| event(&document?))
    }

    fn take_in(&mut self, piece: &[u8]) -> Result<(), ApiError> {
        if let Some(charge) = &mut self.charge {
            charge.grow(piece.len()).map_err(|exhausted| self.limits.exhausted(exhausted))?;
        }
        self.buffer.extend_from_slice(piece);
        Ok(())
    }

    /// Takes bytes that were charged out of the buffer.
    fn split_charge(&mut self, bytes: usize) -> Option<Charge> {
        self.charge.as_mut().map(|charge| charge.split(bytes))
    }

    fn document(&mut self) -> Result<Option<Bytes>, ApiError> {
        if self.scan.at == 0 {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.buffer.advance(blank);
            self.split_charge(blank);
        }
        let end = self.scan.end(&self.buffer);
        let most = self.limits.sizes().event;
        if end.unwrap_or(self.buffer.len()) > most {
            return Err(self.limits.exceeded(Limit::Event(most)));
        }
        let Some(end) = end else {
            if !self.buffer.is_empty() && self.limits.times().is_some() {
                self.event_begun.get_or_insert_with(Instant::now);
            }
            return Ok(None);
        };
        self.scan = Scan::default();
        self.event_begun = None;
        let document = self.buffer.split_to(end).freeze();
        let mut charge = self.split_charge(end);
        self.limits.weigh(&document, &mut charge)?;
        Ok(Some(held(document, charge)))
    }
}

fn event(line: &Bytes) -> Result<WatchEvent, ApiError> {
    let parsed: Line<'_> = serde_json::from_slice(line).map_err(ApiError::Decode)?;
    let object = line.slice_ref(parsed.object.get().as_bytes());
    match parsed.kind {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Present(object)),
        "DELETED" => Ok(WatchEvent::Gone(object)),
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
            let value: serde_json::Value = serde_json::from_slice(&object).expect("an object");
            objects.push(value["name"].as_str().unwrap_or_default().to_owned());
        }
        objects
    }

    #[tokio::test]
    async fn events_are_told_apart_however_they_are_written_and_arrive() {
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
