//! `SimCluster` and its template.

use capstan_capi_types::core::{APIEndpoint, FailureDomain, TemplateMeta};
use capstan_capi_types::wire::wire;
use capstan_object::{Condition, ObjectMeta, object};
use capstan_provider_kit::InitializationStatus;

object!(SimCluster, "infrastructure.cluster.x-k8s.io" / "v1beta1", "SimCluster", "simclusters", Namespaced);
object!(
    SimClusterTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "SimClusterTemplate",
    "simclustertemplates",
    Namespaced
);

wire! {
    /// The infrastructure of a simulated cluster: a load balancer for its API servers.
    pub struct SimCluster {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimClusterSpec,
        /// Observed state.
        pub status: SimClusterStatus,
    }

    /// Desired state of the infrastructure of a cluster.
    pub struct SimClusterSpec {
        /// Endpoint of the API server; set by the provider.
        pub control_plane_endpoint: APIEndpoint,
        /// Failure domains of the cluster.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub failure_domains: Vec<FailureDomain>,
    }

    /// Observed state of the infrastructure of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimClusterStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Initialization status; part of the provider contract.
        pub initialization: InitializationStatus,
        /// Failure domains for machines.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub failure_domains: Vec<FailureDomain>,
    }

    /// Template of SimClusters.
    pub struct SimClusterTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: SimClusterTemplateSpec,
    }

    /// Template of SimClusters.
    pub struct SimClusterTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: SimClusterTemplateResource,
    }

    /// The template of a SimCluster.
    pub struct SimClusterTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: SimClusterSpec,
    }
}
