//! `KVMCluster`: the network of a cluster on this host, and where its API is reached.

use capstan_capi_types::core::APIEndpoint;
use capstan_capi_types::wire::{choice, wire};
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

object!(KVMCluster, "infrastructure.cluster.x-k8s.io" / "v1beta1", "KVMCluster", "kvmclusters", Namespaced);

wire! {
    /// The infrastructure of a cluster on this host: a network, and a balancer before its API servers.
    pub struct KVMCluster {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KVMClusterSpec,
        /// What was observed.
        pub status: KVMClusterStatus,
    }

    /// What is wanted of the infrastructure of a cluster.
    pub struct KVMClusterSpec {
        /// Where the API server is reached; filled in by the provider.
        pub control_plane_endpoint: APIEndpoint,
        /// What machines are; `namespace` if absent. Cannot change.
        pub backend: Option<Backend>,
        /// The network that machines are in. Cannot change.
        pub network: KVMNetwork,
    }

    /// A network on this host.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMNetwork {
        /// IPv4 addresses of the network, such as `10.89.0.0/24`; a free part of 10.89.0.0/16 if absent. The first
        /// address is the gateway and the API's, the last is this host's.
        #[schemars(length(min = 9, max = 18))]
        pub cidr: String,
    }

    /// What was observed of the infrastructure of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMClusterStatus {
        /// Observed aspects of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Milestones on the way to being usable; contract with the core.
        pub initialization: InitializationStatus,
        /// The network's addresses.
        #[schemars(length(min = 9, max = 18))]
        pub cidr: String,
    }
}

choice! {
    /// What machines are.
    pub enum Backend {
        /// Linux namespaces on this host: real nodes in seconds, for development and tests, no boundary of safety.
        Namespace = "namespace",
    }
}
