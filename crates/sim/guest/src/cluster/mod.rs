//! What machines form: an API server in memory behind as many doors as there are control-plane machines, etcd's
//! membership, and what kubeadm leaves in a new cluster.

mod certificates;
mod etcd;
mod found;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_apiserver::front;
use capstan_apiserver::plane::Plane;
use capstan_apiserver::{Server, env::Env};
use capstan_controller::Stream;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::sync::watch;

pub use etcd::EtcdMember;
pub(crate) use found::Founding;

use crate::site::SiteOptions;
use etcd::Etcd;

/// A simulated workload cluster, to look inside. Clients reach it through its site.
pub struct GuestCluster {
    plane: Plane,
    ca: String,
    env: Env,
    options: SiteOptions,
    state: Mutex<State>,
}

/// What changes with the machines of a cluster.
struct State {
    /// By id of the machine.
    machines: BTreeMap<String, Member>,
    etcd: Etcd,
}

/// A machine of the cluster.
struct Member {
    /// Name of its Node.
    node: String,
    /// It is switched on and has booted.
    running: bool,
    /// Its kubelet runs.
    kubelet: bool,
    control_plane: Option<ControlPlane>,
}

/// What a control-plane machine serves with.
struct ControlPlane {
    tls: Arc<ServerConfig>,
    /// Cuts the connections that are open.
    door: watch::Sender<Door>,
}

/// How the API server of a machine receives clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// It works.
    Open,
    /// It takes connections and answers that it cannot reach etcd.
    Broken,
    /// Nobody listens.
    Closed,
}

impl GuestCluster {
    /// The API server, whoever can reach it.
    pub fn server(&self) -> &Server {
        self.plane.server()
    }

    /// The certificate of its authority.
    pub fn ca_pem(&self) -> &str {
        &self.ca
    }

    /// Members of its etcd.
    pub fn etcd_members(&self) -> Vec<EtcdMember> {
        self.state.lock().etcd.members().to_vec()
    }

    /// Whether enough members of etcd are there to agree.
    pub fn has_quorum(&self) -> bool {
        self.state.lock().has_quorum()
    }

    pub(crate) fn door(&self, vm: &str) -> Door {
        self.state.lock().door(vm)
    }

    pub(crate) fn machine_stopped(&self, vm: &str) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.running = false;
                member.kubelet = false;
            }
        });
    }

    pub(crate) fn machine_destroyed(&self, vm: &str) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.running = false;
                member.kubelet = false;
            }
            // After the doors have closed.
            state.settle();
            state.machines.remove(vm);
        });
    }

    pub(crate) fn machine_started(&self, vm: &str) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.running = true;
                member.kubelet = true;
            }
        });
    }

    pub(crate) fn kubelet_stopped(&self, vm: &str) {
        self.change(|state| {
            if let Some(member) = state.machines.get_mut(vm) {
                member.kubelet = false;
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.settle();
    }

    /// Serves a connection to the API server of a machine until one side ends it or the server goes down.
    pub(crate) async fn serve(self: Arc<Self>, vm: String, stream: impl Stream + 'static) {
        let found = self.state.lock().machines.get(&vm).and_then(|member| {
            member.control_plane.as_ref().map(|serving| (serving.tls.clone(), serving.door.subscribe()))
        });
        let Some((tls, mut door)) = found else { return };
        if *door.borrow_and_update() != Door::Open {
            return;
        }
        let (pki, server) = (self.plane.pki().clone(), self.plane.server().clone());
        drop(self);
        tokio::select! {
            () = front::serve_connection(stream, tls, pki, server) => {}
            _ = door.changed() => {}
        }
    }
}

impl State {
    fn has_quorum(&self) -> bool {
        let etcd = &self.etcd;
        etcd.has_quorum(|member| {
            self.machines.values().any(|machine| machine.running && machine.node == member)
        })
    }

    fn door(&self, vm: &str) -> Door {
        let Some(machine) = self.machines.get(vm).filter(|machine| machine.running) else {
            return Door::Closed;
        };
        if machine.control_plane.is_none() {
            return Door::Closed;
        }
        // The API server speaks to the etcd of its own machine and no other, as kubeadm sets it up.
        if self.etcd.votes(&machine.node) && self.has_quorum() { Door::Open } else { Door::Broken }
    }

    /// Lets everything follow from which machines run: who leads etcd, which doors are open.
    fn settle(&mut self) {
        let running: Vec<String> = self
            .machines
            .values()
            .filter(|machine| machine.running)
            .map(|machine| machine.node.clone())
            .collect();
        self.etcd.elect(|member| running.iter().any(|node| node == member));
        for (vm, machine) in &self.machines {
            if let Some(serving) = &machine.control_plane {
                let door = self.door(vm);
                serving.door.send_if_modified(|held| std::mem::replace(held, door) != door);
            }
        }
    }
}
