//! Answers, piece by piece.

use std::pin::Pin;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::TransportError;

/// The body of an answer, piece by piece.
pub struct Body(UnsyncBoxBody<Bytes, TransportError>);

impl Body {
    /// Any body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        Self(body.map_err(|error| TransportError::ambiguous(error.to_string())).boxed_unsync())
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.0).poll_frame(cx)).await?;
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) if !data.is_empty() => return Some(Ok(data)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
