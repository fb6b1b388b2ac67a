//! The cluster that machines form: an in-memory API server with one listener per control plane machine, etcd's
//! membership, kubeadm's objects, and the actors in it.
//!
//! ```text
//!   init.rs, join.rs ── kubeadm init, kubeadm join ──▶ state.rs: machines, etcd members, listeners
//!                                                          │
//!   clients ── TLS ──▶ listeners ──▶ API server ◀── actors/ ┘  kubelets, controllers, scheduler: one task
//!                                     └─ port-forward ──▶ members.rs: etcd's gRPC
//! ```

mod actors;
mod certificates;
mod etcd;
mod init;
mod join;
mod kinds;
mod kubeadm;
mod members;
mod ports;
mod release;
mod restore;
mod state;

use std::sync::Arc;

use capstan_apiserver::Server;
use capstan_apiserver::front;
use capstan_controller::{Client, Stream};
use capstan_env::Env;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

pub use etcd::{EtcdAlarm, EtcdMember};
pub(crate) use init::InitCluster;
pub(crate) use join::Joining;
pub(crate) use kubeadm::token;
pub(crate) use release::minor;
pub(crate) use state::{ListenerState, Size};

use crate::site::SiteOptions;
use state::State;

/// A simulated workload cluster, for inspection. Clients reach it through its site.
pub struct GuestCluster {
    plane: Server,
    client: Client,
    ca: String,
    env: Env,
    options: SiteOptions,
    state: Mutex<State>,
    /// Notified when the state has changed.
    notify: Arc<Notify>,
    task: Mutex<Option<AbortHandle>>,
}

impl Drop for GuestCluster {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}

impl GuestCluster {
    /// The API server, whether clients can reach it or not.
    pub fn server(&self) -> &Server {
        &self.plane
    }

    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    pub fn etcd_members(&self) -> Vec<EtcdMember> {
        self.state.lock().etcd.members().cloned().collect()
    }

    /// Raises an alarm on the etcd member of a Node; returns false if there is none.
    pub fn raise_alarm(&self, node: &str, alarm: EtcdAlarm) -> bool {
        self.change(|state| state.etcd.raise(node, alarm))
    }

    pub fn has_quorum(&self) -> bool {
        self.state.lock().has_quorum()
    }

    pub(crate) fn listener(&self, vm: &str) -> ListenerState {
        self.state.lock().listener(vm)
    }

    pub(crate) fn machine_stopped(&self, vm: &str) {
        self.change(|state| state.stopped(vm));
    }

    pub(crate) fn machine_destroyed(&self, vm: &str) {
        let now = self.env.now();
        self.change(|state| {
            state.stopped(vm);
            // Listeners close before the machine is removed.
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

    /// Changes machines or members and updates what depends on them.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let changed = change(&mut state);
        state.settle(self.env.now());
        drop(state);
        self.notify.notify_one();
        changed
    }

    /// Serves a connection to the API server of a machine until one side closes it or the server stops.
    pub(crate) async fn serve(self: Arc<Self>, vm: String, stream: impl Stream + 'static) {
        let Some((tls, mut listener)) = self.state.lock().serving(&vm) else { return };
        if *listener.borrow_and_update() != ListenerState::Open {
            return;
        }
        let (pki, server) = (self.plane.pki().clone(), self.plane.clone());
        drop(self);
        tokio::select! {
            () = front::serve_connection(stream, tls, pki, server) => {}
            _ = listener.changed() => {}
        }
    }
}
