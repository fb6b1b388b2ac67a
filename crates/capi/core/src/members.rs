//! Objects of a cluster, by `spec.clusterName`.

use capstan_controller::Caches;
use capstan_object::{Key, Object};

/// Name of the index by `spec.clusterName`, independent of labels.
pub const CLUSTER: &str = "spec.clusterName";

/// The objects with a `spec.clusterName`; they must be indexed by [`CLUSTER`].
pub fn of_cluster<T: Object>(caches: &Caches, cluster: &Key) -> Vec<Key> {
    let members = caches.of::<T>().and_then(|cache| cache.indexed(CLUSTER, &cluster.name));
    let keys = members.unwrap_or_default().into_iter().map(|object| object.metadata().key());
    keys.filter(|key| key.namespace == cluster.namespace).collect()
}
