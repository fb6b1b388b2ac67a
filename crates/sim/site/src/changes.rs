//! Machines that change, wherever they are.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::client::Remote;
use crate::wire::SIGN_OF_LIFE;

/// How long after a lost connection the next one is tried.
const AGAIN: Duration = Duration::from_secs(1);
/// Longest line that is waited for.
const LONGEST_LINE: usize = 4096;

/// What may look different now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The machine of this id.
    Machine(String),
    /// Any machine: changes were missed.
    Any,
}

/// Changes from a moment on; none is lost without being told.
pub struct Changes(Source);

enum Source {
    Here(broadcast::Receiver<String>),
    Elsewhere(Box<Stream>),
}

struct Stream {
    remote: Remote,
    body: Option<Incoming>,
    read: BytesMut,
}

impl Changes {
    pub(crate) fn here(receiver: broadcast::Receiver<String>) -> Self {
        Self(Source::Here(receiver))
    }

    pub(crate) fn elsewhere(remote: Remote) -> Self {
        Self(Source::Elsewhere(Box::new(Stream { remote, body: None, read: BytesMut::new() })))
    }

    /// The next change; `None` once there can be no more.
    pub async fn next(&mut self) -> Option<Changed> {
        match &mut self.0 {
            Source::Here(receiver) => match receiver.recv().await {
                Ok(id) => Some(Changed::Machine(id)),
                Err(RecvError::Lagged(_)) => Some(Changed::Any),
                Err(RecvError::Closed) => None,
            },
            Source::Elsewhere(stream) => Some(stream.next().await),
        }
    }
}

impl Stream {
    async fn next(&mut self) -> Changed {
        loop {
            let Some(body) = &mut self.body else {
                match self.remote.follow().await {
                    Ok(body) => {
                        self.body = Some(body);
                        self.read.clear();
                        // Whatever changed before is not told on this connection.
                        return Changed::Any;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "changes of machines are not heard of");
                        tokio::time::sleep(AGAIN).await;
                        continue;
                    }
                }
            };
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1);
                if let Ok(id) = serde_json::from_slice::<String>(&line) {
                    return Changed::Machine(id);
                }
                continue;
            }
            let frame = tokio::time::timeout(3 * SIGN_OF_LIFE, body.frame()).await;
            let data = match frame {
                Ok(Some(Ok(frame))) => frame.into_data().ok(),
                _ => None,
            };
            match data {
                Some(data) if self.read.len() <= LONGEST_LINE => {
                    self.read.extend_from_slice(&data);
                }
                _ => {
                    self.body = None;
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }
}
