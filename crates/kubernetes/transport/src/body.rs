//! Answers, piece by piece.

use std::pin::Pin;

use bytes::Bytes;
use futures::Stream;
use http_body::Body as _;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::TransportError;
use crate::watch::{Events, WatchEvent};

/// The body of an answer, piece by piece.
pub struct Body(Inner);

enum Inner {
    Bytes(UnsyncBoxBody<Bytes, TransportError>),
    Events(Events),
}

impl Body {
    /// Any body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let body = body.map_err(|error| TransportError::ambiguous(error.to_string()));
        Self(Inner::Bytes(body.boxed_unsync()))
    }

    /// A watch in JSON that need not be written as text.
    pub fn watch(
        events: impl Stream<Item = Result<Vec<WatchEvent>, TransportError>> + Send + 'static,
    ) -> Self {
        Self(Inner::Events(Events::new(events)))
    }

    /// The events of a watch, if they come as values. Otherwise the body, which has text.
    pub fn events(self) -> Result<Events, Self> {
        match self.0 {
            Inner::Events(events) => Ok(events),
            text @ Inner::Bytes(_) => Err(Self(text)),
        }
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        let body = match &mut self.0 {
            Inner::Events(events) => {
                return Some(events.next().await?.map(|events| WatchEvent::to_lines(&events)));
            }
            Inner::Bytes(body) => body,
        };
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) if !data.is_empty() => return Some(Ok(data)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
