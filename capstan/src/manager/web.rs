//! Small HTTP servers: webhooks over TLS, probes and metrics in the clear.

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

/// How long a client may take to shake hands, and to send its headers.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer.
pub type Answer = Response<Full<Bytes>>;

/// Answers every request of every connection until the task ends. With `tls`, connections are encrypted.
pub async fn serve<H, F>(listener: TcpListener, tls: Option<Arc<ServerConfig>>, handle: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let acceptor = tls.map(TlsAcceptor::from);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: the pause lets some close.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (acceptor, handle) = (acceptor.clone(), handle.clone());
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else { return talk(stream, false, handle).await };
            match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    talk(stream, http2, handle).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        });
    }
}

async fn talk<S, H, F>(stream: S, http2: bool, handle: H)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Answer> + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    let service = service_fn(move |request| {
        let answer = handle(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// An answer of plain text.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}

/// An answer of JSON.
pub fn json(value: &serde_json::Value) -> Answer {
    answer(StatusCode::OK, "application/json", value.to_string())
}

fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    answer
}
