//! `addons.cluster.x-k8s.io/v1beta2`: resources that are applied to clusters.

pub mod cluster_resource_set;
pub mod cluster_resource_set_binding;

pub use cluster_resource_set::{
    ClusterResourceSet, ClusterResourceSetResourceKind, ClusterResourceSetSpec, ClusterResourceSetStatus,
    ClusterResourceSetStrategy, ResourceRef,
};
pub use cluster_resource_set_binding::{
    ClusterResourceSetBinding, ClusterResourceSetBindingSpec, ResourceBinding, ResourceSetBinding,
};
