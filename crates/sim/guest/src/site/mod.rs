//! All machines and clusters, their addresses and load balancers, and connections to them.
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
mod restore;
mod retry;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::config::SharedPolicy;
use capstan_controller::Dial;
use capstan_env::Env;
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
pub use restore::{RecordedCluster, RecordedMachine};

/// Changes that a slow listener may lag behind before it must list everything.
const BACKLOG: usize = 4096;

#[derive(Debug, Clone)]
pub struct SiteOptions {
    pub endpoint_port: u16,
    pub timings: Timings,
    /// Interval at which kubelets renew their Leases. Without it Leases are not renewed and the node controller
    /// learns of dead kubelets directly: thousands of idle clusters then cost no CPU.
    pub heartbeat: Option<Duration>,
    /// A cluster has a CNI and a cloud controller manager from the start, even if no manifest installs them: for previews
    /// of what machines do, which must not stop at a missing add-on.
    pub assume_addons: bool,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            endpoint_port: 6443,
            timings: Timings::default(),
            heartbeat: Some(Duration::from_secs(10)),
            assume_addons: false,
        }
    }
}

/// Durations in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timings {
    /// From power-on to the first line of user data.
    pub boot: Duration,
    /// `kubeadm init`, including image pulls.
    pub init: Duration,
    /// `kubeadm join`.
    pub join: Duration,
    /// From a Pod's binding to its readiness.
    pub pod: Duration,
}

impl Default for Timings {
    /// A small virtual machine with preloaded images.
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
    /// No delays.
    pub fn none() -> Self {
        Self { boot: Duration::ZERO, init: Duration::ZERO, join: Duration::ZERO, pod: Duration::ZERO }
    }
}

/// Why a site refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub enum SiteError {
    /// A machine with this id exists or existed.
    #[error("machine {0} exists already, or once did")]
    Exists(String),
    #[error("there is no machine {0}")]
    NoSuchVm(String),
    #[error("address {0} belongs to another machine")]
    AddressTaken(Ipv4Addr),
}

/// Machines, clusters and the network between them. Clones share the site; it ends with the last clone.
#[derive(Clone)]
pub struct Site {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    options: SiteOptions,
    machines: Mutex<Machines>,
    network: Mutex<Network>,
    /// What its clusters have in common.
    policy: SharedPolicy,
    changes: broadcast::Sender<String>,
    /// Notified when something may have become reachable.
    reachable: Notify,
}

impl Site {
    /// An empty site. Machines must be created inside a Tokio runtime, whose clock they use.
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

    /// Creates a machine and powers it on.
    pub fn create(&self, spec: VmSpec) -> Result<Vm, SiteError> {
        self.inner.create(spec)
    }

    pub fn vm(&self, id: &str) -> Option<Vm> {
        self.inner.machines.lock().get(id).map(machines::Machine::vm)
    }

    /// All machines, ordered by id.
    pub fn vms(&self) -> Vec<Vm> {
        self.inner.machines.lock().all().map(machines::Machine::vm).collect()
    }

    /// Console output since creation.
    pub fn console(&self, id: &str) -> Option<String> {
        self.inner.machines.lock().get(id).map(|machine| machine.console.text())
    }

    /// Powers a machine off.
    pub fn stop(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "reboot: Power down")
    }

    /// Powers a machine on; no effect if it is on.
    pub fn start(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_on(id)
    }

    /// Powers a machine off and on.
    pub fn reboot(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "reboot: Restarting system")?;
        self.inner.power_on(id)
    }

    /// Crashes a machine; it stays off until it is started.
    pub fn crash(&self, id: &str) -> Result<(), SiteError> {
        self.inner.power_off(id, "Kernel panic - not syncing: Fatal exception")
    }

    /// Removes a machine with its disk. Its Node and other references to it remain.
    pub fn destroy(&self, id: &str) -> Result<(), SiteError> {
        self.inner.destroy(id)
    }

    /// The address of a load balancer, allocated on first use. The same name gets the same address in every site,
    /// except for hash collisions.
    pub fn endpoint(&self, name: &str) -> SocketAddrV4 {
        self.inner.network.lock().endpoint(name)
    }

    /// Assigns an existing address to a load balancer; has no effect if the name already has one.
    pub fn keep_endpoint(&self, name: &str, endpoint: SocketAddrV4) {
        self.inner.network.lock().keep(name, endpoint);
    }

    /// Resolves a host name to an address, as a DNS server would.
    pub fn name_host(&self, host: &str, address: Ipv4Addr) {
        self.inner.network.lock().name(host, address);
    }

    pub fn balancer(&self, name: &str) -> Option<Balancer> {
        self.inner.network.lock().balancer(name)
    }

    /// Sets the machines behind a load balancer, port 6443. It checks their health itself.
    pub fn balance(&self, endpoint: SocketAddrV4, members: BTreeSet<Ipv4Addr>) {
        self.inner.network.lock().balance(endpoint, members);
        self.inner.reachable.notify_waiters();
    }

    /// Releases the address of a load balancer.
    pub fn release(&self, endpoint: SocketAddrV4) {
        self.inner.network.lock().release(endpoint);
    }

    /// Ids of machines whose state changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<String> {
        self.inner.changes.subscribe()
    }

    /// Connects to load balancers and machines inside this process, over TLS.
    pub fn dial(&self) -> Arc<dyn Dial> {
        Arc::new(dial::SiteDial(self.inner.clone()))
    }

    /// Serves every load balancer behind one listener until `stop` resolves: the destination address selects the load
    /// balancer. To serve all of them, bind the listener to `0.0.0.0`; connections to other than loopback addresses
    /// are rejected.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()>) {
        dial::serve(&self.inner, listener, stop).await;
    }

    #[cfg(test)]
    pub(crate) fn kubeadm(&self, vm: &str) -> impl crate::request::Control + use<> {
        kubeadm::Kubeadm::new(Arc::downgrade(&self.inner), vm)
    }

    /// The cluster that a machine is a node of.
    pub fn cluster_of(&self, vm: &str) -> Option<Arc<GuestCluster>> {
        self.inner.machines.lock().get(vm).and_then(|machine| machine.cluster().cloned())
    }
}
