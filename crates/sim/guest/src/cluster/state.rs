//! What changes with the machines of a cluster, and what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::ServerConfig;
use serde_json::Value;
use tokio::sync::watch;

use super::etcd::Etcd;
use crate::request::NodeRequest;

/// Machines and etcd's members.
pub(super) struct State {
    /// By id of the machine.
    pub(super) machines: BTreeMap<String, Member>,
    /// Nodes whose machine was destroyed, and when.
    pub(super) orphans: BTreeMap<String, Timestamp>,
    pub(super) etcd: Etcd,
}

/// A machine of the cluster.
pub(super) struct Member {
    pub(super) node: Arc<NodeRequest>,
    pub(super) size: Size,
    /// It is switched on and has booted.
    pub(super) running: bool,
    /// Its kubelet runs.
    pub(super) kubelet: bool,
    /// Its kubelet has started and not registered yet: the only time it creates its Node.
    pub(super) registers: bool,
    /// A network plugin has been installed on its disk.
    pub(super) network: bool,
    /// Since when nobody has heard of its kubelet.
    pub(super) silent_since: Option<Timestamp>,
    pub(super) control_plane: Option<ControlPlane>,
}

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u64,
}

/// What a control-plane machine serves with.
pub(super) struct ControlPlane {
    pub(super) tls: Arc<ServerConfig>,
    pub(super) etcd_tls: Arc<ServerConfig>,
    /// The `ClusterConfiguration` that its static Pods come from.
    pub(super) configuration: Arc<Value>,
    /// Cuts the connections that are open.
    pub(super) door: watch::Sender<Door>,
}

/// How the API server of a machine receives clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// It works.
    Open,
    /// It cannot reach etcd: whoever connects is cut off.
    Broken,
    /// Nobody listens.
    Closed,
}

impl Member {
    pub(super) fn new(node: Arc<NodeRequest>, size: Size, control_plane: Option<ControlPlane>) -> Self {
        Self {
            node,
            size,
            running: true,
            kubelet: true,
            registers: true,
            network: false,
            silent_since: None,
            control_plane,
        }
    }
}

impl ControlPlane {
    pub(super) fn new(
        tls: Arc<ServerConfig>,
        etcd_tls: Arc<ServerConfig>,
        configuration: Arc<Value>,
    ) -> Self {
        Self { tls, etcd_tls, configuration, door: watch::Sender::new(Door::Closed) }
    }
}

impl State {
    pub(super) fn runs(&self, vm: &str) -> bool {
        self.machines.get(vm).is_some_and(|machine| machine.running)
    }

    pub(super) fn has_quorum(&self) -> bool {
        self.etcd.has_quorum(|vm| self.runs(vm))
    }

    pub(super) fn stopped(&mut self, vm: &str) {
        if let Some(member) = self.machines.get_mut(vm) {
            member.running = false;
            member.kubelet = false;
        }
    }

    pub(super) fn destroyed(&mut self, vm: &str, now: Timestamp) {
        if let Some(member) = self.machines.remove(vm) {
            self.orphans.insert(member.node.name.clone(), member.silent_since.unwrap_or(now));
        }
    }

    pub(super) fn started(&mut self, vm: &str) {
        if let Some(member) = self.machines.get_mut(vm) {
            member.running = true;
            member.kubelet = true;
            member.registers = true;
        }
    }

    pub(super) fn kubelet_stopped(&mut self, vm: &str) {
        if let Some(member) = self.machines.get_mut(vm) {
            member.kubelet = false;
        }
    }

    pub(super) fn door(&self, vm: &str) -> Door {
        let machine = self.machines.get(vm).filter(|machine| machine.running);
        if machine.is_none_or(|machine| machine.control_plane.is_none()) {
            return Door::Closed;
        }
        // The API server speaks to the etcd of its own machine and no other, as kubeadm sets it up.
        if self.etcd.votes(vm) && self.has_quorum() { Door::Open } else { Door::Broken }
    }

    /// The API server works somewhere.
    pub(super) fn is_served(&self) -> bool {
        self.machines.keys().any(|vm| self.door(vm) == Door::Open)
    }

    /// The kubelet of a machine runs and reaches an API server: its own, if there is one on the machine.
    pub(super) fn posts(&self, vm: &str) -> bool {
        let Some(machine) = self.machines.get(vm).filter(|machine| machine.running && machine.kubelet) else {
            return false;
        };
        if machine.control_plane.is_some() { self.door(vm) == Door::Open } else { self.is_served() }
    }

    pub(super) fn serving(&self, vm: &str) -> Option<(Arc<ServerConfig>, watch::Receiver<Door>)> {
        let serving = self.machines.get(vm)?.control_plane.as_ref()?;
        Some((serving.tls.clone(), serving.door.subscribe()))
    }

    /// Lets everything follow from which machines run: who leads etcd, which doors are open, who is silent.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let machines = &self.machines;
        self.etcd.elect(|vm| machines.get(vm).is_some_and(|machine| machine.running));
        for (vm, machine) in &self.machines {
            if let Some(serving) = &machine.control_plane {
                let door = self.door(vm);
                serving.door.send_if_modified(|held| std::mem::replace(held, door) != door);
            }
        }
        let posting: Vec<bool> = self.machines.keys().map(|vm| self.posts(vm)).collect();
        for (machine, posts) in self.machines.values_mut().zip(posting) {
            machine.silent_since = if posts { None } else { machine.silent_since.or(Some(now)) };
        }
    }
}
