//! Small HTTP servers: webhooks over TLS, probes and metrics without.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// For the TLS handshake, and for the request headers.
const TIMEOUT: Duration = Duration::from_secs(10);

pub type WebResponse = Response<Full<Bytes>>;

/// Serves until the task is dropped, over TLS if `tls` is given.
pub async fn serve<H, F>(listener: TcpListener, tls: Option<Arc<ServerConfig>>, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = WebResponse> + Send + 'static,
{
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Probably out of file descriptors: wait for some to close.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (acceptor, handle) = (acceptor.clone(), handle.clone());
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else { return serve_connection(stream, false, handle).await };
            match tokio::time::timeout(TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    serve_connection(stream, http2, handle).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            }
        });
    }
}

async fn serve_connection<S, H, F>(stream: S, http2: bool, handle: H)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = WebResponse> + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(TIMEOUT);
    let builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    let service = service_fn(move |request| {
        let answer = handle(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection failed");
    }
}

pub fn text(status: StatusCode, text: impl Into<Bytes>) -> WebResponse {
    response(status, "text/plain; charset=utf-8", text)
}

pub fn json(value: &serde_json::Value) -> WebResponse {
    response(StatusCode::OK, "application/json", value.to_string())
}

fn response(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> WebResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}
