//! A simulated cloud: `capstan sim <name>`, and the cloud of `capstan demo`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{ArgMatches, Command};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::{ProviderError, Terminal};

/// Serves a simulated cloud. Lives apart from the cloud's provider, which never imports it: they meet on the wire.
pub trait Simulator: Send + Sync {
    /// Name, help and flags of `capstan sim <name>`.
    fn command(&self) -> Command;

    /// Serves until [`Terminal::stopped`] resolves. Says where, and with which credentials, before it does.
    fn run<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a dyn Terminal,
    ) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// Opens a cloud for another command, which keeps it; not all can be.
    fn open(&self, _: SimulatorOptions) -> Result<OpenSimulator, ProviderError> {
        Err(ProviderError::new("this simulator runs by `capstan sim` only"))
    }
}

/// How a cloud is opened.
pub struct SimulatorOptions {
    /// Where its API listens.
    pub api: TcpListener,
    /// Where the API servers of clusters on it listen.
    pub endpoints: TcpListener,
    /// Kubernetes versions that there are images of.
    pub kubernetes: Vec<String>,
    /// How many times faster than small virtual machines its machines boot and join.
    pub speed: f64,
    /// What is deleted is gone at once, where a stock cloud would keep it for a while.
    pub prompt_deletion: bool,
}

/// A cloud that is ready to serve.
pub struct OpenSimulator {
    /// Where its API answers.
    pub address: SocketAddr,
    /// Fields of the Secret with which a provider reaches it.
    pub credentials: BTreeMap<String, String>,
    /// Serves for as long as it is polled.
    pub serve: BoxFuture<'static, ()>,
}
