//! Answering a request that came over a connection, also when its client does not wait for the response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::{Method, Response, Version};
use ::http_body::{Body, Frame, SizeHint};
use bytes::Bytes;
use hyper::body::Incoming;

use super::body::BusyBody;

/// A request on its way to a response.
///
/// The transport drops it when the client resets its stream or closes the connection. A read ends there. A changing
/// request goes on in a task of its own: its write may already be in a commit, and the audit event, the controllers
/// and whatever has to be undone come after that.
pub(super) struct Answering {
    /// `None` while it is polled and after it has ended.
    request: Option<Pin<Box<dyn Future<Output = Response<BusyBody>> + Send>>>,
    begun: bool,
    to_its_end: bool,
}

impl Answering {
    /// `to_its_end` is whether it goes on without its client.
    pub fn new(request: impl Future<Output = Response<BusyBody>> + Send + 'static, to_its_end: bool) -> Self {
        Self { request: Some(Box::pin(request)), begun: false, to_its_end }
    }
}

impl Future for Answering {
    type Output = Result<Response<BusyBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Taken out: after a panic it must not be polled again.
        let Some(mut request) = self.request.take() else { return Poll::Pending };
        self.begun = true;
        let answered = request.as_mut().poll(cx);
        if answered.is_pending() {
            self.request = Some(request);
        }
        answered.map(Ok)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if self.to_its_end
            && self.begun
            && let Some(request) = self.request.take()
            // A runtime that is shutting down takes no more tasks; its requests end with it.
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(request);
        }
    }
}

/// Whether a request may change something.
pub(super) fn is_changing(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A request body that was cut off. The request has no effect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CutOff {
    #[error(transparent)]
    Transport(#[from] hyper::Error),
    #[error("the client reset the stream before the end of the body")]
    Reset,
}

/// A request body that ends only where its client has ended it. hyper also ends one at a reset without an error code,
/// and the rest of a document is another document.
pub(super) struct Received {
    body: Incoming,
    streams: bool,
}

impl Received {
    pub fn new(body: Incoming, version: Version) -> Self {
        Self { body, streams: version == Version::HTTP_2 }
    }
}

impl Body for Received {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let next = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match next {
            None if self.streams && !self.body.is_end_stream() => Some(Err(CutOff::Reset)),
            next => next.map(|frame| frame.map_err(CutOff::from)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
