//! Activity of one connection: whether it is idle, and whether its client reads the responses.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use ::http_body::{Body, Frame, SizeHint};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::reply::ReplyBody;

/// Timeout of the first request.
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// Idle timeout of a connection, as upstream.
const IDLE: Duration = Duration::from_secs(90);
/// How long a client may leave a response unread. Does not apply to a watch without events.
const UNREAD: Duration = Duration::from_secs(60);

/// Requests and responses in progress on one connection.
pub(super) struct Activity {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Requests whose response is not finished.
    open: usize,
    /// Whether there was a request.
    served: bool,
    /// Start of the connection or end of the last response.
    since: Instant,
    /// Streamed responses.
    long: Vec<Weak<Mutex<StreamedResponse>>>,
    /// Length of `long` at which finished ones are removed.
    prune_at: usize,
}

struct StreamedResponse {
    /// `None` once its client has left it unread for too long.
    body: Option<(ReplyBody, Busy)>,
    /// When it produced a chunk; `None` while the client waits for the next one.
    unread_since: Option<Instant>,
}

/// A request in progress.
pub(super) struct Busy(Arc<Activity>);

/// The client did not read the response.
#[derive(Debug, thiserror::Error)]
#[error("the client left the response unread for {} s", UNREAD.as_secs())]
pub(crate) struct Unread;

impl Activity {
    pub fn new() -> Arc<Self> {
        let state = State { open: 0, served: false, since: Instant::now(), long: Vec::new(), prune_at: 16 };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    /// Starts a request.
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut state = self.state.lock();
        state.open += 1;
        state.served = true;
        drop(state);
        Busy(self.clone())
    }

    /// Resolves when the connection has been idle for too long. Drops responses that are left unread.
    pub async fn idle(&self) {
        loop {
            let now = Instant::now();
            let mut swept = Swept::default();
            let next = {
                let mut state = self.state.lock();
                match state.open {
                    0 => Next::Idle(state.since + if state.served { IDLE } else { FIRST_REQUEST }),
                    _ => state.sweep(now, &mut swept),
                }
            };
            // Without the lock, which ending a request takes.
            drop(swept);
            let at = match next {
                Next::Idle(at) if at <= now => return,
                Next::Idle(at) | Next::Sweep(at) => Some(at),
                Next::Change => None,
            };
            tokio::select! {
                () = async { tokio::time::sleep_until(at.unwrap_or(now)).await }, if at.is_some() => {}
                () = self.changed.notified() => {}
            }
        }
    }
}

/// When to check the connection again.
enum Next {
    /// The connection is idle then, unless a request comes.
    Idle(Instant),
    /// Responses may have been left unread by then.
    Sweep(Instant),
    /// Not before a change.
    Change,
}

/// What a sweep removed. Dropping it may end requests, which takes the lock of the connection: it must outlive the
/// guard of that lock.
#[derive(Default)]
struct Swept {
    unread: Vec<(ReplyBody, Busy)>,
    /// Every examined response. If its transport dropped it meanwhile, this is the last reference.
    examined: Vec<Arc<Mutex<StreamedResponse>>>,
}

impl State {
    /// Removes the responses that were left unread for too long.
    fn sweep(&mut self, now: Instant, swept: &mut Swept) -> Next {
        self.long.retain(|long| {
            let Some(long) = long.upgrade() else { return false };
            let mut examined = long.lock();
            let left = examined.unread_since.is_some_and(|since| now - since >= UNREAD);
            if left {
                swept.unread.extend(examined.body.take());
            }
            drop(examined);
            swept.examined.push(long);
            !left
        });
        if self.long.is_empty() { Next::Change } else { Next::Sweep(now + UNREAD / 2) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.open -= 1;
        if state.open == 0 {
            state.since = Instant::now();
            drop(state);
            self.0.changed.notify_one();
        }
    }
}

/// A response body that keeps its connection busy until it ends.
pub(crate) struct BusyBody(Inner);

enum Inner {
    /// In one chunk, which the transport takes at once.
    Whole {
        body: ReplyBody,
        _busy: Busy,
    },
    StreamedResponse(Arc<Mutex<StreamedResponse>>),
}

impl BusyBody {
    pub fn new(body: ReplyBody, busy: Busy) -> Self {
        if body.is_whole() {
            return Self(Inner::Whole { body, _busy: busy });
        }
        let activity = busy.0.clone();
        let long = Arc::new(Mutex::new(StreamedResponse { body: Some((body, busy)), unread_since: None }));
        let mut state = activity.state.lock();
        if state.long.len() >= state.prune_at {
            state.long.retain(|long| long.strong_count() > 0);
            state.prune_at = (2 * state.long.len()).max(16);
        }
        state.long.push(Arc::downgrade(&long));
        drop(state);
        activity.changed.notify_one();
        Self(Inner::StreamedResponse(long))
    }
}

impl Body for BusyBody {
    type Data = Bytes;
    type Error = Unread;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Unread>>> {
        match &mut self.0 {
            Inner::Whole { body, .. } => Pin::new(body)
                .poll_frame(cx)
                .map(|next| next.map(|frame| frame.map_err(|never| match never {}))),
            Inner::StreamedResponse(long) => {
                let mut long = long.lock();
                let Some((body, _)) = &mut long.body else { return Poll::Ready(Some(Err(Unread))) };
                let next = Pin::new(body).poll_frame(cx);
                long.unread_since = matches!(next, Poll::Ready(Some(_))).then(Instant::now);
                next.map(|next| next.map(|frame| frame.map_err(|never| match never {})))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole { body, .. } => body.is_end_stream(),
            Inner::StreamedResponse(long) => {
                long.lock().body.as_ref().is_some_and(|(body, _)| body.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole { body, .. } => body.size_hint(),
            Inner::StreamedResponse(long) => {
                long.lock().body.as_ref().map_or_else(SizeHint::default, |(body, _)| body.size_hint())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn idle_after(activity: &Activity) -> u64 {
        let began = Instant::now();
        activity.idle().await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_without_a_first_request_and_after_its_last_one() {
        let activity = Activity::new();
        assert_eq!(idle_after(&activity).await, 30);
        drop(activity.begin());
        assert_eq!(idle_after(&activity).await, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_without_events_is_neither_idle_nor_unread() {
        let activity = Activity::new();
        let stream = futures::stream::iter([Bytes::from("event")]).chain(futures::stream::pending());
        let mut body = BusyBody::new(ReplyBody::stream(stream), activity.begin());
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        let day = Duration::from_secs(24 * 3600);
        let read = async { tokio::time::timeout(day, body.frame()).await.expect_err("no event comes") };
        tokio::select! {
            _ = read => {}
            () = activity.idle() => panic!("the watch was cut"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_ends_while_its_connection_is_swept_ends_after_the_sweep() {
        let activity = Activity::new();
        let body = BusyBody::new(ReplyBody::stream(futures::stream::pending::<Bytes>()), activity.begin());
        let mut swept = Swept::default();
        let mut state = activity.state.lock();
        state.sweep(Instant::now(), &mut swept);
        drop(body);
        assert_eq!(state.open, 1, "its end waits for the lock");
        drop(state);
        drop(swept);
        assert_eq!(activity.state.lock().open, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_left_unread_is_dropped_and_the_connection_becomes_idle() {
        let activity = Activity::new();
        let held = Arc::new(());
        let holds = held.clone();
        let stream = futures::stream::repeat_with(move || Bytes::from(format!("{holds:?}")));
        let mut body = BusyBody::new(ReplyBody::stream(stream), activity.begin());
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        let after = idle_after(&activity).await;
        assert!((60 + 90..=90 + 90).contains(&after), "{after} s");
        assert_eq!(Arc::strong_count(&held), 1, "what it held is released before the client reads on");
        assert!(body.frame().await.is_some_and(|frame| frame.is_err()));
    }
}
