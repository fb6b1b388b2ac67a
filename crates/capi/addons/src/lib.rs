//! Cluster API's add-ons: resources that are applied to all matching clusters.
//!
//! ```text
//! ClusterResourceSet ── selects ──▶ Cluster          resources: ConfigMaps and Secrets with manifests
//!        │                            │
//!        └── applies to the workload cluster, and records in ──▶ ClusterResourceSetBinding (one per cluster)
//! ```

pub mod cluster_resource_set;
pub mod cluster_resource_set_binding;
