//! Protocol upgrades.

use ::http::{HeaderMap, HeaderValue, Response, StatusCode, header, request};
use capstan_streams::{spdy, websocket};
use hyper::upgrade::OnUpgrade;

use crate::reply::{Reply, ReplyBody};
use crate::status::{Result, Status};

/// A requested protocol upgrade.
pub(crate) enum Upgrade {
    WebSocket {
        /// The upgraded connection.
        on: OnUpgrade,
        /// The client's key, whose digest is part of the response.
        key: HeaderValue,
        /// Subprotocols in the client's order.
        protocols: Vec<String>,
    },
    Spdy {
        /// The upgraded connection.
        on: OnUpgrade,
        /// Stream protocols in the client's order.
        protocols: Vec<String>,
    },
}

/// The header with the stream protocol of SPDY.
const STREAM_PROTOCOL: header::HeaderName = header::HeaderName::from_static("x-stream-protocol-version");

impl Upgrade {
    /// The upgrade that a request asks for, if the connection supports it and we know the protocol.
    pub fn wanted(head: &request::Parts) -> Option<Self> {
        let on = head.extensions.get::<OnUpgrade>()?.clone();
        let headers = &head.headers;
        if !lists(headers, header::CONNECTION, "upgrade") {
            return None;
        }
        if lists(headers, header::UPGRADE, "websocket") {
            let key = headers.get(header::SEC_WEBSOCKET_KEY)?.clone();
            let protocols = values(headers, header::SEC_WEBSOCKET_PROTOCOL).map(str::to_owned).collect();
            return Some(Self::WebSocket { on, key, protocols });
        }
        if lists(headers, header::UPGRADE, spdy::UPGRADE) {
            let protocols = values(headers, STREAM_PROTOCOL).map(str::to_owned).collect();
            return Some(Self::Spdy { on, protocols });
        }
        None
    }
}

/// The values of a list header.
fn values(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

/// Whether a list header has a value.
fn lists(headers: &HeaderMap, name: header::HeaderName, wanted: &str) -> bool {
    values(headers, name).any(|word| word.eq_ignore_ascii_case(wanted))
}

/// The 101 response for WebSocket.
pub(super) fn to_websocket(key: &HeaderValue, protocol: &str) -> Result<Reply> {
    let accept = websocket::accept(key.as_bytes());
    switching(
        "websocket",
        [(header::SEC_WEBSOCKET_ACCEPT, &accept), (header::SEC_WEBSOCKET_PROTOCOL, protocol)],
    )
}

/// The 101 response for SPDY.
pub(super) fn to_spdy(protocol: &str) -> Result<Reply> {
    switching(spdy::UPGRADE, [(STREAM_PROTOCOL, protocol)])
}

fn switching<const N: usize>(to: &str, headers: [(header::HeaderName, &str); N]) -> Result<Reply> {
    let mut reply = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, to);
    for (name, value) in headers {
        reply = reply.header(name, value);
    }
    reply.body(ReplyBody::full("")).map_err(Status::internal)
}
