//! gRPC message framing: a flag, a length, the content.

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use prost::Message;

/// Content type of requests and responses.
pub const CONTENT_TYPE: &str = "application/grpc";
/// Trailer with the gRPC code.
pub const STATUS: &str = "grpc-status";
/// Trailer with the message, percent-encoded.
pub const MESSAGE: &str = "grpc-message";

const PREFIX: usize = 5;

/// A framed message.
pub fn encode(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(PREFIX + length);
    out.put_u8(0);
    // Messages are far below 4 GiB: members and URLs are limited by what we received.
    out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Cannot fail: the buffer grows.
    let _ = message.encode(&mut out);
    out.freeze()
}

/// Why a body is not one message.
#[derive(Debug, thiserror::Error)]
pub enum NotOneMessage {
    #[error("the message is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the message is compressed")]
    Compressed,
    #[error("expected exactly one complete message")]
    Framing,
    #[error("the message cannot be decoded: {0}")]
    Content(#[from] prost::DecodeError),
}

/// Extracts the only message of a complete body.
pub fn decode<T: Message + Default>(body: &[u8]) -> Result<T, NotOneMessage> {
    let (prefix, content) = body.split_at_checked(PREFIX).ok_or(NotOneMessage::Framing)?;
    let [flag, length @ ..] = prefix else { return Err(NotOneMessage::Framing) };
    if *flag != 0 {
        return Err(NotOneMessage::Compressed);
    }
    let length = length.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    if length != content.len() as u64 {
        return Err(NotOneMessage::Framing);
    }
    Ok(T::decode(content)?)
}

/// A complete body and its trailers.
pub struct Whole {
    pub body: Bytes,
    pub trailers: http::HeaderMap,
}

/// Reads a body of at most `limit` bytes; `Ok(None)` if it is longer.
pub async fn read(body: hyper::body::Incoming, limit: usize) -> Result<Option<Whole>, String> {
    match Limited::new(body, limit + PREFIX).collect().await {
        Ok(collected) => {
            let trailers = collected.trailers().cloned().unwrap_or_default();
            Ok(Some(Whole { body: collected.to_bytes(), trailers }))
        }
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
