//! Watches inside a process: events as values, which are written as text only for those who want text.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, StreamExt as _};

use crate::TransportError;

#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// An object was added or modified, or is selected now.
    Present {
        /// The watcher did not know it before.
        added: bool,
        /// `namespace/name`, or the name of an object without a namespace.
        key: Arc<str>,
        /// The version in the object.
        resource_version: u64,
        /// The object as JSON; shared with the server.
        object: Bytes,
    },
    /// An object was deleted, or is no longer selected.
    Deleted {
        /// As of [`WatchEvent::Present`].
        key: Arc<str>,
        /// `metadata.uid`: another object may have the same key by now.
        uid: Box<str>,
        /// The version of the deletion, which is also in the object.
        resource_version: u64,
        /// Last state of the object as JSON.
        object: Bytes,
    },
    /// All events up to a version have been sent.
    Bookmark {
        resource_version: u64,
        /// The initial events of a streaming list end here.
        initial_events_end: bool,
        /// An object of the kind as JSON that has nothing but the version.
        object: Bytes,
    },
    /// The watch ends with an error.
    Error {
        /// HTTP code of the `Status`.
        code: u16,
        /// The `Status` as JSON.
        status: Bytes,
    },
}

impl WatchEvent {
    /// The type, as the API spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Present { added: true, .. } => "ADDED",
            Self::Present { .. } => "MODIFIED",
            Self::Deleted { .. } => "DELETED",
            Self::Bookmark { .. } => "BOOKMARK",
            Self::Error { .. } => "ERROR",
        }
    }

    /// What the event is about, as JSON.
    pub fn object(&self) -> &Bytes {
        match self {
            Self::Present { object, .. } | Self::Deleted { object, .. } | Self::Bookmark { object, .. } => {
                object
            }
            Self::Error { status, .. } => status,
        }
    }

    /// Events as a watch sends them in JSON, one a line.
    pub fn to_lines(events: &[Self]) -> Bytes {
        let parts = events.iter().flat_map(Self::line);
        let mut lines = BytesMut::with_capacity(parts.clone().map(<[u8]>::len).sum());
        parts.for_each(|part| lines.put_slice(part));
        lines.freeze()
    }

    fn line(&self) -> [&[u8]; 5] {
        [b"{\"type\":\"", self.kind().as_bytes(), b"\",\"object\":", self.object(), b"}\n"]
    }
}

pub struct Events(Pin<Box<dyn Stream<Item = Result<Vec<WatchEvent>, TransportError>> + Send>>);

impl Events {
    pub(crate) fn new(
        events: impl Stream<Item = Result<Vec<WatchEvent>, TransportError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(events))
    }

    /// The next events, in order; `None` at the end of the watch.
    pub async fn next(&mut self) -> Option<Result<Vec<WatchEvent>, TransportError>> {
        self.0.next().await
    }
}
