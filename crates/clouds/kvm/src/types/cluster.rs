//! `KVMCluster`: the network of a cluster on this host, and its API endpoint.

use capstan_capi_types::core::{APIEndpoint, TemplateMeta};
use capstan_capi_types::wire::{choice, wire};
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

object!(KVMCluster, "infrastructure.cluster.x-k8s.io" / "v1beta1", "KVMCluster", "kvmclusters", Namespaced);

object!(
    KVMClusterTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "KVMClusterTemplate",
    "kvmclustertemplates",
    Namespaced
);

wire! {
    /// The infrastructure of a cluster on this host: a network, and a load balancer for its API servers.
    pub struct KVMCluster {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KVMClusterSpec,
        /// Observed state.
        pub status: KVMClusterStatus,
    }

    /// Desired state of the infrastructure of a cluster.
    pub struct KVMClusterSpec {
        /// Endpoint of the API server; set by the provider.
        pub control_plane_endpoint: APIEndpoint,
        /// Type of the machines; defaults to `namespace`. Immutable.
        pub backend: Option<Backend>,
        /// The network of the machines. Immutable.
        pub network: KVMNetwork,
    }

    /// A network on this host.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMNetwork {
        /// IPv4 CIDR of the network, such as `10.89.0.0/24`; defaults to a free part of 10.89.0.0/16. The first
        /// address is the gateway's and the API endpoint's, the last is this host's.
        #[schemars(length(min = 9, max = 18))]
        pub cidr: String,
    }

    /// Observed state of the infrastructure of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct KVMClusterStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Initialization status; part of the provider contract.
        pub initialization: InitializationStatus,
        /// CIDR of the network.
        #[schemars(length(min = 9, max = 18))]
        pub cidr: String,
    }

    /// Template of KVMClusters.
    pub struct KVMClusterTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KVMClusterTemplateSpec,
    }

    /// Template of KVMClusters.
    pub struct KVMClusterTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KVMClusterTemplateResource,
    }

    /// The template of a KVMCluster.
    pub struct KVMClusterTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state. Immutable.
        pub spec: KVMClusterSpec,
    }
}

choice! {
    /// Type of machines.
    pub enum Backend {
        /// Linux namespaces on this host: real nodes in seconds, for development and tests. Not a security boundary.
        Namespace = "namespace",
    }
}
