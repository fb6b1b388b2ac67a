//! How requests reach a server.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use capstan_apiserver::auth::User;
use capstan_apiserver::{ReplyBody, Server};
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};

use super::TransportError;

/// The body of an answer, piece by piece.
pub struct Body(BodyKind);

enum BodyKind {
    InProcess(Box<ReplyBody>),
    Any(http_body_util::combinators::UnsyncBoxBody<Bytes, TransportError>),
}

impl Body {
    /// The body of a server in this process.
    pub fn in_process(body: ReplyBody) -> Self {
        Self(BodyKind::InProcess(Box::new(body)))
    }

    /// Any body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        Self(BodyKind::Any(body.map_err(|error| TransportError::ambiguous(error.to_string())).boxed_unsync()))
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        loop {
            let frame = std::future::poll_fn(|cx| self.poll(cx)).await?;
            match frame {
                Ok(frame) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(Ok(data)),
                    Err(_) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, TransportError>>> {
        match &mut self.0 {
            BodyKind::InProcess(body) => Pin::new(&mut **body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            BodyKind::Any(body) => Pin::new(body).poll_frame(cx),
        }
    }
}

/// Sends requests to one API server.
pub trait Transport: Send + Sync {
    /// Sends a request whose URI is a path and a query.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>>;
}

/// A server in the same process.
pub(super) struct InProcess {
    server: Server,
    user: User,
}

impl InProcess {
    pub(super) fn privileged(server: Server, name: &str) -> Self {
        Self { server, user: User::privileged(name) }
    }
}

impl Transport for InProcess {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move {
            let mut request = request.map(Full::new);
            request.extensions_mut().insert(self.user.clone());
            Ok(self.server.handle(request).await.map(Body::in_process))
        })
    }
}
