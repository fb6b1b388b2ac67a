//! A member as a server.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::answer::{Alarm, Answer, Member, Status};
use crate::error::{Code, Refusal};
use crate::tls::Stream;
use crate::{frame, tls, wire};

/// Maximum size of a request: at most two numbers.
const LARGEST: usize = 64 * 1024;

/// The responses of one member.
pub trait Service: Send + Sync {
    fn status(&self) -> BoxFuture<'_, Result<Status, Refusal>>;

    /// The members of its cluster; `linearizable` requires a quorum.
    fn members(&self, linearizable: bool) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>>;

    /// Alarms of all members.
    fn alarms(&self) -> BoxFuture<'_, Result<Answer<Vec<Alarm>>, Refusal>>;

    /// Removes a member and returns the remaining ones.
    fn remove_member(&self, id: u64) -> BoxFuture<'_, Result<Answer<Vec<Member>>, Refusal>>;

    /// Moves leadership to another member.
    fn move_leader(&self, to: u64) -> BoxFuture<'_, Result<Answer<()>, Refusal>>;
}

/// Serves one connection until it ends. Dropping the future closes it.
pub async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    tls: Option<Arc<rustls::ServerConfig>>,
    service: Arc<dyn Service>,
) {
    match tls {
        None => answer_all(stream, service).await,
        Some(config) => match tls::accept(stream, config).await {
            Ok(stream) => answer_all(stream, service).await,
            Err(error) => tracing::debug!(%error, "a client of etcd did not agree on TLS"),
        },
    }
}

async fn answer_all(stream: impl Stream + 'static, service: Arc<dyn Service>) {
    let answering = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(respond(request, &*service).await) }
    });
    let served = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(64)
        .max_header_list_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), answering)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a client of etcd disconnected");
    }
}

type Body = StreamBody<futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn body(frames: Vec<Frame<Bytes>>) -> Body {
    StreamBody::new(futures::stream::iter(frames.into_iter().map(Ok).collect::<Vec<_>>()))
}

async fn respond(request: Request<Incoming>, service: &dyn Service) -> Response<Body> {
    let is_grpc = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|found| found.as_bytes().starts_with(frame::CONTENT_TYPE.as_bytes()));
    if request.method() != Method::POST || !is_grpc {
        let mut response = Response::new(body(Vec::new()));
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return response;
    }
    // The status follows the message even if that is empty: Go's gRPC reads it from headers only if they end the
    // stream.
    let mut frames = Vec::new();
    let mut trailers = HeaderMap::new();
    match answer(request, service).await {
        Ok(content) => {
            frames.push(Frame::data(content));
            trailers.insert(frame::STATUS, HeaderValue::from_static("0"));
        }
        Err(refusal) => {
            trailers.insert(frame::STATUS, HeaderValue::from(refusal.code.0));
            // Percent-encoded text is a valid header value.
            if let Ok(message) = encoded(&refusal.message).parse() {
                trailers.insert(frame::MESSAGE, message);
            }
        }
    }
    frames.push(Frame::trailers(trailers));
    let mut response = Response::new(body(frames));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(frame::CONTENT_TYPE));
    response
}

/// Printable ASCII is not encoded, except `%`.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

fn encoded(message: &str) -> String {
    utf8_percent_encode(message, ESCAPED).to_string()
}

async fn answer(request: Request<Incoming>, service: &dyn Service) -> Result<Bytes, Refusal> {
    let path = request.uri().path().to_owned();
    let read = frame::read(request.into_body(), LARGEST);
    let whole = read.await.map_err(|error| Refusal::new(Code::INTERNAL, error))?;
    let question = whole.ok_or_else(|| refused(&frame::NotOneMessage::TooLarge(LARGEST)))?.body;
    match path.as_str() {
        wire::path::STATUS => {
            let wire::StatusRequest {} = asked(&question)?;
            Ok(frame::encode(&wire::StatusResponse::from(service.status().await?)))
        }
        wire::path::MEMBER_LIST => {
            let wire::MemberListRequest { linearizable } = asked(&question)?;
            Ok(members(service.members(linearizable).await?))
        }
        wire::path::MEMBER_REMOVE => {
            let wire::MemberRemoveRequest { id } = asked(&question)?;
            Ok(members(service.remove_member(id).await?))
        }
        wire::path::ALARM => {
            let wire::AlarmRequest { action, member_id, kind } = asked(&question)?;
            if action != wire::ALARM_GET {
                return Err(Refusal::new(Code::UNIMPLEMENTED, "alarms can only be listed"));
            }
            let Answer { header, content } = service.alarms().await?;
            let alarms = content
                .into_iter()
                .map(wire::AlarmMember::from)
                .filter(|alarm| member_id == 0 || alarm.member_id == member_id)
                .filter(|alarm| kind == 0 || alarm.kind == kind)
                .collect();
            Ok(frame::encode(&wire::AlarmResponse { header: Some(header.into()), alarms }))
        }
        wire::path::MOVE_LEADER => {
            let wire::MoveLeaderRequest { target } = asked(&question)?;
            let header = Some(service.move_leader(target).await?.header.into());
            Ok(frame::encode(&wire::MoveLeaderResponse { header }))
        }
        _ => Err(Refusal::new(Code::UNIMPLEMENTED, format!("unknown method {path}"))),
    }
}

fn asked<T: Message + Default>(question: &[u8]) -> Result<T, Refusal> {
    frame::decode(question).map_err(|error| refused(&error))
}

fn refused(error: &frame::NotOneMessage) -> Refusal {
    let code = match error {
        frame::NotOneMessage::TooLarge(_) => Code::RESOURCE_EXHAUSTED,
        frame::NotOneMessage::Compressed => Code::UNIMPLEMENTED,
        frame::NotOneMessage::Framing | frame::NotOneMessage::Content(_) => Code::INTERNAL,
    };
    Refusal::new(code, error.to_string())
}

fn members(answer: Answer<Vec<Member>>) -> Bytes {
    let Answer { header, content } = answer;
    let members = content.into_iter().map(wire::Member::from).collect();
    frame::encode(&wire::MembersResponse { header: Some(header.into()), members })
}
