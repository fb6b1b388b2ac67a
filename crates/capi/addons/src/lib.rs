//! Cluster API's add-ons: resources that every cluster of a kind gets.
//!
//! ```text
//! ClusterResourceSet ── selects ──▶ Cluster          resources: ConfigMaps and Secrets with manifests
//!        │                            │
//!        └── applies to the workload cluster, and writes down in ──▶ ClusterResourceSetBinding (one per cluster)
//! ```

pub mod cluster_resource_set;
pub mod cluster_resource_set_binding;
