//! A simulated cloud: `capstan sim <name>`, and the cloud of `capstan demo`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use clap::{ArgMatches, Command};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use crate::{ProviderError, Terminal};

/// Serves a simulated cloud. Separate from the cloud's provider, which never imports it: they communicate only over
/// the cloud's API.
pub trait Simulator: Send + Sync {
    /// Name, help and flags of `capstan sim <name>`.
    fn command(&self) -> Command;

    /// Serves until [`Terminal::stopped`] resolves. First prints its address and credentials.
    fn run<'a>(
        &'a self,
        matches: &'a ArgMatches,
        terminal: &'a dyn Terminal,
    ) -> BoxFuture<'a, Result<(), ProviderError>>;

    /// Opens a cloud for another command; not all simulators support it.
    fn open(&self, _: SimulatorOptions) -> Result<OpenSimulator, ProviderError> {
        Err(ProviderError::new("this simulator runs by `capstan sim` only"))
    }
}

pub struct SimulatorOptions {
    /// Listener of its API.
    pub api: TcpListener,
    /// Listener of the API servers of its clusters.
    pub endpoints: TcpListener,
    /// Kubernetes versions with images.
    pub kubernetes: Vec<String>,
    /// Factor by which its machines boot and join faster than small virtual machines.
    pub speed: f64,
    /// Deleted resources are gone at once; a stock cloud keeps them for a while.
    pub prompt_deletion: bool,
}

pub struct OpenSimulator {
    /// Address of its API.
    pub address: SocketAddr,
    /// Fields of the provider's credentials Secret.
    pub credentials: BTreeMap<String, String>,
    /// Serves while polled.
    pub serve: BoxFuture<'static, ()>,
}
