//! The name of the Cluster, which everything in the cloud is named after.

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, label};
use capstan_controller::{ObserveError, View};
use capstan_object::ObjectMeta;
use capstan_openstack_types::v1beta2::OpenStackCluster;

/// The name of the Cluster: its owner's, or the label's.
pub(super) fn cluster_name(meta: &ObjectMeta, cluster: Option<&Cluster>) -> Option<String> {
    let owner = cluster.map(|cluster| cluster.metadata.name.clone());
    owner.or_else(|| meta.labels.get(label::CLUSTER_NAME).cloned())
}

/// The name of the Cluster of another OpenStackCluster.
pub(super) fn name_of_cluster(
    object: &OpenStackCluster,
    view: &View,
) -> Result<Option<String>, ObserveError> {
    let cluster = owners::of::<Cluster>(&object.metadata, view)?;
    Ok(cluster_name(&object.metadata, cluster.as_deref()))
}
