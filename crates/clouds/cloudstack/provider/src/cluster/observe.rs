//! What a decision about a CloudStackCluster depends on.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, label};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine, Endpoint,
};
use capstan_controller::{ObserveError, View};

/// What was seen beside the CloudStackCluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Cluster that owns it.
    pub cluster: Option<Arc<Cluster>>,
    /// Its failure domains.
    pub domains: Vec<Arc<CloudStackFailureDomain>>,
    /// Where a network of its own lets the API be reached.
    pub endpoint: Option<Endpoint>,
    /// Names of the cluster's machines.
    pub machines: Vec<String>,
}

pub(super) fn observe(object: &CloudStackCluster, view: &View) -> Result<Seen, ObserveError> {
    let meta = &object.metadata;
    let mut seen = Seen {
        cluster: owners::of::<Cluster>(meta, view)?,
        domains: view.owned_by::<CloudStackFailureDomain>(&meta.uid)?,
        ..Seen::default()
    };
    // The label outlives the owner: who is deleted without its Cluster still waits for its machines.
    let label = meta.labels.get(label::CLUSTER_NAME);
    let Some(cluster) = seen.cluster.as_ref().map(|cluster| &cluster.metadata.name).or(label) else {
        return Ok(seen);
    };
    let networks =
        view.labelled::<CloudStackIsolatedNetwork>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
    let endpoints = networks.iter().filter(|network| network.status.ready);
    let mut endpoints = endpoints.map(|network| network.spec.control_plane_endpoint.clone());
    seen.endpoint = endpoints.find(|endpoint| !endpoint.host.is_empty());
    let machines = view.labelled::<CloudStackMachine>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
    seen.machines = machines.iter().map(|machine| machine.metadata.name.clone()).collect();
    Ok(seen)
}
