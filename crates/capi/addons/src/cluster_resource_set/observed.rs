//! What a decision about a ClusterResourceSet depends on.

use std::sync::Arc;

use capstan_capi_types::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ClusterResourceSetStrategy as Strategy, ResourceRef,
    ResourceSetBinding,
};
use capstan_capi_types::core::Cluster;
use capstan_object::ObjectMeta;

/// What was seen beside the set.
#[derive(Debug, Default)]
pub struct Seen {
    /// Why clusters cannot be chosen.
    pub bad_selector: Option<String>,
    /// The clusters it is for.
    pub targets: Vec<Target>,
    /// Its resources, in its order.
    pub resources: Vec<Resource>,
}

/// A cluster that resources go to.
#[derive(Debug)]
pub struct Target {
    /// Its name.
    pub cluster: String,
    /// What was applied to it.
    pub binding: Option<Arc<ClusterResourceSetBinding>>,
    /// Why it cannot be reached, if so.
    pub unreachable: Option<String>,
}

/// A ConfigMap or Secret of the set.
#[derive(Debug)]
pub enum Resource {
    /// There is none.
    Missing,
    /// A Secret of another type.
    WrongType,
    /// It is there.
    Found {
        /// Its metadata.
        meta: Box<ObjectMeta>,
        /// The hash of what is in it, or what is wrong with it.
        hash: Result<String, String>,
    },
}

/// The set is for the cluster. A selector without requirements selects nothing.
pub(super) fn selects(set: &ClusterResourceSet, cluster: &Cluster) -> Result<bool, String> {
    let selector = &set.spec.cluster_selector;
    if selector.is_empty() {
        return Ok(false);
    }
    selector.matches(&cluster.metadata.labels).map_err(|error| error.to_string())
}

/// A resource was applied, in its present state if that matters.
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

/// Everything that can be applied to a cluster was.
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
