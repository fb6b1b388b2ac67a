//! Compressed answers, as kube-apiserver compresses them: gzip at its fastest, for clients that accept it, of
//! bodies past 128 KiB; never of watches.

use ::http::{HeaderMap, HeaderValue, header};

use crate::reply::{Reply, ReplyBody};

/// Bodies up to this size are cheaper to send than to compress.
const THRESHOLD: u64 = 128 * 1024;

/// Whether a client takes gzip. Weights are not looked at, as upstream does not.
pub(crate) fn accepted(headers: &HeaderMap) -> bool {
    let header = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    header.is_some_and(|text| text.split(',').any(|token| token.trim() == "gzip"))
}

/// Compresses a reply if it is worth it.
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
