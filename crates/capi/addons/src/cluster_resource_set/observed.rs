//! What a decision about a ClusterResourceSet is based on.

use std::sync::Arc;

use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetStrategy as Strategy, ResourceRef,
    ResourceSetBinding,
};
use capstan_capi_types::core::Cluster;
use capstan_object::ObjectMeta;

/// Observed state besides the ClusterResourceSet.
#[derive(Debug, Default)]
pub struct Observed {
    /// Why the cluster selector is invalid.
    pub bad_selector: Option<String>,
    /// Matching clusters.
    pub targets: Vec<Target>,
    /// In the order of `spec.resources`.
    pub resources: Vec<Resource>,
}

/// A matching cluster.
#[derive(Debug)]
pub struct Target {
    pub cluster: String,
    pub binding: Option<Arc<ClusterResourceSetBinding>>,
    /// Why it cannot be reached.
    pub unreachable: Option<String>,
}

/// A ConfigMap or Secret of the set.
#[derive(Debug)]
pub enum Resource {
    Missing,
    /// A Secret of another type.
    WrongType,
    Found {
        meta: Box<ObjectMeta>,
        /// The hash of the content, or why it is invalid.
        hash: Result<String, String>,
    },
}

/// Whether the set selects the cluster. An empty selector selects nothing.
pub(super) fn selects(set: &ClusterResourceSet, cluster: &Cluster) -> Result<bool, String> {
    let selector = &set.spec.cluster_selector;
    if selector.is_empty() {
        return Ok(false);
    }
    selector.matches(&cluster.metadata.labels).map_err(|error| error.to_string())
}

/// Whether a resource was applied; with Reconcile, with this hash.
pub(super) fn is_applied(
    entry: &ResourceSetBinding,
    reference: &ResourceRef,
    strategy: Strategy,
    hash: &str,
) -> bool {
    let known =
        entry.resources.iter().find(|known| known.kind == reference.kind && known.name == reference.name);
    known.is_some_and(|known| {
        known.applied == Some(true) && (strategy == Strategy::ApplyOnce || known.hash == hash)
    })
}

/// Whether every applicable resource was applied to a cluster.
pub(super) fn is_complete(set: &ClusterResourceSet, resources: &[Resource], target: &Target) -> bool {
    let strategy = set.spec.strategy.unwrap_or(Strategy::ApplyOnce);
    let bindings = target.binding.iter().flat_map(|binding| &binding.spec.bindings);
    let entry = bindings.into_iter().find(|entry| entry.cluster_resource_set_name == set.metadata.name);
    set.spec.resources.iter().zip(resources).all(|(reference, resource)| match resource {
        Resource::Found { hash: Ok(hash), .. } => {
            entry.is_some_and(|entry| is_applied(entry, reference, strategy, hash))
        }
        _ => true,
    })
}
