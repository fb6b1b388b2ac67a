//! Streams to ports of Pods: `pods/{name}/portforward`.
//!
//! ```text
//! GET, POST ─► may they create ─► is there such a Pod ─► what the client speaks ─► 101, then per port PodStreams::connect
//!                                                          ├─ WebSocket, v4.channel.k8s.io
//!                                                          ├─ WebSocket with SPDY inside
//!                                                          └─ SPDY/3.1
//! ```
//!
//! What is spoken after the 101 is `capstan-streams`. This server runs no Pods. Whoever does, as a simulated cluster, gives it [`PodStreams`](capstan_streams::PodStreams).

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

/// Answers a request to forward ports.
pub(crate) async fn serve(call: &Arc<Call>) -> Result<Answer> {
    // Upstream asks for `create` whatever the method, since WebSockets begin with GET (kubernetes#133515).
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
                Some((protocol, Spoken::Channels(_))) => {
                    (protocol, Spoken::Channels(ports(call.query.all("ports"))?))
                }
                Some(known) => known,
                None => return Err(nothing_known(protocols, &[channels::PROTOCOL, tunnel::PROTOCOL])),
            };
            (on, spoken, upgrade::to_websocket(key, protocol)?)
        }
        Upgrade::Spdy { on, protocols } => {
            // Old clients offer nothing and mean the only one there is.
            if !protocols.is_empty() && !protocols.iter().any(|offered| offered == spdy::PROTOCOL) {
                return Err(nothing_known(protocols, &[spdy::PROTOCOL]));
            }
            (on, Spoken::Spdy, upgrade::to_spdy(spdy::PROTOCOL)?)
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

/// How ports are carried once HTTP has been left.
enum Spoken {
    /// The ports that were asked for, as channels of a WebSocket.
    Channels(Vec<u16>),
    /// Streams of SPDY inside a WebSocket.
    Tunnel,
    /// Streams of SPDY.
    Spdy,
}

impl Spoken {
    async fn serve(self, socket: impl Stream, target: &Target) -> std::io::Result<()> {
        match self {
            Self::Channels(ports) => channels::serve(socket, target, &ports).await,
            Self::Tunnel => tunnel::serve(socket, target).await,
            Self::Spdy => spdy::serve(socket, target).await,
        }
    }
}

/// What a subprotocol of WebSocket stands for.
fn in_websocket(offered: &str) -> Option<(&'static str, Spoken)> {
    match offered {
        channels::PROTOCOL => Some((channels::PROTOCOL, Spoken::Channels(Vec::new()))),
        tunnel::PROTOCOL => Some((tunnel::PROTOCOL, Spoken::Tunnel)),
        _ => None,
    }
}

fn nothing_known(offered: &[String], known: &[&str]) -> Status {
    Status::bad_request(format!(
        "unable to upgrade: none of the protocols {offered:?} is served, only {}",
        known.join(" and ")
    ))
}

/// The answer to whoever wants to reach into a Pod where none run.
pub(crate) fn runs_no_pods(what: &str) -> Status {
    Status::new(
        StatusCode::NOT_IMPLEMENTED,
        "NotImplemented",
        format!("this server runs no pods: {what} is not available"),
    )
}

/// The ports asked for: the parameter is repeated, and each may be a list.
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
