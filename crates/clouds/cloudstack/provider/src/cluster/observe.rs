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
    /// Networks of its own that are ready: name of the object, host of the API there.
    pub networks: Vec<(String, String)>,
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
    for network in networks.iter().filter(|network| network.status.ready) {
        let endpoint = &network.spec.control_plane_endpoint;
        if !endpoint.host.is_empty() {
            seen.networks.push((network.metadata.name.clone(), endpoint.host.clone()));
            seen.endpoint.get_or_insert_with(|| endpoint.clone());
        }
    }
    let machines = view.labelled::<CloudStackMachine>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
    seen.machines = machines.iter().map(|machine| machine.metadata.name.clone()).collect();
    Ok(seen)
}
