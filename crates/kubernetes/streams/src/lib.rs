//! Streams to ports of Pods, as clients and servers of Kubernetes carry them: one connection that has left HTTP, many
//! ports.
//!
//! ```text
//!          ┌─ channels   pairs of channels in a WebSocket
//! socket ──┼─ tunnel     SPDY inside a WebSocket
//!          └─ spdy       SPDY/3.1, both ends
//!                             └─▶ Target ─▶ PodStreams::connect
//! ```
//!
//! Nothing here knows HTTP or who may do what: a connection is any stream of bytes, and what runs the Pods is
//! [`PodStreams`].

pub mod channels;
#[cfg(test)]
mod fuzz;
pub mod spdy;
pub mod tunnel;
pub mod websocket;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// A stream of bytes, both ways.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why a port of a Pod cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PodStreamError {
    /// The Pod exists and does not run.
    #[error("the pod is not running")]
    NotRunning,
    /// Nothing listens on the port.
    #[error("connection refused")]
    Refused,
    /// Something else.
    #[error("{0}")]
    Failed(String),
}

/// Whoever runs the Pods of a server.
pub trait PodStreams: Send + Sync {
    /// Connects to a port of a Pod that is stored.
    fn connect<'a>(
        &'a self,
        namespace: &'a str,
        pod: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Stream>, PodStreamError>>;
}

/// The Pod a request is about, and who runs it.
#[derive(Clone)]
pub struct Target {
    pub pods: Arc<dyn PodStreams>,
    pub namespace: String,
    pub pod: String,
}

impl Target {
    /// Connects to a port; an error reads as the kubelet's.
    async fn connect(&self, port: u16) -> Result<Box<dyn Stream>, String> {
        let connected = self.pods.connect(&self.namespace, &self.pod, port).await;
        connected.map_err(|error| self.failure(port, &error))
    }

    fn failure(&self, port: u16, why: &dyn std::fmt::Display) -> String {
        format!("error forwarding port {port} to pod {}: {why}", self.pod)
    }
}
