//! How requests reach a Kubernetes API server: the interface between clients and servers that may be in one process.
//!
//! ```text
//! Client (controller) ──▶ dyn Transport ─┬─ a server in this process   implemented by apiserver
//!                                        └─ HTTP over TLS              implemented by controller
//! ```
//!
//! A watch of a server in this process comes as events ([`Body::events`]); a server behind TLS sends text.
//!
//! Neither side knows the other. Nothing here opens a socket or knows a kind.

mod body;
mod error;
pub mod json;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

pub use body::Body;
pub use error::TransportError;
pub use watch::{Events, WatchEvent};

/// Sends requests to one API server.
pub trait Transport: Send + Sync {
    /// Sends a request whose URI is a path and a query.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>>;
}

/// A server in this process.
pub trait LocalServer {
    /// The way to it, as a user who may do everything.
    fn privileged(&self, user: &str) -> Arc<dyn Transport>;
}
