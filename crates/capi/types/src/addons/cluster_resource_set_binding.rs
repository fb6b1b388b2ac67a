//! `ClusterResourceSetBinding`: which resources a cluster got.

use capstan_object::{ObjectMeta, Time, object};

use super::cluster_resource_set::ClusterResourceSetResourceKind;
use crate::wire::wire;

object!(
    ClusterResourceSetBinding,
    "addons.cluster.x-k8s.io" / "v1beta2",
    "ClusterResourceSetBinding",
    "clusterresourcesetbindings",
    Namespaced
);

wire! {
    /// Records which resources were applied to a cluster.
    pub struct ClusterResourceSetBinding {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: ClusterResourceSetBindingSpec,
    }

    /// Resources applied to a cluster.
    pub struct ClusterResourceSetBindingSpec {
        /// Applied resources, one entry per ClusterResourceSet.
        #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub bindings: Vec<ResourceSetBinding>,
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63), extend("x-required" = true))]
        pub cluster_name: String,
    }

    /// Applied resources of one ClusterResourceSet.
    pub struct ResourceSetBinding {
        /// Name of the ClusterResourceSet.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub cluster_resource_set_name: String,
        /// Resources, in order.
        #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
        pub resources: Vec<ResourceBinding>,
    }

    /// Result of applying one resource to one cluster.
    pub struct ResourceBinding {
        /// Name of the object.
        #[schemars(length(min = 1, max = 253), extend("x-required" = true))]
        pub name: String,
        /// Kind of the object.
        #[schemars(extend("x-required" = true))]
        pub kind: Option<ClusterResourceSetResourceKind>,
        /// Hash of the applied resources.
        #[schemars(length(min = 1, max = 256))]
        pub hash: String,
        /// Time of the last application.
        pub last_applied_time: Option<Time>,
        /// Whether the resource was applied.
        #[schemars(extend("x-required" = true))]
        pub applied: Option<bool>,
    }
}
