//! GET with `watch`: the changes of a collection as they happen, resumable, with bookmarks.
//!
//! ```text
//! store ── Session: selection, version of the request ──▶ events ─┬─▶ bytes, for clients on the wire
//!                                                                 └─▶ as they are, for clients of this process
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use capstan_store::{Entry, Event, HistoryError, Watch, WatchError};
use capstan_transport::WatchEvent;
use futures::Stream;
use serde_json::{Value, json};

use crate::call::Call;
use crate::digest::Digest;
use crate::metrics::Held;
use crate::reply::{self, ReplyBody};
use crate::respond::WatchShape;
use crate::selection::Selection;
use crate::status::{Result, Status};
use crate::verbs::Answer;
use crate::verbs::list::{parse_version, wait_for_version};
use crate::watches::{self, WatchPermit};

/// A quiet watch gets a bookmark this often.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts at least when the client names no time, as upstream's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);
/// How long a watch lasts at most. Clients ask for anything up to 2^63 seconds, which no clock can count to.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Marks the bookmark that ends the initial events of a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

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
    let slots = watches::slots(options.selector_entries(), call.query.bytes());
    let permit = call.parts.watches.admit(&call.user, slots)?;
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
        _permit: permit,
        sent,
        ignore_until: if from > start { from } else { 0 },
        bookmarks: options.bookmarks,
        announce_end,
        started: start,
        call: call.clone(),
        selection,
        watch,
        deadline,
        present: present.into_iter(),
        phase: Phase::Initial,
    };
    let events = futures::stream::unfold(session, |mut session| async move {
        session.next().await.map(|events| (events, session))
    });
    let body = ReplyBody::watch(WatchBody { events: Some(Box::pin(events)), call, shape: shape.clone() });
    Ok(Answer::Reply(stream_reply(&shape, body)))
}

/// The body of a watch: events, and how the client wants them written.
pub(crate) struct WatchBody {
    /// None once the watch has ended.
    events: Option<EventStream>,
    call: Arc<Call>,
    shape: WatchShape,
}

type EventStream = Pin<Box<dyn Stream<Item = Vec<WatchEvent>> + Send>>;

impl WatchBody {
    /// The events, if the client wants them in JSON and whole; otherwise the body, which encodes them.
    pub fn into_events(self) -> std::result::Result<EventStream, Self> {
        match self {
            Self { events: Some(events), shape, .. } if shape.is_plain() => Ok(events),
            other => Err(other),
        }
    }

    /// The next events as they are sent.
    pub fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        let Some(events) = std::task::ready!(events.as_mut().poll_next(cx)) else {
            self.events = None;
            return Poll::Ready(None);
        };
        Poll::Ready(Some(self.shape.encode(&self.call, &events).unwrap_or_else(|status| {
            self.events = None;
            self.shape.error(&status)
        })))
    }
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
    _permit: WatchPermit,
    sent: Arc<AtomicU64>,
    call: Arc<Call>,
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
    /// The next events; `None` ends the watch.
    async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            match self.phase {
                Phase::Ended => return None,
                Phase::Initial => {
                    let events = match self.initial().await {
                        Ok(events) => events,
                        Err(status) => return Some(self.fail(&status)),
                    };
                    if !events.is_empty() {
                        return Some(events);
                    }
                    self.phase = Phase::Live;
                    if self.announce_end {
                        return Some(self.bookmark(self.started, true));
                    }
                }
                Phase::Live => {
                    if let Some(events) = self.live().await {
                        return Some(events);
                    }
                }
            }
        }
    }

    /// The next of the objects that were there at the beginning.
    async fn initial(&mut self) -> Result<Vec<WatchEvent>> {
        let mut events = Vec::with_capacity(self.present.len().min(INITIAL_BATCH));
        let mut bytes = 0;
        while events.len() < INITIAL_BATCH
            && bytes < INITIAL_BYTES
            && let Some(entry) = self.present.next()
        {
            let event = self.object_event(true, &entry).await?;
            bytes += event.object().len();
            events.push(event);
        }
        self.count(&events);
        Ok(events)
    }

    async fn live(&mut self) -> Option<Vec<WatchEvent>> {
        let bookmark_at = tokio::time::Instant::now() + BOOKMARK_EVERY;
        let batch = tokio::select! {
            biased;
            batch = self.watch.next() => batch,
            () = tokio::time::sleep_until(self.deadline) => {
                self.phase = Phase::Ended;
                let progress = self.watch.progress();
                return self.bookmarks.then(|| self.bookmark(progress, false));
            }
            () = tokio::time::sleep_until(bookmark_at), if self.bookmarks => {
                let progress = self.watch.progress();
                return Some(self.bookmark(progress, false));
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
        let mut events = Vec::with_capacity(batch.events.len());
        for event in batch.events.iter().filter(|event| event.revision > self.ignore_until) {
            match self.selected(event).await {
                Ok(event) => events.extend(event),
                Err(status) => return Some(self.fail(&status)),
            }
        }
        self.count(&events);
        (!events.is_empty()).then_some(events)
    }

    /// One store event as this watcher sees it: an object may enter or leave the selection.
    async fn selected(&self, event: &Event<Digest>) -> Result<Option<WatchEvent>> {
        let selected = |entry: &Option<Arc<Entry<Digest>>>| {
            entry.as_ref().filter(|entry| self.selection.matches(entry)).cloned()
        };
        Ok(Some(match (selected(&event.current), selected(&event.previous)) {
            (Some(entry), before) => self.object_event(before.is_none(), &entry).await?,
            (None, Some(entry)) => {
                // Deleted, or changed so that it is no longer selected: the last state the watcher
                // knows, at the revision of the change.
                let last = match (&event.current, &event.last) {
                    (None, Some(last)) => last.clone(),
                    _ => entry.restamped(event.revision),
                };
                WatchEvent::Deleted {
                    key: entry.key.clone(),
                    uid: entry.digest().uid.clone(),
                    resource_version: event.revision,
                    object: self.call.render_bytes(&entry, last).await?,
                }
            }
            (None, None) => return Ok(None),
        }))
    }

    async fn object_event(&self, added: bool, entry: &Arc<Entry<Digest>>) -> Result<WatchEvent> {
        Ok(WatchEvent::Present {
            added,
            key: entry.key.clone(),
            resource_version: entry.revision,
            object: self.call.render(entry).await?,
        })
    }

    fn count(&self, events: &[WatchEvent]) {
        self.sent.fetch_add(events.len() as u64, Ordering::Relaxed);
    }

    fn fail(&mut self, status: &Status) -> Vec<WatchEvent> {
        self.phase = Phase::Ended;
        vec![WatchEvent::Error { code: status.code, status: status.to_json().to_string().into() }]
    }

    fn bookmark(&self, resource_version: u64, initial_events_end: bool) -> Vec<WatchEvent> {
        let mut metadata = json!({"resourceVersion": resource_version.to_string()});
        let resource = self.call.resource();
        if resource.custom().is_some() {
            // As upstream prints it where it has no type; clients decode into the same either way.
            metadata["creationTimestamp"] = Value::Null;
        }
        if initial_events_end {
            metadata["annotations"] = json!({ INITIAL_EVENTS_END: "true" });
        }
        let object =
            json!({"kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata});
        let object = object.to_string().into();
        vec![WatchEvent::Bookmark { resource_version, initial_events_end, object }]
    }
}

fn too_old(asked: u64, compacted: u64) -> Status {
    Status::expired(format!("too old resource version: {asked} ({compacted})"))
}
