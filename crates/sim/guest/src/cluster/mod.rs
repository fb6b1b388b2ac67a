//! What machines form: an API server in memory behind as many doors as there are control-plane machines, etcd's
//! membership, what kubeadm leaves in a new cluster, and what goes on in it.
//!
//! ```text
//!   found.rs, join.rs ── kubeadm init, kubeadm join ──▶ state.rs: machines, etcd's members, doors
//!                                                          │ facts
//!   clients ── TLS ──▶ doors ──▶ API server ◀── life/ ─────┘  kubelets, controllers, scheduler: one task
//!                                     └─ port-forward ──▶ members.rs: etcd's gRPC
//! ```

mod certificates;
mod etcd;
mod found;
mod join;
mod kinds;
mod kubeadm;
mod life;
mod members;
mod ports;
mod release;
mod revive;
mod state;

use std::sync::Arc;

use capstan_apiserver::front;
use capstan_apiserver::{Server, env::Env};
use capstan_controller::{Client, Stream};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub use etcd::{EtcdAlarm, EtcdMember};
pub(crate) use found::Founding;
pub(crate) use join::Joining;
pub(crate) use kubeadm::token;
pub(crate) use release::minor;
pub(crate) use state::{Door, Size};

use crate::site::SiteOptions;
use state::State;

/// A simulated workload cluster, to look inside. Clients reach it through its site.
pub struct GuestCluster {
    plane: Server,
    client: Client,
    ca: String,
    env: Env,
    options: SiteOptions,
    state: Mutex<State>,
    /// Rings when the state has changed.
    bell: Arc<Notify>,
    life: Mutex<Option<AbortHandle>>,
}

impl Drop for GuestCluster {
    fn drop(&mut self) {
        if let Some(life) = self.life.get_mut() {
            life.abort();
        }
    }
}

impl GuestCluster {
    /// The API server, whoever can reach it.
    pub fn server(&self) -> &Server {
        &self.plane
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// Members of its etcd.
    pub fn etcd_members(&self) -> Vec<EtcdMember> {
        self.state.lock().etcd.members().cloned().collect()
    }

    /// Raises an alarm about the member of etcd on a Node; false if there is none.
    pub fn raise_alarm(&self, node: &str, alarm: EtcdAlarm) -> bool {
        self.change(|state| state.etcd.raise(node, alarm))
    }

    /// Whether enough members of etcd are there to agree.
    pub fn has_quorum(&self) -> bool {
        self.state.lock().has_quorum()
    }

    pub(crate) fn door(&self, vm: &str) -> Door {
        self.state.lock().door(vm)
    }

    pub(crate) fn machine_stopped(&self, vm: &str) {
        self.change(|state| state.stopped(vm));
    }

    pub(crate) fn machine_destroyed(&self, vm: &str) {
        let now = self.env.now();
        self.change(|state| {
            state.stopped(vm);
            // The doors close before the machine is forgotten.
            state.settle(now);
            state.destroyed(vm, now);
        });
    }

    pub(crate) fn machine_started(&self, vm: &str) {
        self.change(|state| state.started(vm));
    }

    pub(crate) fn kubelet_stopped(&self, vm: &str) {
        self.change(|state| state.kubelet_stopped(vm));
    }

    /// Changes what machines and members there are, and lets everything else follow.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        state.settle(self.env.now());
        drop(state);
        self.bell.notify_one();
        changed
    }

    /// Serves a connection to the API server of a machine until one side ends it or the server goes down.
    pub(crate) async fn serve(self: Arc<Self>, vm: String, stream: impl Stream + 'static) {
        let Some((tls, mut door)) = self.state.lock().serving(&vm) else { return };
        if *door.borrow_and_update() != Door::Open {
            return;
        }
        let (pki, server) = (self.plane.pki().clone(), self.plane.clone());
        drop(self);
        tokio::select! {
            () = front::serve_connection(stream, tls, pki, server) => {}
            _ = door.changed() => {}
        }
    }
}
