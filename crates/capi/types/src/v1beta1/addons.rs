//! Resources that are applied to clusters.

use capstan_object::{LabelSelector, ObjectMeta, object};

use super::core::V1Beta2Conditions;
use crate::addons::{ClusterResourceSetStrategy, ResourceBinding, ResourceRef};
use crate::core::V1Beta1Condition;
use crate::wire::wire;

object!(
    ClusterResourceSet,
    "addons.cluster.x-k8s.io" / "v1beta1",
    "ClusterResourceSet",
    "clusterresourcesets",
    Namespaced
);
object!(
    ClusterResourceSetBinding,
    "addons.cluster.x-k8s.io" / "v1beta1",
    "ClusterResourceSetBinding",
    "clusterresourcesetbindings",
    Namespaced
);

wire! {
    /// Applies resources to all matching clusters.
    pub struct ClusterResourceSet {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        #[schemars(length(max = 100))]
        pub resources: Vec<ResourceRef>,
        /// Strategy of applying resources: once, or again when they change.
        pub strategy: Option<ClusterResourceSetStrategy>,
    }

    /// Observed state of a ClusterResourceSet.
    pub struct ClusterResourceSetStatus {
        /// Generation of the object that this status describes.
        pub observed_generation: Option<i64>,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }

    /// Records which resources were applied to a cluster.
    pub struct ClusterResourceSetBinding {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: ClusterResourceSetBindingSpec,
    }

    /// Resources applied to a cluster.
    pub struct ClusterResourceSetBindingSpec {
        /// Applied resources, one entry per ClusterResourceSet.
        #[schemars(length(max = 100))]
        pub bindings: Vec<ResourceSetBinding>,
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63))]
        pub cluster_name: String,
    }

    /// Applied resources of one ClusterResourceSet.
    pub struct ResourceSetBinding {
        /// Name of the ClusterResourceSet.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub cluster_resource_set_name: String,
        /// Resources, in order.
        #[schemars(length(max = 100))]
        pub resources: Vec<ResourceBinding>,
    }
}
