//! All machines and clusters of a world, their addresses and load balancers, and ways to reach them.
//!
//! ```text
//!   a cloud ── create, stop, destroy ──▶ machines.rs ── a task per boot ──▶ user data ──▶ kubeadm.rs ──▶ cluster/
//!                                            │ alive?
//!   a client ── 127.x.y.z or a machine ──▶ network.rs ──▶ dial.rs: TLS with the machine's certificate ──▶ API server
//! ```

mod dial;
mod discovery;
mod kubeadm;
mod machines;
mod network;
mod patience;
mod revive;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::config::SharedPolicy;
use capstan_apiserver::env::Env;
use capstan_controller::Dial;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{Notify, broadcast};

use crate::cluster::GuestCluster;
use crate::vm::{Vm, VmSpec};
use machines::Machines;
pub(crate) use network::API_PORT;
pub use network::Balancer;
use network::Network;
pub use revive::{Revival, Revived};

/// Changes that a slow listener may be behind before it has to look at everything again.
const BACKLOG: usize = 4096;

/// How a site behaves.
#[derive(Debug, Clone)]
pub struct SiteOptions {
    /// Port of every load balancer.
    pub endpoint_port: u16,
    /// How long things take.
    pub timings: Timings,
    /// How often kubelets renew their Leases. Without, Leases stand still, and the node controller hears of dead
    /// kubelets directly: thousands of quiet clusters then cost nothing.
    pub heartbeat: Option<Duration>,
    /// A cluster has a network from the moment it is founded, whether or not anybody brings one: for whoever asks what
    /// machines will do, and not what is missing.
    pub assume_network: bool,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            endpoint_port: 6443,
            timings: Timings::default(),
            heartbeat: Some(Duration::from_secs(10)),
            assume_network: false,
        }
    }
}

/// How long things take in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From power to the first line of user data.
    pub boot: Duration,
    /// `kubeadm init`, images included.
    pub init: Duration,
    /// `kubeadm join`.
    pub join: Duration,
    /// From a Pod's binding to its readiness.
    pub pod: Duration,
}

impl Default for Timings {
    /// What a small virtual machine with images at hand needs.
    fn default() -> Self {
        Self {
            boot: Duration::from_secs(20),
            init: Duration::from_secs(25),
            join: Duration::from_secs(10),
            pod: Duration::from_secs(2),
        }
    }
}

impl Timings {
    /// Nothing takes any time.
    pub fn none() -> Self {
        Self { boot: Duration::ZERO, init: Duration::ZERO, join: Duration::ZERO, pod: Duration::ZERO }
    }
}

/// What a site does not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum SiteError {
    /// A machine of this id exists or once did.
    #[error("machine {0} exists already, or once did")]
    Exists(String),
    /// There is no such machine.
    #[error("there is no machine {0}")]
    NoSuchVm(String),
    /// Another machine has the address.
    #[error("address {0} belongs to another machine")]
    AddressTaken(Ipv4Addr),
}

/// Machines, clusters and the network between them. Cheap to clone; everything goes with the last clone.
#[derive(Clone)]
pub struct Site {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    options: SiteOptions,
    machines: Mutex<Machines>,
    network: Mutex<Network>,
    /// What all of its clusters have alike.
    policy: SharedPolicy,
    changes: broadcast::Sender<String>,
    /// Rings when somebody may be reachable who was not before.
    reachable: Notify,
}

impl Site {
    /// An empty site. Machines are created inside a Tokio runtime, whose clock they follow.
    pub fn new(env: Env, options: SiteOptions) -> Self {
        let network = Network::new(options.endpoint_port);
        let inner = Inner {
            env,
            options,
            machines: Mutex::default(),
            network: Mutex::new(network),
            policy: SharedPolicy::default(),
            changes: broadcast::Sender::new(BACKLOG),
            reachable: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Creates a machine and switches it on.
    pub fn create(&self, spec: VmSpec) -> Result<Vm, SiteError> {
        self.inner.create(spec)
    }

    /// A machine.
    pub fn vm(&self, id: &str) -> Option<Vm> {
        self.inner.machines.lock().get(id).map(machines::Machine::vm)
    }

    /// All machines, by id.
    pub fn vms(&self) -> Vec<Vm> {
        self.inner.machines.lock().all().map(machines::Machine::vm).collect()
    }

    /// What a machine has printed since it was created.
    pub fn console(&self, id: &str) -> Option<String> {
        self.inner.machines.lock().get(id).map(|machine| machine.console.text())
    }

    /// Switches a machine off.
    pub fn stop(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "reboot: Power down")
    }

    /// Switches a machine on; nothing happens to one that is on.
    pub fn start(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_on(id)
    }

    /// Switches a machine off and on.
    pub fn reboot(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "reboot: Restarting system")?;
        self.inner.power_on(id)
    }

    /// A machine dies where it stands and stays dead until it is started.
    pub fn crash(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "Kernel panic - not syncing: Fatal exception")
    }

    /// Removes a machine with its disk. What others know of it, such as its Node, stays.
    pub fn destroy(&self, id: &str) -> Result<(), SiteError> {
        self.inner.destroy(id)
    }

    /// The address of a load balancer, which is allocated when first asked for. The same name gets the same
    /// address in every site, unless another name that hashes alike came first.
    pub fn endpoint(&self, name: &str) -> SocketAddrV4 {
        self.inner.network.lock().endpoint(name)
    }

    /// Gives a load balancer an address that was chosen elsewhere; a name that is held stays where it is.
    pub fn keep_endpoint(&self, name: &str, endpoint: SocketAddrV4) {
        self.inner.network.lock().keep(name, endpoint);
    }

    /// Lets a host name lead to an address, as a DNS server would.
    pub fn name_host(&self, host: &str, address: Ipv4Addr) {
        self.inner.network.lock().name(host, address);
    }

    /// A load balancer, if its address is allocated.
    pub fn balancer(&self, name: &str) -> Option<Balancer> {
        self.inner.network.lock().balancer(name)
    }

    /// Says which machines a load balancer sends clients to, on port 6443. It knows which of them are healthy.
    pub fn balance(&self, endpoint: SocketAddrV4, members: BTreeSet<Ipv4Addr>) {
        self.inner.network.lock().balance(endpoint, members);
        self.inner.reachable.notify_waiters();
    }

    /// Gives the address of a load balancer back.
    pub fn release(&self, endpoint: SocketAddrV4) {
        self.inner.network.lock().release(endpoint);
    }

    /// Ids of machines whose state changes from here on.
    pub fn changes(&self) -> broadcast::Receiver<String> {
        self.inner.changes.subscribe()
    }

    /// Reaches load balancers and machines inside this process, over TLS.
    pub fn dial(&self) -> Arc<dyn Dial> {
        Arc::new(dial::SiteDial(self.inner.clone()))
    }

    /// Serves every load balancer behind one listener until `stop` resolves: the address that a client connected to
    /// says which one it means. A listener that is to serve them all is bound to `0.0.0.0`; who does not come by a
    /// loopback address is turned away.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        dial::serve(&self.inner, listener, stop).await;
    }

    /// kubeadm on a machine.
    #[cfg(test)]
    pub(crate) fn kubeadm(&self, vm: &str) -> impl crate::request::Control + use<> {
        kubeadm::Kubeadm::new(Arc::downgrade(&self.inner), vm)
    }

    /// The cluster that a machine is a node of.
    pub fn cluster_of(&self, vm: &str) -> Option<Arc<GuestCluster>> {
        self.inner.machines.lock().get(vm).and_then(|machine| machine.cluster().cloned())
    }
}
