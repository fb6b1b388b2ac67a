//! HTTP/1.1 over TLS, or without it where the URL says so: management servers of CloudStack listen on plain port 8080 by
//! default, and so do OpenStack services behind a balancer.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::transport::{Transport, TransportError};
use crate::trust::{self, Trust, TrustError};

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct HttpsOptions {
    /// Whose certificates are believed.
    pub trust: Trust,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// The longest answer that is read: a page of 500 machines is about two megabytes.
    pub longest_answer: usize,
}

impl Default for HttpsOptions {
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            connect_timeout: Duration::from_secs(10),
            longest_answer: 32 * 1024 * 1024,
        }
    }
}

/// Requests over the network. Connections are kept; redirects are not followed, because a signed request or
/// a token must not travel on.
pub struct Https {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    longest_answer: usize,
}

impl Https {
    /// Connects when first used.
    pub fn new(options: &HttpsOptions) -> Result<Self, TrustError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(options.connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust::tls(&options.trust)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        Ok(Self { client, longest_answer: options.longest_answer })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        let response = self
            .client
            .request(request.map(Full::new))
            .await
            .map_err(|error| TransportError { message: innermost(&error), never_sent: error.is_connect() })?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, self.longest_answer)
            .collect()
            .await
            .map_err(|error| TransportError { message: innermost(&*error), never_sent: false })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

impl Transport for Https {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

/// The cause at the bottom, which says more than "client error (Connect)".
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
