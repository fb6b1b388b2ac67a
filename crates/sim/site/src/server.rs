//! The HTTP API of a site.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /v1/machines`, `GET /v1/machines/{id}` | machines, or one |
//! | `POST /v1/machines` | creates one and powers it on |
//! | `DELETE /v1/machines/{id}` | removes one with its disk |
//! | `POST /v1/machines/{id}/power` | `{"power": "on"}`, `off`, `reboot` or `crash` |
//! | `GET /v1/machines/{id}/console` | console output |
//! | `GET`, `PUT`, `DELETE /v1/balancers/{name}` | a load balancer |
//! | `PUT /v1/balancers/{name}/members` | its members |
//! | `GET /v1/changes` | ids of machines as they change |
//!
//! Every local user has access, as every local user could start a site. Requests from browsers are rejected.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use capstan_guest::vm::VmSpec;
use capstan_guest::{Site, SiteError};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::wire::{BALANCERS, CHANGES, HEARTBEAT, LARGEST_BODY, MACHINES, Power, PowerRequest, Refusal};

/// Timeout for receiving a request.
const ARRIVAL: Duration = Duration::from_secs(30);

type Answer = Response<Either>;

/// A complete body, or a stream.
type Either =
    http_body_util::Either<Full<Bytes>, StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>;

/// Serves a site until `stop` resolves.
pub async fn serve(site: Site, listener: TcpListener, stop: impl Future<Output = ()>) {
    tokio::pin!(stop);
    loop {
        let stream = tokio::select! {
            () = &mut stop => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let site = site.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let site = site.clone();
                async move { Ok::<_, Infallible>(answer(&site, request).await) }
            });
            let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            builder.http1().timer(TokioTimer::new()).header_read_timeout(ARRIVAL);
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "connection closed");
            }
        });
    }
}

async fn answer(site: &Site, request: Request<Incoming>) -> Answer {
    if let Err(why) = is_local(request.headers(), request.method()) {
        return wrong(StatusCode::FORBIDDEN, why);
    }
    let (head, body) = request.into_parts();
    let body = match timeout(ARRIVAL, Limited::new(body, LARGEST_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            return wrong(StatusCode::PAYLOAD_TOO_LARGE, "the body is truncated or exceeds the limit");
        }
        Err(_) => return wrong(StatusCode::REQUEST_TIMEOUT, "the body does not end"),
    };
    let Some(parts) = parts(head.uri.path()) else {
        return wrong(StatusCode::BAD_REQUEST, "the path is not valid UTF-8");
    };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    route(site, &head.method, &parts, &body)
}

/// Rejects requests from web pages: they cannot use a loopback address as host name, nor this content type without a
/// preflight request.
fn is_local(headers: &HeaderMap, method: &Method) -> Result<(), &'static str> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let loopback = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !loopback && name != "localhost" {
        return Err("ask by a loopback address");
    }
    if *method != Method::GET && text(header::CONTENT_TYPE) != Some("application/json") {
        return Err("content-type must be application/json");
    }
    Ok(())
}

/// The decoded segments of a path: a segment may contain a slash.
fn parts(path: &str) -> Option<Vec<String>> {
    path.split('/')
        .skip(1)
        .map(|part| percent_decode_str(part).decode_utf8().ok().map(|part| part.into_owned()))
        .collect()
}

fn route(site: &Site, method: &Method, parts: &[&str], body: &[u8]) -> Answer {
    let under = |path: &'static str| path.rsplit('/').next().unwrap_or_default();
    let (machines, balancers, changes) = (under(MACHINES), under(BALANCERS), under(CHANGES));
    let ["v1", parts @ ..] = parts else { return missing() };
    match (method.as_str(), parts) {
        ("GET", [kind]) if *kind == machines => reply(StatusCode::OK, &site.vms()),
        ("POST", [kind]) if *kind == machines => match read::<VmSpec>(body) {
            Ok(spec) => done(StatusCode::CREATED, site.create(spec)),
            Err(answer) => *answer,
        },
        ("GET", [kind, id]) if *kind == machines => found(site.vm(id)),
        ("DELETE", [kind, id]) if *kind == machines => match site.destroy(id) {
            Err(SiteError::NoSuchVm(_)) => missing(),
            destroyed => done(StatusCode::OK, destroyed),
        },
        ("GET", [kind, id, "console"]) if *kind == machines => found(site.console(id)),
        ("POST", [kind, id, "power"]) if *kind == machines => match read::<PowerRequest>(body) {
            Ok(PowerRequest { power }) => match switch(site, id, power) {
                Err(SiteError::NoSuchVm(_)) => missing(),
                switched => done(StatusCode::OK, switched),
            },
            Err(answer) => *answer,
        },
        ("GET", [kind, name]) if *kind == balancers => found(site.balancer(name)),
        ("PUT", [kind, name]) if *kind == balancers => {
            site.endpoint(name);
            found(site.balancer(name))
        }
        ("PUT", [kind, name, "members"]) if *kind == balancers => match read::<BTreeSet<Ipv4Addr>>(body) {
            Ok(members) => {
                if let Some(held) = site.balancer(name) {
                    site.balance(held.endpoint, members);
                }
                found(site.balancer(name))
            }
            Err(answer) => *answer,
        },
        ("DELETE", [kind, name]) if *kind == balancers => match site.balancer(name) {
            Some(held) => {
                site.release(held.endpoint);
                reply(StatusCode::OK, &())
            }
            None => missing(),
        },
        ("GET", [kind]) if *kind == changes => follow(site),
        _ => missing(),
    }
}

fn switch(site: &Site, id: &str, power: Power) -> Result<(), SiteError> {
    match power {
        Power::On => site.start(id),
        Power::Off => site.stop(id),
        Power::Reboot => site.reboot(id),
        Power::Crash => site.crash(id),
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Box<Answer>> {
    serde_json::from_slice(body).map_err(|error| {
        // Position only: the error could quote boot data.
        let at = format!("unexpected body at line {}, column {}", error.line(), error.column());
        Box::new(wrong(StatusCode::BAD_REQUEST, &at))
    })
}

fn follow(site: &Site) -> Answer {
    let changes = site.changes();
    let lines = futures::stream::unfold(changes, |mut changes| async move {
        let line = match timeout(HEARTBEAT, changes.recv()).await {
            Ok(Ok(id)) => format!("{}\n", json!(id)),
            Err(_) => "\n".to_owned(),
            // The client reconnects and lists everything.
            Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => return None,
        };
        Some((Ok(Frame::data(Bytes::from(line))), changes))
    });
    let mut response = Response::new(Either::Right(StreamBody::new(lines.boxed())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}

fn reply(status: StatusCode, body: &impl Serialize) -> Answer {
    let text = serde_json::to_vec(body).unwrap_or_default();
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn found(what: Option<impl Serialize>) -> Answer {
    what.map_or_else(missing, |what| reply(StatusCode::OK, &what))
}

fn done(status: StatusCode, result: Result<impl Serialize, SiteError>) -> Answer {
    match result {
        Ok(body) => reply(status, &body),
        Err(error) => {
            reply(StatusCode::CONFLICT, &Refusal { message: error.to_string(), refused: Some(error) })
        }
    }
}

fn missing() -> Answer {
    wrong(StatusCode::NOT_FOUND, "not found")
}

fn wrong(status: StatusCode, message: &str) -> Answer {
    reply(status, &Refusal { message: message.to_owned(), refused: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_hosts_and_json_are_accepted() {
        for (method, host, kind, let_in) in [
            (Method::GET, "127.0.0.1:7480", "", true),
            (Method::GET, "[::1]:7480", "", true),
            (Method::GET, "localhost", "", true),
            (Method::GET, "evil.example:7480", "", false),
            (Method::POST, "127.0.0.1:7480", "application/json", true),
            (Method::POST, "127.0.0.1:7480", "text/plain", false),
            (Method::DELETE, "127.0.0.1:7480", "", false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::HOST, host), (header::CONTENT_TYPE, kind)] {
                if !value.is_empty() {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(is_local(&headers, &method).is_ok(), let_in, "{method} {host} {kind}");
        }
    }
}
