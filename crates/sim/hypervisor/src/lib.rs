//! What a simulated cloud asks of whatever runs its machines: power, addresses and load balancers.
//!
//! ```text
//! a simulated cloud (sim/cloudstack) ──▶ dyn Hypervisor ◀── implemented by sim/guest: machines execute their user data
//! ```
//!
//! A cloud's simulator so needs neither guests nor the API servers inside them. Nothing here knows a cloud, Cluster API or
//! Kubernetes.

pub mod vm;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use capstan_env::Env;
use futures::future::BoxFuture;
use tokio::net::TcpListener;

use vm::VmSpec;

/// Why something cannot be done with a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HypervisorError(pub String);

/// Runs machines and carries their network. Machines are named by the cloud's id.
pub trait Hypervisor: Send + Sync {
    /// Creates a machine and switches it on: it boots with its user data.
    fn create(&self, spec: VmSpec) -> Result<(), HypervisorError>;

    /// Switches a machine on; nothing happens to one that is on.
    fn start(&self, id: &str) -> Result<(), HypervisorError>;

    /// Switches a machine off.
    fn stop(&self, id: &str) -> Result<(), HypervisorError>;

    /// Switches a machine off and on.
    fn reboot(&self, id: &str) -> Result<(), HypervisorError>;

    /// Removes a machine with its disk.
    fn destroy(&self, id: &str) -> Result<(), HypervisorError>;

    /// The address of a load balancer, which is allocated when first asked for; the same for the same name.
    fn endpoint(&self, name: &str) -> SocketAddrV4;

    /// Gives a load balancer an address that was chosen elsewhere; a name that is held stays where it is.
    fn keep_endpoint(&self, name: &str, endpoint: SocketAddrV4);

    /// Sets the machines that a load balancer sends clients to.
    fn balance(&self, endpoint: SocketAddrV4, members: BTreeSet<Ipv4Addr>);

    /// Gives the address of a load balancer back.
    fn release(&self, endpoint: SocketAddrV4);

    /// Serves every load balancer behind one listener until `stop` resolves.
    fn serve<'a>(&'a self, listener: TcpListener, stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()>;
}

/// How machines behave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HypervisorOptions {
    /// Port of every load balancer.
    pub endpoint_port: u16,
    /// Factor by which machines are faster than their default timings.
    pub speed: f64,
}

/// Makes a hypervisor without machines. Whoever puts a program together chooses one for its simulated clouds.
pub type NewHypervisor = fn(Env, HypervisorOptions) -> Arc<dyn Hypervisor>;
