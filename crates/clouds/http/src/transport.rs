//! How requests reach the server: HTTPS, or anything that takes a request and gives a response.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

/// Carries requests.
pub trait Transport: Send + Sync {
    /// Sends a request, whose URI is absolute, and reads the whole response.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>>;
}

/// A server in the same process.
impl<F> Transport for F
where
    F: Fn(Request<Bytes>) -> BoxFuture<'static, Result<Response<Bytes>, TransportError>> + Send + Sync,
{
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        self(request)
    }
}

/// Why there is no response. Messages name hosts and causes, never the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// What happened.
    pub message: String,
    /// The request certainly did not reach the server.
    pub never_sent: bool,
}
