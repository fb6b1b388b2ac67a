//! Requests from the same process: no socket, no HTTP to parse, no credential to prove. Watches hand their events over
//! as they are; nobody writes and parses them.

use std::sync::Arc;

use ::http::{Request, Response};
use bytes::Bytes;
use capstan_transport::{Body, LocalServer, Transport, TransportError};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http_body_util::Full;

use crate::Server;
use crate::auth::User;

/// The way to a server in this process.
pub struct LocalTransport {
    server: Server,
    /// Who asks; without it the server looks for a credential among the headers, as of any client.
    user: Option<Arc<User>>,
}

impl LocalTransport {
    /// As nobody in particular.
    pub fn anonymous(server: Server) -> Self {
        Self { server, user: None }
    }

    /// As a user who may do everything.
    pub fn privileged(server: Server, user: &str) -> Self {
        Self { server, user: Some(Arc::new(User::privileged(user))) }
    }
}

impl Transport for LocalTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move {
            let request = request.map(Full::new);
            let reply = match &self.user {
                Some(user) => self.server.handle_as(user.clone(), request).await,
                None => self.server.handle(request).await,
            };
            Ok(reply.map(|body| match body.into_events() {
                Ok(events) => Body::watch(events.map(Ok)),
                Err(body) => Body::new(body.unterminated()),
            }))
        })
    }
}

impl LocalServer for Server {
    fn privileged(&self, user: &str) -> Arc<dyn Transport> {
        Arc::new(LocalTransport::privileged(self.clone(), user))
    }
}
