//! State of a workload cluster: control plane nodes and static pods, etcd, and the objects that kubeadm installed.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::workload::Node;
use jiff::Timestamp;
use serde_json::Value;

use super::etcd::EtcdState;
use super::static_pod::StaticPod;
use capstan_capi_core::secret::ConfigMap;

#[derive(Debug, Default)]
pub enum Workload {
    /// There is no workload cluster to reach yet.
    #[default]
    NotAsked,
    Unreachable(String),
    Reached(Box<WorkloadState>),
}

impl Workload {
    /// State of the workload cluster, if it is reachable.
    pub fn reached(&self) -> Option<&WorkloadState> {
        match self {
            Self::Reached(reached) => Some(reached),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub struct WorkloadState {
    /// Control plane nodes by name: those with the label, and those of its machines.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Static pods by name, or why one cannot be read.
    pub pods: BTreeMap<String, Result<StaticPod, String>>,
    pub etcd: EtcdState,
    pub kubeadm_config: Option<ConfigMap>,
    pub kube_proxy: Option<Value>,
    pub coredns: Option<Value>,
    pub coredns_config: Option<ConfigMap>,
    /// Existing ClusterRoleBindings of kubeadm; `None` if they were not read.
    pub bindings: Option<Vec<String>>,
    /// Certificate expiry by node, where it was read.
    pub expiries: BTreeMap<String, Timestamp>,
}
