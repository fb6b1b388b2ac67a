//! What was read of a workload cluster: its control plane's nodes and static pods, its etcd, and what kubeadm and its
//! add-ons left there.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::workload::Node;
use jiff::Timestamp;
use serde_json::Value;

use super::etcd::EtcdSeen;
use super::static_pod::StaticPod;
use crate::secret::ConfigMap;

/// What is known of the workload cluster.
#[derive(Debug, Default)]
pub enum Workload {
    /// There is nothing to reach yet.
    #[default]
    NotAsked,
    /// It does not answer, and why.
    Unreachable(String),
    /// It answers.
    Reached(Box<Inside>),
}

impl Workload {
    /// What was seen of it, if it answers.
    pub fn inside(&self) -> Option<&Inside> {
        match self {
            Self::Reached(inside) => Some(inside),
            _ => None,
        }
    }
}

/// What was seen of a workload cluster.
#[derive(Debug, Default)]
pub struct Inside {
    /// Nodes of the control plane, by name: those with its label, and those of its machines.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Static pods of the control plane by name; one that cannot be read is an error.
    pub pods: BTreeMap<String, Result<StaticPod, String>>,
    /// etcd.
    pub etcd: EtcdSeen,
    /// kubeadm's configuration.
    pub kubeadm_config: Option<ConfigMap>,
    /// kube-proxy's DaemonSet.
    pub kube_proxy: Option<Value>,
    /// CoreDNS's Deployment.
    pub coredns: Option<Value>,
    /// CoreDNS's configuration.
    pub coredns_config: Option<ConfigMap>,
    /// Names of the bindings that kubeadm makes and that exist.
    pub bindings: Vec<String>,
    /// When certificates of nodes expire, where that was asked and shown.
    pub expiries: BTreeMap<String, Timestamp>,
}
