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
        /// Registration of the node.
        pub node_registration: NodeRegistrationOptions,
        /// Address on which this node's API server listens.
        #[serde(rename = "localAPIEndpoint")]
        pub local_api_endpoint: LocalEndpoint,
        /// Phases of kubeadm to skip.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub skip_phases: Vec<String>,
        /// Patches of the manifests that kubeadm writes.
        pub patches: Patches,
        /// Timeouts of kubeadm.
        pub timeouts: Timeouts,
    }

    /// A bootstrap token of joining nodes.
    pub struct BootstrapToken {
        /// Token, in the form `abcdef.0123456789abcdef`.
        #[schemars(length(min = 1, max = 23), extend("x-required" = true))]
        pub token: String,
        /// Description of the purpose.
        #[schemars(length(min = 1, max = 512))]
        pub description: String,
        /// Lifetime of the token in seconds. Mutually exclusive with `expires`.
        #[schemars(range(min = 0))]
        pub ttl_seconds: Option<i32>,
        /// Expiry of the token. Mutually exclusive with `ttlSeconds`.
        pub expires: Option<Time>,
        /// Usages of the token.
        #[schemars(
            length(min = 1, max = 100),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub usages: Vec<String>,
        /// Groups of the token's user.
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
        /// Registration of the node.
        pub node_registration: NodeRegistrationOptions,
        /// Path of the cluster's certificate authority.
        #[schemars(length(min = 1, max = 512))]
        pub ca_cert_path: String,
        /// Discovery of the cluster.
        pub discovery: Discovery,
        /// Settings of a joining control plane node.
        pub control_plane: Option<JoinControlPlane>,
        /// Phases of kubeadm to skip.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 256)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub skip_phases: Vec<String>,
        /// Patches of the manifests that kubeadm writes.
        pub patches: Patches,
        /// Timeouts of kubeadm.
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
        /// IP address that the API server advertises.
        #[schemars(length(min = 1, max = 39))]
        pub advertise_address: String,
        /// Port that the API server listens on.
        #[schemars(range(min = 1))]
        pub bind_port: i32,
    }

    /// Registration of a node.
    #[schemars(extend("minProperties" = 1))]
    pub struct NodeRegistrationOptions {
        /// Name of the node. Defaults to the host name.
        #[schemars(length(min = 1, max = 253))]
        pub name: String,
        /// Socket of the container runtime.
        #[schemars(length(min = 1, max = 512))]
        pub cri_socket: String,
        /// Initial taints of the node. Defaults to those of kubeadm; an empty list means none.
        #[schemars(length(min = 0, max = 100))]
        pub taints: Option<Vec<Taint>>,
        /// Extra arguments of the kubelet, with unique names.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "value"], "x-kubernetes-validations" = [rule(UNIQUE_NAMES, "kubeletExtraArgs name must be unique")])
        )]
        pub kubelet_extra_args: Vec<Arg>,
        /// Preflight errors that are reported as warnings.
        #[schemars(
            length(min = 1, max = 50),
            inner(length(min = 1, max = 512)),
            extend("x-kubernetes-list-type" = "atomic")
        )]
        pub ignore_preflight_errors: Vec<String>,
        /// Pull policy of images.
        pub image_pull_policy: Option<PullPolicy>,
        /// Whether images are pulled one after another.
        pub image_pull_serial: Option<bool>,
    }

    /// Location of the patches.
    #[schemars(extend("minProperties" = 1))]
    pub struct Patches {
        /// Directory with files named `target[suffix][+patchtype].extension`.
        #[schemars(length(min = 1, max = 512))]
        pub directory: String,
    }

    /// Timeouts of kubeadm.
    #[schemars(extend("minProperties" = 1))]
    pub struct Timeouts {
        /// Timeout of the health check of a control plane component.
        #[schemars(range(min = 0))]
        pub control_plane_component_health_check_seconds: Option<i32>,
        /// Timeout of the health check of the kubelet.
        #[schemars(range(min = 0))]
        pub kubelet_health_check_seconds: Option<i32>,
        /// Timeout of calls to the API server.
        #[serde(rename = "kubernetesAPICallSeconds")]
        #[schemars(range(min = 0))]
        pub kubernetes_api_call_seconds: Option<i32>,
        /// Timeout of calls to etcd.
        #[serde(rename = "etcdAPICallSeconds")]
        #[schemars(range(min = 0))]
        pub etcd_api_call_seconds: Option<i32>,
        /// Timeout of the kubelet's TLS bootstrap.
        #[schemars(range(min = 0))]
        pub tls_bootstrap_seconds: Option<i32>,
        /// Timeout of the discovery.
        #[schemars(range(min = 0))]
        pub discovery_seconds: Option<i32>,
    }
}

choice! {
    /// Pull policy of images.
    pub enum PullPolicy {
        /// Images are always pulled.
        Always = "Always",
        /// Images are pulled if the node does not have them.
        IfNotPresent = "IfNotPresent",
        /// Images are never pulled.
        Never = "Never",
    }
}
