//! `ClusterResourceSet`: resources for every cluster that matches.

use capstan_object::{Condition, LabelSelector, ObjectMeta, object};

use crate::core::{Deprecated, V1Beta1Conditions};
use crate::wire::{choice, wire};

object!(
    ClusterResourceSet,
    "addons.cluster.x-k8s.io" / "v1beta2",
    "ClusterResourceSet",
    "clusterresourcesets",
    Namespaced
);

wire! {
    /// Applies resources to all matching clusters.
    pub struct ClusterResourceSet {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: ClusterResourceSetSpec,
        /// Observed state.
        pub status: ClusterResourceSetStatus,
    }

    /// Desired state of a ClusterResourceSet.
    pub struct ClusterResourceSetSpec {
        /// Label selector of the clusters; must not be empty.
        #[schemars(extend("x-required" = true))]
        pub cluster_selector: LabelSelector,
        /// Secrets and ConfigMaps with the resources.
        #[schemars(
            length(min = 1, max = 100),
            extend("x-required" = true, "x-kubernetes-list-type" = "atomic")
        )]
        pub resources: Vec<ResourceRef>,
        /// Strategy of applying resources: once, or again when they change.
        pub strategy: Option<ClusterResourceSetStrategy>,
    }

    /// Reference to a Secret or ConfigMap in the same namespace.
    pub struct ResourceRef {
        /// Name of the object.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub name: String,
        /// Kind of the object.
        #[schemars(extend("x-required" = true))]
        pub kind: Option<ClusterResourceSetResourceKind>,
    }

    /// Observed state of a ClusterResourceSet.
    #[schemars(extend("minProperties" = 1))]
    pub struct ClusterResourceSetStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// Generation of the object that this status describes.
        #[schemars(range(min = 1))]
        pub observed_generation: i64,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<V1Beta1Conditions>>,
    }
}

choice! {
    /// Strategy of applying resources.
    pub enum ClusterResourceSetStrategy {
        /// Resources are applied once to each cluster.
        ApplyOnce = "ApplyOnce",
        /// Resources are applied again whenever they change.
        Reconcile = "Reconcile",
    }
}

choice! {
    /// Kind of the object with the resources.
    pub enum ClusterResourceSetResourceKind {
        /// A Secret of type [`SECRET_TYPE`].
        Secret = "Secret",
        /// A ConfigMap.
        ConfigMap = "ConfigMap",
    }
}

/// Type a Secret must have to hold resources.
pub const SECRET_TYPE: &str = "addons.cluster.x-k8s.io/resource-set";

/// Keeps a ClusterResourceSet until it is removed from every binding.
pub const FINALIZER: &str = "addons.cluster.x-k8s.io";

/// Condition types of a ClusterResourceSet, beside the [shared ones](crate::core::condition).
pub mod condition {
    pub const RESOURCES_APPLIED: &str = "ResourcesApplied";
}

/// Reasons of a ClusterResourceSet's conditions, beside the [shared ones](crate::core::reason).
pub mod reason {
    pub const APPLIED: &str = "Applied";
    pub const NOT_APPLIED: &str = "NotApplied";
    pub const WRONG_SECRET_TYPE: &str = "WrongSecretType";
}
