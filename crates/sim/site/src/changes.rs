//! Changes of machines, in this process or another.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::client::Remote;
use crate::wire::HEARTBEAT;

/// Delay before reconnecting.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Maximum length of a line.
const LONGEST_LINE: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The machine of this id.
    Machine(String),
    /// Any machine: changes were missed.
    Any,
}

/// Changes from now on. Missed changes are reported as [`Changed::Any`].
pub struct Changes(Source);

enum Source {
    Local(broadcast::Receiver<String>),
    Remote(Box<Stream>),
}

struct Stream {
    remote: Remote,
    body: Option<Incoming>,
    read: BytesMut,
}

impl Changes {
    pub(crate) fn local(receiver: broadcast::Receiver<String>) -> Self {
        Self(Source::Local(receiver))
    }

    pub(crate) fn remote(remote: Remote) -> Self {
        Self(Source::Remote(Box::new(Stream { remote, body: None, read: BytesMut::new() })))
    }

    /// The next change; `None` when the site is gone.
    pub async fn next(&mut self) -> Option<Changed> {
        match &mut self.0 {
            Source::Local(receiver) => match receiver.recv().await {
                Ok(id) => Some(Changed::Machine(id)),
                Err(RecvError::Lagged(_)) => Some(Changed::Any),
                Err(RecvError::Closed) => None,
            },
            Source::Remote(stream) => Some(stream.next().await),
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
                        // Changes before this connection were missed.
                        return Changed::Any;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "cannot follow changes of machines");
                        tokio::time::sleep(RECONNECT_DELAY).await;
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
            let frame = tokio::time::timeout(3 * HEARTBEAT, body.frame()).await;
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
                    tokio::time::sleep(RECONNECT_DELAY).await;
                }
            }
        }
    }
}
