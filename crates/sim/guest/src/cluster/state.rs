//! Machines of a cluster, and the state derived from them.

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
    /// By machine id.
    pub(super) machines: BTreeMap<String, Member>,
    /// Nodes whose machine was destroyed, and when.
    pub(super) orphans: BTreeMap<String, Timestamp>,
    pub(super) etcd: Etcd,
}

pub(super) struct Member {
    pub(super) node: Arc<NodeRequest>,
    pub(super) size: Size,
    /// Powered on and booted.
    pub(super) running: bool,
    pub(super) kubelet: bool,
    /// The kubelet has started and not registered yet: only then it creates its Node.
    pub(super) registers: bool,
    /// A CNI is installed on its disk.
    pub(super) network: bool,
    /// Since when its kubelet sends no heartbeats.
    pub(super) silent_since: Option<Timestamp>,
    pub(super) control_plane: Option<ControlPlane>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u64,
}

/// What a control plane machine serves with.
pub(super) struct ControlPlane {
    pub(super) tls: Arc<ServerConfig>,
    pub(super) etcd_tls: Arc<ServerConfig>,
    /// The `ClusterConfiguration` of its static Pods.
    pub(super) configuration: Arc<Value>,
    /// Changes close open connections.
    pub(super) listener: watch::Sender<ListenerState>,
}

/// State of a machine's API server listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerState {
    /// It serves.
    Open,
    /// It cannot reach etcd: connections are closed.
    Broken,
    /// Nothing listens.
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
        Self { tls, etcd_tls, configuration, listener: watch::Sender::new(ListenerState::Closed) }
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

    pub(super) fn listener(&self, vm: &str) -> ListenerState {
        let machine = self.machines.get(vm).filter(|machine| machine.running);
        if machine.is_none_or(|machine| machine.control_plane.is_none()) {
            return ListenerState::Closed;
        }
        // The API server uses the etcd of its own machine, as kubeadm configures it.
        if self.etcd.votes(vm) && self.has_quorum() { ListenerState::Open } else { ListenerState::Broken }
    }

    /// Some API server works.
    pub(super) fn is_served(&self) -> bool {
        self.machines.keys().any(|vm| self.listener(vm) == ListenerState::Open)
    }

    /// The kubelet runs and reaches an API server: its own, if the machine has one.
    pub(super) fn posts(&self, vm: &str) -> bool {
        let Some(machine) = self.machines.get(vm).filter(|machine| machine.running && machine.kubelet) else {
            return false;
        };
        if machine.control_plane.is_some() {
            self.listener(vm) == ListenerState::Open
        } else {
            self.is_served()
        }
    }

    pub(super) fn serving(&self, vm: &str) -> Option<(Arc<ServerConfig>, watch::Receiver<ListenerState>)> {
        let serving = self.machines.get(vm)?.control_plane.as_ref()?;
        Some((serving.tls.clone(), serving.listener.subscribe()))
    }

    /// Updates the derived state: etcd's leader, listeners, machines without heartbeats.
    pub(super) fn settle(&mut self, now: Timestamp) {
        let machines = &self.machines;
        self.etcd.elect(|vm| machines.get(vm).is_some_and(|machine| machine.running));
        for (vm, machine) in &self.machines {
            if let Some(serving) = &machine.control_plane {
                let listener = self.listener(vm);
                serving.listener.send_if_modified(|held| std::mem::replace(held, listener) != listener);
            }
        }
        let posting: Vec<bool> = self.machines.keys().map(|vm| self.posts(vm)).collect();
        for (machine, posts) in self.machines.values_mut().zip(posting) {
            machine.silent_since = if posts { None } else { machine.silent_since.or(Some(now)) };
        }
    }
}
