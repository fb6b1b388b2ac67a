//! Compressed responses, as in kube-apiserver: fastest gzip, for clients that accept it, for bodies above 128 KiB,
//! never for watches.

use ::http::{HeaderMap, HeaderValue, header};

use crate::reply::{Reply, ReplyBody};

/// Bodies up to this size are cheaper to send than to compress.
const THRESHOLD: u64 = 128 * 1024;

/// Whether a client accepts gzip. As upstream, weights are ignored.
pub(crate) fn accepted(headers: &HeaderMap) -> bool {
    let header = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    header.is_some_and(|text| text.split(',').any(|token| token.trim() == "gzip"))
}

/// Compresses a reply if it is large enough.
pub(crate) fn compress(reply: &mut Reply) {
    if reply.body().known_size().is_none_or(|size| size <= THRESHOLD) {
        return;
    }
    let body = std::mem::replace(reply.body_mut(), ReplyBody::full(""));
    *reply.body_mut() = body.compressed();
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}
