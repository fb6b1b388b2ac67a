//! Bodies of responses on a connection. A large one is followed until its last byte is with the socket.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http_body::{Body, Frame, SizeHint};
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::activity::{Busy, UNREAD};
use crate::reply::ReplyBody;

/// Bodies up to this size are left to the transport: with the limit of streams they are 2 MiB of a connection.
const SMALL: u64 = 8 * 1024;

/// The client did not read the response.
#[derive(Debug, thiserror::Error)]
#[error("the client left the response unread for {} s", UNREAD.as_secs())]
pub(crate) struct Unread;

/// A response that is not small. Exists until the transport has sent or dropped all of it.
pub(super) struct Tracked {
    state: Mutex<State>,
    _busy: Busy,
}

struct State {
    /// `None` once it has ended, or its client has left it unread for too long.
    body: Option<ReplyBody>,
    /// Pieces that the transport has and has not sent.
    unsent: usize,
    /// Whether there was nothing more when the transport asked last.
    waiting: bool,
    /// When the client took something last.
    progress: Instant,
}

impl Tracked {
    /// Whether there has been something for the client for too long.
    pub fn is_unread(&self, now: Instant) -> bool {
        let state = self.state.lock();
        let caught_up = state.waiting && state.unsent == 0;
        !caught_up && now - state.progress >= UNREAD
    }

    /// Takes what is left of the body.
    pub fn take(&self) -> Option<ReplyBody> {
        self.state.lock().body.take()
    }

    fn progress(&self, sent: usize) {
        let mut state = self.state.lock();
        state.unsent -= sent;
        state.progress = Instant::now();
    }
}

/// A response body that keeps its connection busy until it ends.
pub(crate) struct BusyBody(Inner);

enum Inner {
    Small { body: ReplyBody, _busy: Busy },
    Tracked(Arc<Tracked>),
}

impl BusyBody {
    pub fn new(body: ReplyBody, busy: Busy) -> Self {
        if body.known_size().is_some_and(|bytes| bytes <= SMALL) {
            return Self(Inner::Small { body, _busy: busy });
        }
        // The transport may never ask for it.
        let state = State { body: Some(body), unsent: 0, waiting: false, progress: Instant::now() };
        let tracked = Arc::new(Tracked { state: Mutex::new(state), _busy: busy });
        tracked._busy.activity().track(&tracked);
        Self(Inner::Tracked(tracked))
    }
}

impl Drop for BusyBody {
    fn drop(&mut self) {
        if let Inner::Tracked(tracked) = &self.0 {
            drop(tracked.take());
        }
    }
}

impl Body for BusyBody {
    type Data = Piece;
    type Error = Unread;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Unread>>> {
        match &mut self.0 {
            Inner::Small { body, .. } => Pin::new(body).poll_frame(cx).map(|next| {
                let frame = next?.unwrap_or_else(|never| match never {});
                Some(Ok(frame.map_data(|bytes| Piece { bytes, of: None })))
            }),
            Inner::Tracked(tracked) => {
                let mut state = tracked.state.lock();
                let Some(body) = &mut state.body else { return Poll::Ready(Some(Err(Unread))) };
                let next = Pin::new(body).poll_frame(cx);
                state.waiting = next.is_pending();
                let Poll::Ready(next) = next else { return Poll::Pending };
                state.progress = Instant::now();
                let Some(frame) = next else { return Poll::Ready(None) };
                state.unsent += 1;
                drop(state);
                let frame = frame.unwrap_or_else(|never| match never {});
                Poll::Ready(Some(Ok(frame.map_data(|bytes| Piece { bytes, of: Some(tracked.clone()) }))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Small { body, .. } => body.is_end_stream(),
            Inner::Tracked(tracked) => tracked.state.lock().body.as_ref().is_some_and(Body::is_end_stream),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Small { body, .. } => body.size_hint(),
            Inner::Tracked(tracked) => {
                tracked.state.lock().body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
            }
        }
    }
}

/// Bytes on their way to the socket. The transport drops them when they are sent.
pub(crate) struct Piece {
    bytes: Bytes,
    of: Option<Arc<Tracked>>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(tracked) = &self.of {
            tracked.progress(0);
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(tracked) = &self.of {
            tracked.progress(1);
        }
    }
}
