//! Port forwarding to Pods: `pods/{name}/portforward`.
//!
//! ```text
//! GET, POST ─► authorize create ─► read the Pod ─► select the protocol ─► 101, then per port PodStreams::connect
//!                                                   ├─ WebSocket, v4.channel.k8s.io
//!                                                   ├─ WebSocket with SPDY inside
//!                                                   └─ SPDY/3.1
//! ```
//!
//! `capstan-streams` implements the protocols. This server runs no Pods; a backend that does, such as a simulated
//! cluster, provides [`PodStreams`](capstan_streams::PodStreams).

mod upgrade;

use std::sync::Arc;

use ::http::StatusCode;
use capstan_streams::channels::{self, MOST_PORTS};
use capstan_streams::{Stream, Target, spdy, tunnel};
use hyper_util::rt::TokioIo;

use crate::call::Call;
use crate::object::Meta;
use crate::route::Verb;
use crate::status::{Result, Status};
use crate::verbs::Answer;
pub(crate) use upgrade::Upgrade;

/// Serves a port forward request.
pub(crate) async fn serve(call: &Arc<Call>) -> Result<Answer> {
    // Upstream authorizes `create` for any method, since WebSockets start with GET (kubernetes#133515).
    if call.verb() != Verb::Create {
        call.parts.authorize(&call.attributes("create"))?;
    }
    let entry = call.parts.store.get(&call.resource().bucket, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.load(&entry).await?;
    let Some(pods) = call.parts.pods.clone() else { return Err(runs_no_pods(call.subresource())) };
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return Err(Status::bad_request(format!("pod {} does not have a host assigned", pod.name())));
    }
    let Some(upgrade) = &call.upgrade else { return Err(Status::bad_request("Upgrade request required")) };
    let target = Target { pods, namespace: call.namespace().to_owned(), pod: call.name().to_owned() };
    let (on, spoken, reply) = match upgrade {
        Upgrade::WebSocket { on, key, protocols } => {
            let (protocol, spoken) = match protocols.iter().find_map(|offered| in_websocket(offered)) {
                Some((protocol, StreamProtocol::Channels(_))) => {
                    (protocol, StreamProtocol::Channels(ports(call.query.all("ports"))?))
                }
                Some(known) => known,
                None => return Err(nothing_known(protocols, &[channels::PROTOCOL, tunnel::PROTOCOL])),
            };
            (on, spoken, upgrade::to_websocket(key, protocol)?)
        }
        Upgrade::Spdy { on, protocols } => {
            // Old clients offer none and use the only one there is.
            if !protocols.is_empty() && !protocols.iter().any(|offered| offered == spdy::PROTOCOL) {
                return Err(nothing_known(protocols, &[spdy::PROTOCOL]));
            }
            (on, StreamProtocol::Spdy, upgrade::to_spdy(spdy::PROTOCOL)?)
        }
    };
    let socket = on.clone();
    tokio::spawn(async move {
        let served = match socket.await {
            Ok(socket) => spoken.serve(TokioIo::new(socket), &target).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        if let Err(error) = served {
            tracing::debug!(%error, pod = target.pod, "a forwarded port was closed");
        }
    });
    Ok(Answer::Reply(reply))
}

/// The protocol after the upgrade.
enum StreamProtocol {
    /// The requested ports, as channels of a WebSocket.
    Channels(Vec<u16>),
    /// SPDY streams inside a WebSocket.
    Tunnel,
    Spdy,
}

impl StreamProtocol {
    async fn serve(self, socket: impl Stream, target: &Target) -> std::io::Result<()> {
        match self {
            Self::Channels(ports) => channels::serve(socket, target, &ports).await,
            Self::Tunnel => tunnel::serve(socket, target).await,
            Self::Spdy => spdy::serve(socket, target).await,
        }
    }
}

/// The protocol of a WebSocket subprotocol.
fn in_websocket(offered: &str) -> Option<(&'static str, StreamProtocol)> {
    match offered {
        channels::PROTOCOL => Some((channels::PROTOCOL, StreamProtocol::Channels(Vec::new()))),
        tunnel::PROTOCOL => Some((tunnel::PROTOCOL, StreamProtocol::Tunnel)),
        _ => None,
    }
}

fn nothing_known(offered: &[String], known: &[&str]) -> Status {
    Status::bad_request(format!(
        "unable to upgrade: none of the protocols {offered:?} is served, only {}",
        known.join(" and ")
    ))
}

/// The error where no Pods run.
pub(crate) fn runs_no_pods(what: &str) -> Status {
    Status::new(
        StatusCode::NOT_IMPLEMENTED,
        "NotImplemented",
        format!("this server runs no pods: {what} is not available"),
    )
}

/// The requested ports: the parameter may be repeated, and each may be a list.
fn ports<'a>(values: impl Iterator<Item = &'a str>) -> Result<Vec<u16>> {
    let mut ports = Vec::new();
    for text in values.flat_map(|value| value.split(',')) {
        match text.parse::<u16>() {
            Ok(port) if port > 0 => ports.push(port),
            _ => return Err(Status::bad_request(format!("unable to parse {text:?} as a port"))),
        }
    }
    match ports.len() {
        0 => Err(Status::bad_request("query parameter \"ports\" is required")),
        1..=MOST_PORTS => Ok(ports),
        many => Err(Status::bad_request(format!("{many} ports are too many: the limit is {MOST_PORTS}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_lists_and_repetitions() {
        let read = |values: &[&str]| ports(values.iter().copied()).map_err(|status| status.message);
        assert_eq!(read(&["2379"]), Ok(vec![2379]));
        assert_eq!(read(&["1,2", "3"]), Ok(vec![1, 2, 3]));
        assert_eq!(read(&[]), Err("query parameter \"ports\" is required".into()));
        for bad in ["0", "65536", "-1", "x", ""] {
            assert_eq!(read(&[bad]), Err(format!("unable to parse {bad:?} as a port")));
        }
        assert!(read(&vec!["1"; MOST_PORTS + 1]).is_err());
    }
}
