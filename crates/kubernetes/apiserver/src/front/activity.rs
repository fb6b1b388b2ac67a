//! Activity of one connection: whether it is idle, and whether its client reads the responses.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::body::Tracked;
use crate::reply::ReplyBody;

/// Timeout of the first request.
const FIRST_REQUEST: Duration = Duration::from_secs(30);
/// Idle timeout of a connection, as upstream.
const IDLE: Duration = Duration::from_secs(90);
/// How long a client may leave a response unread. Does not apply to a watch without events.
pub(super) const UNREAD: Duration = Duration::from_secs(60);

/// Requests and responses in progress on one connection.
pub(super) struct Activity {
    state: Mutex<State>,
    /// Whether a response is tracked that was not before.
    tracks: Notify,
}

struct State {
    /// Requests whose response is not finished.
    open: usize,
    /// Whether there was a request.
    served: bool,
    /// Start of the connection or end of the last response.
    since: Instant,
    /// Responses that are not small.
    tracked: Vec<Weak<Tracked>>,
    /// Length of `tracked` at which finished ones are removed.
    prune_at: usize,
}

/// A request in progress.
pub(super) struct Busy(Arc<Activity>);

impl Busy {
    pub fn activity(&self) -> &Activity {
        &self.0
    }
}

impl Activity {
    pub fn new() -> Arc<Self> {
        let state =
            State { open: 0, served: false, since: Instant::now(), tracked: Vec::new(), prune_at: 16 };
        Arc::new(Self { state: Mutex::new(state), tracks: Notify::new() })
    }

    /// Starts a request.
    pub fn begin(self: &Arc<Self>) -> Busy {
        let mut state = self.state.lock();
        state.open += 1;
        state.served = true;
        drop(state);
        Busy(self.clone())
    }

    /// Follows a response of this connection.
    pub fn track(&self, response: &Arc<Tracked>) {
        let mut state = self.state.lock();
        if state.tracked.len() >= state.prune_at {
            state.tracked.retain(|tracked| tracked.strong_count() > 0);
            state.prune_at = (2 * state.tracked.len()).max(16);
        }
        state.tracked.push(Arc::downgrade(response));
        drop(state);
        self.tracks.notify_one();
    }

    /// Resolves when the connection is to be closed: it has been idle for too long, or its client leaves a response
    /// unread, whatever else it does. What the transport holds of a response is only released with the connection.
    ///
    /// The begin and the end of a request do not wake it: a busy connection would wake it for nothing, again and
    /// again. It looks once in a while, and a connection cannot have been idle for longer than since the last look.
    pub async fn expired(&self) {
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
                Next::Unread => return,
                Next::Idle(at) if at <= now => return,
                Next::Idle(at) | Next::Look(at) => at,
            };
            let _ = tokio::time::timeout_at(at, self.tracks.notified()).await;
        }
    }
}

/// When to check the connection again.
enum Next {
    /// The connection is idle then, unless a request comes.
    Idle(Instant),
    /// Responses may have been left unread by then, or the connection is idle meanwhile.
    Look(Instant),
    /// A response is left unread.
    Unread,
}

/// What a sweep removed. Dropping it may end requests, which takes the lock of the connection: it must outlive the
/// guard of that lock.
#[derive(Default)]
struct Swept {
    unread: Vec<ReplyBody>,
    /// Every examined response. If its transport dropped it meanwhile, this is the last reference.
    examined: Vec<Arc<Tracked>>,
}

impl State {
    /// Looks for responses that were left unread for too long, and takes what is left of them.
    fn sweep(&mut self, now: Instant, swept: &mut Swept) -> Next {
        let mut unread = false;
        self.tracked.retain(|tracked| {
            let Some(tracked) = tracked.upgrade() else { return false };
            if tracked.is_unread(now) {
                unread = true;
                swept.unread.extend(tracked.take());
            }
            swept.examined.push(tracked);
            true
        });
        match self.tracked.is_empty() {
            _ if unread => Next::Unread,
            true => Next::Look(now + IDLE),
            false => Next::Look(now + UNREAD / 2),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.open -= 1;
        if state.open == 0 {
            state.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Buf as _, Bytes};
    use futures::StreamExt as _;
    use http_body_util::BodyExt as _;

    use super::super::body::{BusyBody, Piece};
    use super::*;

    async fn expires_after(activity: &Activity) -> u64 {
        let began = Instant::now();
        activity.expired().await;
        began.elapsed().as_secs()
    }

    async fn piece(body: &mut BusyBody) -> Piece {
        body.frame().await.expect("a frame").expect("no error").into_data().unwrap_or_else(|_| panic!("data"))
    }

    fn large() -> ReplyBody {
        ReplyBody::full(vec![b'x'; 1 << 20])
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_without_a_first_request_and_after_its_last_one() {
        let activity = Activity::new();
        assert_eq!(expires_after(&activity).await, 30);
        drop(activity.begin());
        assert_eq!(expires_after(&activity).await, 90);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_without_events_is_neither_idle_nor_unread() {
        let activity = Activity::new();
        let stream = futures::stream::iter([Bytes::from("event")]).chain(futures::stream::pending());
        let mut body = BusyBody::new(ReplyBody::stream(stream), activity.begin());
        drop(piece(&mut body).await);
        let day = Duration::from_secs(24 * 3600);
        let read = async { tokio::time::timeout(day, body.frame()).await.is_err() };
        tokio::select! {
            quiet = read => assert!(quiet, "no event comes"),
            () = activity.expired() => panic!("the watch was cut"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_the_transport_cannot_send_is_unread_although_no_other_comes() {
        let activity = Activity::new();
        let stream = futures::stream::iter([Bytes::from("event")]).chain(futures::stream::pending());
        let mut body = BusyBody::new(ReplyBody::stream(stream), activity.begin());
        let _unsent = piece(&mut body).await;
        let read = async { body.frame().await.is_some() };
        tokio::select! {
            _ = read => panic!("no event comes"),
            after = expires_after(&activity) => assert!((60..=90).contains(&after), "{after} s"),
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
    async fn a_response_that_is_left_unread_is_dropped_and_ends_the_connection() {
        let activity = Activity::new();
        let held = Arc::new(());
        let holds = held.clone();
        let stream = futures::stream::repeat_with(move || Bytes::from(format!("{holds:?}")));
        let mut body = BusyBody::new(ReplyBody::stream(stream), activity.begin());
        drop(piece(&mut body).await);
        let after = expires_after(&activity).await;
        assert!((60..=90).contains(&after), "{after} s");
        assert_eq!(Arc::strong_count(&held), 1, "what it held is released before the client reads on");
        assert!(body.frame().await.is_some_and(|frame| frame.is_err()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_response_is_unread_until_the_last_byte_is_sent() {
        let activity = Activity::new();
        let mut body = BusyBody::new(large(), activity.begin());
        let mut piece = piece(&mut body).await;
        // The transport has all of it, and forgets the body.
        drop(body);
        for _ in 0..10 {
            let waits = tokio::time::timeout(Duration::from_secs(50), activity.expired()).await;
            waits.expect_err("its client reads, slowly");
            piece.advance(1000);
        }
        let after = expires_after(&activity).await;
        assert!((60..=90).contains(&after), "{after} s");
        drop(piece);
        assert_eq!(expires_after(&activity).await, 90, "then the connection is idle");
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_the_transport_never_asks_for_is_unread() {
        let activity = Activity::new();
        let _body = BusyBody::new(large(), activity.begin());
        let after = expires_after(&activity).await;
        assert!((60..=90).contains(&after), "{after} s");
    }

    #[tokio::test(start_paused = true)]
    async fn small_responses_are_left_to_the_transport() {
        let activity = Activity::new();
        let _body = BusyBody::new(ReplyBody::full("ok"), activity.begin());
        assert!(activity.state.lock().tracked.is_empty());
    }
}
