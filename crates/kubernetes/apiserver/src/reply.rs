//! Response bodies: one buffer, a list written piece by piece from shared bytes, a stream, or a watch.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::http::{HeaderValue, Response, StatusCode, header};
use ::http_body::{Body, Frame, SizeHint};
use bytes::{Bytes, BytesMut};
use capstan_transport::WatchEvent;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt as _};
use serde_json::Value;

use crate::negotiation::{Accepted, Encoding};
use crate::respond;
use crate::status::Status;
use crate::verbs::watch::WatchBody;

pub type Reply = Response<ReplyBody>;

/// Lists are sent in pieces of about this size, so that a large one is never assembled whole.
const PIECE: usize = 128 * 1024;

pub struct ReplyBody(Inner, Option<Ending>);

/// Somebody who wants to know when a body has ended, or was dropped.
pub(crate) trait AtEnd: Send {
    fn ended(self: Box<Self>);
}

/// Exists as long as the body.
struct Ending(Option<Box<dyn AtEnd>>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(waiting) = self.0.take() {
            waiting.ended();
        }
    }
}

enum Inner {
    Full(Option<Bytes>),
    /// One document, which is followed by a newline on the wire.
    Line(Option<Bytes>),
    Pieces {
        left: VecDeque<Bytes>,
        bytes: u64,
    },
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    Watch(Box<WatchBody>),
    Gzip {
        left: VecDeque<Bytes>,
        encoder: Option<Box<GzEncoder<Vec<u8>>>>,
    },
}

impl ReplyBody {
    /// A body known whole.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into())), None)
    }

    /// A document of shared bytes, with a newline after it as Go's encoder writes.
    pub fn line(bytes: Bytes) -> Self {
        Self(Inner::Line(Some(bytes)), None)
    }

    /// Without the newline, for clients in this process: they share the bytes in the store.
    pub(crate) fn unterminated(self) -> Self {
        match self.0 {
            Inner::Line(bytes) => Self(Inner::Full(bytes), self.1),
            other => Self(other, self.1),
        }
    }

    /// A body of many shared parts, sent without assembling it first.
    pub fn pieces(parts: Vec<Bytes>) -> Self {
        let bytes = parts.iter().map(|p| p.len() as u64).sum();
        Self(Inner::Pieces { left: parts.into(), bytes }, None)
    }

    /// A body that goes on until the stream ends.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)), None)
    }

    /// A watch, which is encoded only if somebody reads it as bytes.
    pub(crate) fn watch(body: WatchBody) -> Self {
        Self(Inner::Watch(Box::new(body)), None)
    }
}

impl ReplyBody {
    /// The events of a watch whose client wants them in JSON and whole; otherwise the body.
    pub(crate) fn into_events(self) -> Result<impl Stream<Item = Vec<WatchEvent>> + Send, Self> {
        match self.0 {
            Inner::Watch(watch) => match watch.into_events() {
                // What waits for the end of the body waits for the end of the events.
                Ok(events) => {
                    let ending = self.1;
                    Ok(events.inspect(move |_| {
                        let _ = &ending;
                    }))
                }
                Err(watch) => Err(Self(Inner::Watch(Box::new(watch)), self.1)),
            },
            other => Err(Self(other, self.1)),
        }
    }

    /// Whether it goes on until its client or the server ends it.
    pub(crate) fn is_long_running(&self) -> bool {
        matches!(self.0, Inner::Stream(_) | Inner::Watch(_))
    }

    /// Reports when the body has ended or was dropped.
    pub(crate) fn at_end(&mut self, waiting: impl AtEnd + 'static) {
        self.1 = Some(Ending(Some(Box::new(waiting))));
    }

    /// A body known whole.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        match &self.0 {
            Inner::Full(bytes) | Inner::Line(bytes) => bytes.clone(),
            Inner::Pieces { left, bytes } => {
                let mut joined = BytesMut::with_capacity(usize::try_from(*bytes).ok()?);
                left.iter().for_each(|part| joined.extend_from_slice(part));
                Some(joined.freeze())
            }
            Inner::Stream(_) | Inner::Watch(_) | Inner::Gzip { .. } => None,
        }
    }

    /// Its size; none of a stream, which has no end yet.
    pub(crate) fn known_size(&self) -> Option<u64> {
        match &self.0 {
            Inner::Full(bytes) => Some(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Inner::Line(bytes) => Some(bytes.as_ref().map_or(0, |b| b.len() as u64 + 1)),
            Inner::Pieces { bytes, .. } => Some(*bytes),
            Inner::Stream(_) | Inner::Watch(_) | Inner::Gzip { .. } => None,
        }
    }

    /// The same body as gzip, compressed piece by piece as it is sent. Streams stay as they are.
    pub(crate) fn compressed(self) -> Self {
        let left = match self.0 {
            Inner::Full(bytes) => bytes.into_iter().collect(),
            Inner::Line(bytes) => bytes.into_iter().chain([Bytes::from_static(b"\n")]).collect(),
            Inner::Pieces { left, .. } => left,
            other => return Self(other, self.1),
        };
        let encoder = Some(Box::new(GzEncoder::new(Vec::new(), Compression::fast())));
        Self(Inner::Gzip { left, encoder }, self.1)
    }
}

/// The next bytes of a compressed body: about as many as one piece of the plain one gives.
fn compress_piece(
    left: &mut VecDeque<Bytes>,
    encoder: &mut Option<Box<GzEncoder<Vec<u8>>>>,
) -> Option<Bytes> {
    loop {
        let mut writer = encoder.take()?;
        let mut taken = 0;
        while taken < PIECE
            && let Some(mut part) = left.pop_front()
        {
            let now = part.split_to(part.len().min(PIECE));
            taken += now.len();
            if !part.is_empty() {
                left.push_front(part);
            }
            // Writing into memory does not fail.
            let _ = writer.write_all(&now);
        }
        if left.is_empty() {
            return writer.finish().ok().map(Bytes::from);
        }
        let out = std::mem::take(writer.get_mut());
        *encoder = Some(writer);
        // The encoder keeps what it has not decided on yet.
        if !out.is_empty() {
            return Some(out.into());
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Full(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            // A copy costs less than a frame of its own for the newline.
            Inner::Line(bytes) => {
                Poll::Ready(bytes.take().map(|b| Ok(Frame::data([&b[..], b"\n"].concat().into()))))
            }
            Inner::Pieces { left, bytes } => {
                let Some(first) = left.pop_front() else { return Poll::Ready(None) };
                let mut piece = first;
                if piece.len() < PIECE && !left.is_empty() {
                    let mut joined = BytesMut::with_capacity(PIECE + PIECE / 8);
                    joined.extend_from_slice(&piece);
                    while joined.len() < PIECE
                        && let Some(next) = left.pop_front()
                    {
                        joined.extend_from_slice(&next);
                    }
                    piece = joined.freeze();
                }
                *bytes = bytes.saturating_sub(piece.len() as u64);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Inner::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|b| Ok(Frame::data(b))))
            }
            Inner::Watch(watch) => watch.poll_bytes(cx).map(|next| next.map(|b| Ok(Frame::data(b)))),
            Inner::Gzip { left, encoder } => {
                Poll::Ready(compress_piece(left, encoder).map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Full(bytes) | Inner::Line(bytes) => bytes.is_none(),
            Inner::Pieces { left, .. } => left.is_empty(),
            Inner::Stream(_) | Inner::Watch(_) => false,
            Inner::Gzip { encoder, .. } => encoder.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.known_size().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A JSON response of finished bytes.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Reply {
    with_type(code, "application/json", ReplyBody::full(bytes))
}

pub fn json(code: StatusCode, value: &Value) -> Reply {
    json_bytes(code, line(value))
}

/// A response of plain text. Browsers must not guess another type: it may contain parts of the request.
pub fn text(code: StatusCode, text: impl Into<String>) -> Reply {
    let mut reply = with_type(code, "text/plain; charset=utf-8", ReplyBody::full(text.into()));
    no_sniffing(&mut reply);
    reply
}

/// A response with a content type.
pub fn with_type(code: StatusCode, content_type: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    reply
}

/// Forbids browsers to guess the type of a body that contains parts of a request.
pub fn no_sniffing(reply: &mut Reply) {
    reply.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// A failure as a `Status` response, for a client that accepts what `accepted` says; indented JSON if it accepts
/// nothing that we have.
pub fn failure(status: &Status, accepted: Option<Accepted>) -> Reply {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = encoded_failure(code, status, accepted);
    if let Some(seconds) = status.retry_after {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

fn encoded_failure(code: StatusCode, status: &Status, accepted: Option<Accepted>) -> Reply {
    let encoding = accepted.map_or(Encoding::Json, |accepted| accepted.encoding);
    if encoding != Encoding::Json
        && let Some(accepted) = accepted
        && let Ok(reply) = respond::encode_as(accepted, code, &status.to_json())
    {
        return reply;
    }
    // A status is made of texts and numbers, which always have a JSON form.
    if accepted.is_none_or(|accepted| accepted.pretty) {
        return json_bytes(code, serde_json::to_vec_pretty(status).unwrap_or_default());
    }
    let mut bytes = serde_json::to_vec(status).unwrap_or_default();
    bytes.push(b'\n');
    json_bytes(code, bytes)
}

/// The response to HEAD: what GET answers, without its body. A body would be a protocol error on HTTP/2.
pub fn without_body(reply: &mut Reply) {
    if let Some(size) = reply.body().known_size() {
        reply.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    }
    *reply.body_mut() = ReplyBody(Inner::Full(None), reply.body_mut().1.take());
}

/// JSON with the newline Go's encoder ends a document with.
pub fn line(value: &Value) -> Bytes {
    let mut text = capstan_builtin::text::to_vec(value);
    text.push(b'\n');
    text.into()
}
