//! `SimCluster`: where the API of a simulated cluster is reached, and what it is made from.

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
    /// The infrastructure of a simulated cluster: a load balancer before its API servers.
    pub struct SimCluster {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: SimClusterSpec,
        /// What was observed.
        pub status: SimClusterStatus,
    }

    /// What is wanted of the infrastructure of a cluster.
    pub struct SimClusterSpec {
        /// Where the API server is reached; filled in by the provider.
        pub control_plane_endpoint: APIEndpoint,
        /// Failure domains that the site shall have.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub failure_domains: Vec<FailureDomain>,
    }

    /// What was observed of the infrastructure of a cluster.
    #[schemars(extend("minProperties" = 1))]
    pub struct SimClusterStatus {
        /// Observed aspects of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Milestones on the way to being usable; contract with the core.
        pub initialization: InitializationStatus,
        /// Failure domains that machines can be placed in.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
        )]
        pub failure_domains: Vec<FailureDomain>,
    }

    /// What SimClusters are made from.
    pub struct SimClusterTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: SimClusterTemplateSpec,
    }

    /// What SimClusters are made from.
    pub struct SimClusterTemplateSpec {
        /// What to make objects from.
        #[schemars(extend("x-required" = true))]
        pub template: SimClusterTemplateResource,
    }

    /// A SimCluster to be.
    pub struct SimClusterTemplateResource {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: SimClusterSpec,
    }
}
