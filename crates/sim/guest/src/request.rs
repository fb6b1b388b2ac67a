//! What kubeadm on a machine asks of the cluster, once everything that can be checked on the machine itself holds.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use futures::future::BoxFuture;
use serde_json::Value;

/// The rest of the world, as kubeadm on one machine sees it: the network, and the cluster behind it.
pub(crate) trait Control: Send + Sync {
    /// Makes this machine the first of a cluster; returns when the control plane answers.
    fn init<'a>(&'a self, request: InitRequest) -> BoxFuture<'a, Result<(), KubeadmError>>;

    /// Takes this machine into a cluster.
    fn join<'a>(&'a self, request: JoinRequest) -> BoxFuture<'a, Result<(), KubeadmError>>;
}

/// Files below a directory, by path relative to it.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The node that a machine becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeRequest {
    /// Id of the machine.
    pub vm: String,
    /// Name of the Node.
    pub name: String,
    /// Address of the machine.
    pub address: Ipv4Addr,
    /// Version of the kubelet, with `v`.
    pub kubelet_version: String,
    /// Identity of the machine in its cloud.
    pub provider_id: Option<String>,
    /// Labels that the kubelet sets, from its arguments.
    pub labels: BTreeMap<String, String>,
    /// Taints as in `Node.spec.taints`; `None` is kubeadm's default for the role.
    pub taints: Option<Vec<Value>>,
}

/// `kubeadm init`.
#[derive(Debug, Clone, PartialEq)]
pub struct InitRequest {
    /// The first node.
    pub node: NodeRequest,
    /// `/etc/kubernetes/pki` after the phase `certs`: given and generated files.
    pub pki: Files,
    /// `ClusterConfiguration`, defaulted, as it goes into the ConfigMap `kubeadm-config`.
    pub cluster_configuration: Value,
    /// Bootstrap tokens of the `InitConfiguration`.
    pub bootstrap_tokens: Vec<Value>,
    /// Phases left out, such as `addon/kube-proxy`.
    pub skipped_phases: Vec<String>,
}

/// `kubeadm join`.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinRequest {
    /// The node.
    pub node: NodeRequest,
    /// How the cluster is found and known.
    pub discovery: Discovery,
    /// Token for the kubelet's certificate; the discovery token if the configuration names no other.
    pub tls_bootstrap_token: Option<String>,
    /// `/etc/kubernetes/pki` as it is on the machine before joining, if it joins the control plane.
    pub control_plane: Option<Files>,
    /// Phases left out.
    pub skipped_phases: Vec<String>,
}

/// How a joining machine finds its cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum Discovery {
    /// By a bootstrap token.
    Token {
        /// `host:port` of the API server.
        endpoint: String,
        /// The token.
        token: String,
        /// `sha256:…` of the public keys of acceptable authorities.
        ca_cert_hashes: Vec<String>,
        /// Any authority will do.
        unsafe_skip_ca_verification: bool,
    },
    /// By a kubeconfig on the machine.
    File {
        /// The kubeconfig.
        kubeconfig: Value,
    },
}

/// Why kubeadm ended, in the words it would print on the console.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{phase}: {why}")]
pub struct KubeadmError {
    /// The phase, such as `preflight`, `discovery`, `certs`, `etcd`, `wait-control-plane`.
    pub phase: &'static str,
    /// What kubeadm says.
    pub why: String,
}
