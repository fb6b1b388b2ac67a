//! gRPC calls over one HTTP/2 connection.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::Full;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::percent_decode_str;
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::client::DEADLINE;
use crate::error::{Code, Error, Refusal};
use crate::frame;

/// Maximum size of a response. A member takes a few hundred bytes; Go's gRPC accepts 4 MiB, which a hostile member
/// could fill with two million empty members.
const LARGEST: usize = 256 * 1024;
/// Flow-control window.
const WINDOW: u32 = 256 * 1024;
/// Maximum size of headers or trailers.
const MOST_HEADERS: u32 = 16 * 1024;

/// A connection for unary gRPC calls of any service. Once it is broken, every call fails with [`Error::Unavailable`].
/// Dropping it closes the connection.
#[derive(Debug)]
pub struct Channel {
    sender: SendRequest<Full<Bytes>>,
    /// `https://` or `http://` and the host name.
    origin: String,
    pub(crate) deadline: Duration,
    connection: JoinHandle<()>,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Channel {
    /// Begins HTTP/2 on a stream. `origin` is `https://` or `http://` and the host name.
    pub async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        origin: String,
    ) -> Result<Self, Error> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(MOST_HEADERS)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Error::Unavailable(chain(&error)))?;
        let connection = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a gRPC connection broke");
            }
        });
        Ok(Self { sender, origin, deadline: DEADLINE, connection })
    }

    /// Sets the request timeout.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Makes a call. `call` names it in errors; `path` is `/PACKAGE.SERVICE/METHOD`.
    pub async fn ask<T: Message + Default>(
        &mut self,
        call: &'static str,
        path: &str,
        question: &impl Message,
    ) -> Result<T, Error> {
        let after = self.deadline;
        tokio::time::timeout(after, self.exchange(call, path, frame::encode(question)))
            .await
            .unwrap_or(Err(Error::DeadlineExceeded { call, after }))
    }

    async fn exchange<T: Message + Default>(
        &mut self,
        call: &'static str,
        path: &str,
        question: Bytes,
    ) -> Result<T, Error> {
        let malformed = |what: String| Error::Malformed { call, what };
        // The protocol allows eight digits.
        let patience = self.deadline.as_millis().min(99_999_999);
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}{path}", self.origin))
            .header(header::CONTENT_TYPE, frame::CONTENT_TYPE)
            .header(header::TE, "trailers")
            .header("grpc-timeout", format!("{patience}m"))
            .body(Full::new(question))
            .map_err(|error| malformed(error.to_string()))?;
        let unavailable = |error: hyper::Error| Error::Unavailable(chain(&error));
        self.sender.ready().await.map_err(unavailable)?;
        let (head, body) = self.sender.send_request(request).await.map_err(unavailable)?.into_parts();
        // An error without a response has its code in the headers.
        if let Some(status) = grpc_status(&head.headers) {
            status?;
        }
        if head.status != StatusCode::OK {
            return Err(match head.status {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => Error::Unavailable(head.status.to_string()),
                status => malformed(format!("answered with {status}")),
            });
        }
        let whole = frame::read(body, LARGEST)
            .await
            .map_err(Error::Unavailable)?
            .ok_or_else(|| malformed(frame::NotOneMessage::TooLarge(LARGEST).to_string()))?;
        match grpc_status(&whole.trailers) {
            Some(status) => status?,
            None if head.headers.contains_key(frame::STATUS) => {}
            None => return Err(malformed("the answer has no status".to_owned())),
        }
        frame::decode(&whole.body).map_err(|error| malformed(error.to_string()))
    }
}

/// The gRPC status in headers or trailers.
fn grpc_status(headers: &HeaderMap) -> Option<Result<(), Refusal>> {
    let code = headers.get(frame::STATUS)?;
    let code = code.to_str().ok().and_then(|code| code.parse().ok()).map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Some(Ok(()));
    }
    let message = headers.get(frame::MESSAGE).and_then(|message| message.to_str().ok()).unwrap_or_default();
    Some(Err(Refusal::new(code, percent_decode_str(message).decode_utf8_lossy().into_owned())))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        out.push_str(": ");
        out.push_str(&error.to_string());
        source = error.source();
    }
    out
}
