//! GET with `watch`: the changes of a collection as they happen, resumable, with bookmarks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::{HeaderValue, StatusCode, header};
use bytes::{BufMut, Bytes, BytesMut};
use capstan_store::{Entry, Event, HistoryError, Watch, WatchError};
use serde_json::json;

use crate::call::Call;
use crate::digest::Digest;
use crate::metrics::Held;
use crate::reply::{self, ReplyBody};
use crate::respond::WatchShape;
use crate::selection::Selection;
use crate::status::{Result, Status};
use crate::verbs::Answer;
use crate::verbs::list::{parse_version, wait_for_version};

/// A quiet watch gets a bookmark this often.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts at least when the client names no time, as upstream's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);
/// How long a watch lasts at most. Clients ask for anything up to 2^63 seconds, which no clock can count to.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Marks the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Serves a watch.
pub(crate) async fn watch(call: Arc<Call>) -> Result<Answer> {
    let options = call.query.list_options(true)?;
    let shape = WatchShape::of(&call)?;
    let selection = Selection::new(&call, &options)?;
    let from = parse_version(&options.resource_version)?;
    let initial = options.send_initial_events == Some(true);
    let announce_end = initial && options.bookmarks;
    if initial {
        wait_for_version(&call, &options.resource_version).await?;
    }
    let store = call.parts.store.clone();
    let bucket = call.resource().bucket.clone();

    // What is there now and everything after it, without a gap: the snapshot names the revision the
    // watch goes on from.
    let (present, start) = if initial {
        let snapshot = store.snapshot(&bucket);
        let present: Vec<_> =
            snapshot.range(selection.prefix(), None).filter(|e| selection.matches(e)).cloned().collect();
        (present, snapshot.revision())
    } else if from == 0 {
        (Vec::new(), store.revision())
    } else {
        (Vec::new(), from)
    };
    let watch = match store.watch(&bucket, selection.prefix(), start) {
        Ok(watch) => Some(watch),
        // A version from the future is waited for in silence: its events are yet to come.
        Err(HistoryError::Future { .. }) => store.watch(&bucket, selection.prefix(), store.revision()).ok(),
        Err(HistoryError::Compacted { compacted, .. }) => {
            return Ok(Answer::Reply(stream_reply(
                &shape,
                ReplyBody::full(shape.error(&too_old(start, compacted))),
            )));
        }
    };
    let Some(watch) = watch else { return Err(Status::unavailable("the store is shutting down")) };
    let lasts = options.timeout.unwrap_or(DEFAULT_TIMEOUT).min(LONGEST);
    let deadline = tokio::time::Instant::now() + lasts;
    let (open, sent) = call.parts.metrics.watch(&call.route);
    let session = Session {
        _open: open,
        sent,
        ignore_until: if from > start { from } else { 0 },
        bookmarks: options.bookmarks,
        announce_end,
        started: start,
        call,
        shape: shape.clone(),
        selection,
        watch,
        deadline,
        present: present.into_iter(),
        phase: Phase::Initial,
    };
    let stream = futures::stream::unfold(session, |mut session| async move {
        session.next().await.map(|bytes| (bytes, session))
    });
    Ok(Answer::Reply(stream_reply(&shape, ReplyBody::stream(stream))))
}

fn stream_reply(shape: &WatchShape, body: ReplyBody) -> reply::Reply {
    let mut reply = reply::with_type(StatusCode::OK, shape.content_type(), body);
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

#[derive(PartialEq)]
enum Phase {
    Initial,
    Live,
    Ended,
}

struct Session {
    _open: Held,
    /// Events sent.
    sent: Arc<AtomicU64>,
    call: Arc<Call>,
    shape: WatchShape,
    selection: Selection,
    watch: Watch<Digest>,
    deadline: tokio::time::Instant,
    present: std::vec::IntoIter<Arc<Entry<Digest>>>,
    phase: Phase,
    started: u64,
    ignore_until: u64,
    bookmarks: bool,
    announce_end: bool,
}

/// Initial events sent in one piece.
const INITIAL_BATCH: usize = 64;
/// Bytes after which a piece of initial events is sent, full or not: a client that does not read leaves one piece
/// unsent.
const INITIAL_BYTES: usize = 1 << 20;

impl Session {
    /// The next bytes to send; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.phase {
                Phase::Ended => return None,
                Phase::Initial => {
                    let mut out = BytesMut::new();
                    for _ in 0..INITIAL_BATCH {
                        if out.len() >= INITIAL_BYTES {
                            break;
                        }
                        let Some(entry) = self.present.next() else { break };
                        match self.shape.event(&self.call, "ADDED", &entry, None).await {
                            Ok(bytes) => {
                                self.sent.fetch_add(1, Ordering::Relaxed);
                                out.put(bytes);
                            }
                            Err(status) => return Some(self.fail(&status)),
                        }
                    }
                    if !out.is_empty() {
                        return Some(out.freeze());
                    }
                    self.phase = Phase::Live;
                    if self.announce_end {
                        return self.bookmark(self.started, true);
                    }
                }
                Phase::Live => {
                    if let Some(bytes) = self.live().await {
                        return Some(bytes);
                    }
                }
            }
        }
    }

    async fn live(&mut self) -> Option<Bytes> {
        let bookmark_at = tokio::time::Instant::now() + BOOKMARK_EVERY;
        let batch = tokio::select! {
            biased;
            batch = self.watch.next() => batch,
            () = tokio::time::sleep_until(self.deadline) => {
                self.phase = Phase::Ended;
                let progress = self.watch.progress();
                return if self.bookmarks { self.bookmark(progress, false) } else { None };
            }
            () = tokio::time::sleep_until(bookmark_at), if self.bookmarks => {
                let progress = self.watch.progress();
                return self.bookmark(progress, false);
            }
        };
        let batch = match batch {
            Ok(batch) => batch,
            Err(WatchError::Closed) => {
                self.phase = Phase::Ended;
                return None;
            }
            Err(WatchError::Lagged { .. } | WatchError::Compacted { .. }) => {
                let status = Status::expired("too old resource version: the watch fell too far behind");
                return Some(self.fail(&status));
            }
        };
        let mut out = BytesMut::new();
        for event in &batch.events {
            if event.revision <= self.ignore_until {
                continue;
            }
            match self.encode(event).await {
                Ok(Some(bytes)) => {
                    self.sent.fetch_add(1, Ordering::Relaxed);
                    out.put(bytes);
                }
                Ok(None) => {}
                Err(status) => return Some(self.fail(&status)),
            }
        }
        (!out.is_empty()).then(|| out.freeze())
    }

    /// One store event as this watcher sees it: an object may enter or leave the selection.
    async fn encode(&self, event: &Event<Digest>) -> Result<Option<Bytes>> {
        let selected = |entry: &Option<Arc<Entry<Digest>>>| {
            entry.as_ref().filter(|entry| self.selection.matches(entry)).cloned()
        };
        let (now, before) = (selected(&event.current), selected(&event.previous));
        Ok(Some(match (now, before) {
            (Some(entry), None) => self.shape.event(&self.call, "ADDED", &entry, None).await?,
            (Some(entry), Some(_)) => self.shape.event(&self.call, "MODIFIED", &entry, None).await?,
            (None, Some(entry)) => {
                // Deleted, or changed so that it is no longer selected: the last state the watcher
                // knows, at the revision of the change.
                let last = match (&event.current, &event.last) {
                    (None, Some(last)) => last.clone(),
                    _ => entry.restamped(event.revision),
                };
                self.shape.event(&self.call, "DELETED", &entry, Some(last)).await?
            }
            (None, None) => return Ok(None),
        }))
    }

    fn fail(&mut self, status: &Status) -> Bytes {
        self.phase = Phase::Ended;
        self.shape.error(status)
    }

    fn bookmark(&self, revision: u64, initial_end: bool) -> Option<Bytes> {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
        }
        self.shape.bookmark(&self.call, metadata).ok()
    }
}

fn too_old(asked: u64, compacted: u64) -> Status {
    Status::expired(format!("too old resource version: {asked} ({compacted})"))
}
