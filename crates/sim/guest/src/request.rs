//! Requests of kubeadm on a machine to the cluster, after all local checks.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use futures::future::BoxFuture;
use serde_json::Value;

/// The network and cluster as kubeadm on one machine sees them.
pub(crate) trait Control: Send + Sync {
    /// Makes this machine the first of a cluster; returns when the control plane responds.
    fn init<'a>(&'a self, request: InitRequest) -> BoxFuture<'a, Result<(), KubeadmError>>;

    /// Joins this machine to a cluster.
    fn join<'a>(&'a self, request: JoinRequest) -> BoxFuture<'a, Result<(), KubeadmError>>;
}

/// Files below a directory, by path relative to it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The node of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRequest {
    pub vm: String,
    pub name: String,
    pub address: Ipv4Addr,
    /// Version of the kubelet, with `v`.
    pub kubelet_version: String,
    /// As the kubelet sets it.
    pub provider_id: Option<String>,
    /// Set with `--cloud-provider=external`: a cloud controller manager initializes the Node.
    pub external: Option<ExternalCloud>,
    /// Labels that the kubelet sets, from its arguments.
    pub labels: BTreeMap<String, String>,
    /// Taints as in `Node.spec.taints`; `None` is kubeadm's default for the role.
    pub taints: Option<Vec<Value>>,
}

/// A kubelet that leaves its Node to a cloud controller manager.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExternalCloud {
    /// `--node-ip`: the only address that such a kubelet reports itself; unspecified is the machine's own.
    pub node_ip: Option<Ipv4Addr>,
}

/// `kubeadm init`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitRequest {
    pub node: NodeRequest,
    /// `/etc/kubernetes/pki` after the phase `certs`: given and generated files.
    pub pki: Files,
    /// `ClusterConfiguration`, defaulted, as it goes into the ConfigMap `kubeadm-config`.
    pub cluster_configuration: Value,
    /// Bootstrap tokens of the `InitConfiguration`.
    pub bootstrap_tokens: Vec<Value>,
    /// Skipped phases, such as `addon/kube-proxy`.
    pub skipped_phases: Vec<String>,
}

/// `kubeadm join`.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinRequest {
    pub node: NodeRequest,
    pub discovery: Discovery,
    /// Token for the kubelet's certificate; defaults to the discovery token.
    pub tls_bootstrap_token: Option<String>,
    /// `/etc/kubernetes/pki` before joining; `None` for a worker.
    pub control_plane: Option<Files>,
    pub skipped_phases: Vec<String>,
}

/// How a joining machine discovers its cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Discovery {
    /// By a bootstrap token.
    Token {
        /// `host:port` of the API server.
        endpoint: String,
        token: String,
        /// `sha256:…` hashes of the public keys of trusted CAs.
        ca_cert_hashes: Vec<String>,
        /// Trust any CA.
        unsafe_skip_ca_verification: bool,
    },
    /// By a kubeconfig on the machine.
    File { kubeconfig: Value },
}

/// Why kubeadm failed, as printed on the console.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{phase}: {why}")]
pub struct KubeadmError {
    /// The phase, such as `preflight`, `discovery`, `certs`, `etcd`, `wait-control-plane`.
    pub phase: &'static str,
    pub why: String,
}
