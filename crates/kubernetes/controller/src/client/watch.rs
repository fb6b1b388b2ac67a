//! The events of a watch, cut out of the body line by line.

use bytes::{Buf, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

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
    /// Bytes of `buffer` known to hold no end of line.
    scanned: usize,
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
    pub(super) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), scanned: 0 }
    }

    /// The next event; `None` when the server ends the watch in good order.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        loop {
            if let Some(line) = self.line() {
                return Some(event(&line));
            }
            match self.body.next().await? {
                Ok(piece) => self.buffer.extend_from_slice(&piece),
                Err(error) => return Some(Err(error.into())),
            }
        }
    }

    /// An event that has arrived already, without waiting.
    pub fn ready(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        self.line().map(|line| event(&line))
    }

    fn line(&mut self) -> Option<Bytes> {
        loop {
            let Some(at) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') else {
                self.scanned = self.buffer.len();
                return None;
            };
            let line = self.buffer.split_to(self.scanned + at).freeze();
            self.buffer.advance(1);
            self.scanned = 0;
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Some(line);
            }
        }
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
