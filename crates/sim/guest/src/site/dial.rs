//! Connections to a site: streams inside the process, and one TCP listener.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use capstan_controller::{Dial, Stream};
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use super::Inner;
use super::machines::Machine;
use crate::cluster::{GuestCluster, ListenerState};

/// Bytes in flight per stream.
const BUFFER: usize = 16 * 1024;

/// Why a connection fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreachable {
    #[error("connect: no route to host")]
    NoRoute,
    #[error("connect: connection refused")]
    Refused,
}

impl From<Unreachable> for io::Error {
    fn from(error: Unreachable) -> Self {
        let kind = match error {
            Unreachable::NoRoute => io::ErrorKind::HostUnreachable,
            Unreachable::Refused => io::ErrorKind::ConnectionRefused,
        };
        Self::new(kind, error)
    }
}

impl Inner {
    /// The API server for a connection to an address: a healthy one behind the load balancer, else one that at least
    /// accepts connections.
    pub(super) fn route(
        &self,
        address: Ipv4Addr,
        port: u16,
    ) -> Result<(Arc<GuestCluster>, String), Unreachable> {
        let behind = self.network.lock().behind(address, port).ok_or(Unreachable::NoRoute)?;
        let machines = self.machines.lock();
        let mut broken = None;
        for machine in behind.iter().filter_map(|member| machines.at(*member)) {
            let Some(cluster) = machine.cluster().filter(|_| machine.is_connected()) else { continue };
            match cluster.listener(machine.id()) {
                ListenerState::Open => return Ok((cluster.clone(), machine.id().to_owned())),
                ListenerState::Broken => {
                    broken = broken.or_else(|| Some((cluster.clone(), machine.id().to_owned())))
                }
                ListenerState::Closed => {}
            }
        }
        broken.ok_or(Unreachable::Refused)
    }

    /// [`Inner::route`] for a client on a machine, which needs a network itself.
    pub(super) fn route_from(
        &self,
        vm: &str,
        address: Ipv4Addr,
        port: u16,
    ) -> Result<(Arc<GuestCluster>, String), Unreachable> {
        let connected = self.machines.lock().get(vm).is_some_and(Machine::is_connected);
        if connected { self.route(address, port) } else { Err(Unreachable::NoRoute) }
    }
}

/// Connects to a site inside the process.
pub(super) struct SiteDial(pub(super) Arc<Inner>);

impl Dial for SiteDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let address = self.0.network.lock().resolve(host).ok_or_else(|| {
                io::Error::new(io::ErrorKind::NotFound, format!("lookup {host}: no such host"))
            })?;
            let (cluster, vm) = self.0.route(address, port)?;
            let (near, far) = tokio::io::duplex(BUFFER);
            tokio::spawn(cluster.serve(vm, far));
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

/// Accepts connections until `stop` resolves.
pub(super) async fn serve(site: &Arc<Inner>, listener: TcpListener, stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            biased;
            () = &mut stop => return,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Probably out of file descriptors: wait for some to close.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let Ok(SocketAddr::V4(local)) = stream.local_addr() else { continue };
        if !IpAddr::V4(*local.ip()).is_loopback() {
            continue;
        }
        match site.route(*local.ip(), site.options.endpoint_port) {
            Ok((cluster, vm)) => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(cluster.serve(vm, stream));
            }
            // Nothing listens there: the connection is dropped, the closest to refusing it that one listener can do.
            Err(error) => tracing::debug!(%error, %local, "a connection has no destination"),
        }
    }
}
