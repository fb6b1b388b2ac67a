//! kubeadm's configuration of one node: the first, or a joining one.

use capstan_object::Time;

use super::cluster_configuration::Arg;
use super::discovery::Discovery;
use crate::kubernetes::Taint;
use crate::schema::{UNIQUE_NAMES, rule};
use crate::wire::{choice, wire};

wire! {
    /// kubeadm's `InitConfiguration`, for the first node.
    #[schemars(extend("minProperties" = 1))]
    pub struct InitConfiguration {
        /// Bootstrap tokens to create.
        #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub bootstrap_tokens: Vec<BootstrapToken>,
        /// How the node presents itself to the cluster.
        pub node_registration: NodeRegistrationOptions,
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
        /// Phases of kubeadm to leave out.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub skip_phases: Vec<String>,
        /// Patches for what kubeadm writes.
        pub patches: Patches,
        /// How long kubeadm waits for things.
        pub timeouts: Timeouts,
    }

    /// A token with which nodes join.
    pub struct BootstrapToken {
        /// The token, `abcdef.0123456789abcdef`.
        #[schemars(length(min = 1, max = 23), extend("x-required" = true))]
        pub token: String,
        /// What it is for.
        #[schemars(length(min = 1, max = 512))]
        pub description: String,
        /// Lifetime in seconds; excludes `expires`.
        #[schemars(range(min = 0))]
        pub ttl_seconds: Option<i32>,
        /// When it expires; excludes `ttlSeconds`.
        pub expires: Option<Time>,
        /// What it may be used for.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub usages: Vec<String>,
        /// Groups that its bearer is in.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub groups: Vec<String>,
    }

    /// kubeadm's `JoinConfiguration`.
    #[schemars(extend("minProperties" = 1))]
    pub struct JoinConfiguration {
        /// How the node presents itself to the cluster.
        pub node_registration: NodeRegistrationOptions,
        /// File of the cluster's certificate authority.
        #[schemars(length(min = 1, max = 512))]
        pub ca_cert_path: String,
        /// How the cluster is found and trusted.
        pub discovery: Discovery,
        /// Joins as a control plane node.
        pub control_plane: Option<JoinControlPlane>,
        /// Phases of kubeadm to leave out.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub skip_phases: Vec<String>,
        /// Patches for what kubeadm writes.
        pub patches: Patches,
        /// How long kubeadm waits for things.
        pub timeouts: Timeouts,
    }

    /// Settings of a joining control plane node.
    pub struct JoinControlPlane {
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
    }

    /// Address on which a node's API server listens.
    #[schemars(extend("minProperties" = 1))]
    pub struct LocalEndpoint {
        /// Address it advertises.
        #[schemars(length(min = 1, max = 39))]
        pub advertise_address: String,
        /// Port it listens on.
        #[schemars(range(min = 1))]
        pub bind_port: i32,
    }

    /// How a node presents itself to the cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct NodeRegistrationOptions {
        /// Name of the node; the host's name if absent.
        #[schemars(length(min = 1, max = 253))]
        pub name: String,
        /// Socket of the container runtime.
        #[schemars(length(min = 1, max = 512))]
        pub cri_socket: String,
        /// Initial taints; an empty list for none, absent for kubeadm's default.
        #[schemars(length(min = 0, max = 100))]
        pub taints: Option<Vec<Taint>>,
        /// Extra arguments of the kubelet, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "kubeletExtraArgs name must be unique")])
        )]
        pub kubelet_extra_args: Vec<Arg>,
        /// Preflight errors that only warn.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub ignore_preflight_errors: Vec<String>,
        /// When images are pulled.
        pub image_pull_policy: Option<PullPolicy>,
        /// Whether images are pulled one after another.
        pub image_pull_serial: Option<bool>,
    }

    /// Where patches are.
    #[schemars(extend("minProperties" = 1))]
    pub struct Patches {
        /// Directory with files named `target[suffix][+patchtype].extension`.
        #[schemars(length(min = 1, max = 512))]
        pub directory: String,
    }

    /// How long kubeadm waits.
    #[schemars(extend("minProperties" = 1))]
    pub struct Timeouts {
        /// For a control plane component to be healthy.
        #[schemars(range(min = 0))]
        pub control_plane_component_health_check_seconds: Option<i32>,
        /// For the kubelet to be healthy.
        #[schemars(range(min = 0))]
        pub kubelet_health_check_seconds: Option<i32>,
        /// For an answer of the API server.
        #[serde(rename = "kubernetesAPICallSeconds")]
        #[schemars(range(min = 0))]
        pub kubernetes_api_call_seconds: Option<i32>,
        /// For an answer of etcd.
        #[serde(rename = "etcdAPICallSeconds")]
        #[schemars(range(min = 0))]
        pub etcd_api_call_seconds: Option<i32>,
        /// For the kubelet's first certificate.
        #[schemars(range(min = 0))]
        pub tls_bootstrap_seconds: Option<i32>,
        /// For finding the cluster.
        #[schemars(range(min = 0))]
        pub discovery_seconds: Option<i32>,
    }
}

choice! {
    /// When images are pulled.
    pub enum PullPolicy {
        /// Every time.
        Always = "Always",
        /// If the node has none.
        IfNotPresent = "IfNotPresent",
        /// Never.
        Never = "Never",
    }
}
