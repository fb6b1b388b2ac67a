//! What a decision about a CloudStackCluster depends on.

use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_types::core::{Cluster, label};
use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::model::KubernetesCluster;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine, Endpoint,
};
use capstan_controller::{ObserveError, View};

use super::mirror::{self, Member};
use crate::clouds::Clouds;
use crate::error::CloudError;
use crate::failure_domain::has_endpoint;

/// What was seen beside the CloudStackCluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// The Cluster that owns it.
    pub cluster: Option<Arc<Cluster>>,
    pub domains: Vec<Arc<CloudStackFailureDomain>>,
    /// Where a network of its own lets the API be reached.
    pub endpoint: Option<Endpoint>,
    /// Networks of its own that are ready: name of the object, host of the API there.
    pub networks: Vec<(String, String)>,
    /// Names of the objects of failure domains that own the networks with the endpoint.
    pub serving: Vec<String>,
    /// Names of the cluster's machines.
    pub machines: Vec<String>,
    /// Those that exist in CloudStack.
    pub members: Vec<Member>,
    /// The entry in CloudStack's list of clusters; `None` if it was not asked for.
    pub mirror: Option<Result<Option<KubernetesCluster>, CloudError>>,
    /// For whom things are made.
    pub owner: Owner,
}

pub(super) async fn observe(
    object: &CloudStackCluster,
    view: &View,
    clouds: &Clouds,
) -> Result<Seen, ObserveError> {
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
    let serving = networks.iter().filter(|network| has_endpoint(network, object));
    let owners = serving.filter_map(|network| network.metadata.controller().map(|owner| owner.name.clone()));
    seen.serving = owners.collect();
    for network in networks.iter().filter(|network| network.status.ready) {
        let endpoint = &network.spec.control_plane_endpoint;
        if !endpoint.host.is_empty() {
            seen.networks.push((network.metadata.name.clone(), endpoint.host.clone()));
            seen.endpoint.get_or_insert_with(|| endpoint.clone());
        }
    }
    let machines = view.labelled::<CloudStackMachine>(&meta.namespace, label::CLUSTER_NAME, cluster)?;
    seen.machines = machines.iter().map(|machine| machine.metadata.name.clone()).collect();
    let member = |machine: &Arc<CloudStackMachine>| {
        let id = machine
            .spec
            .instance_id
            .clone()
            .filter(|id| !id.is_empty() && !machine.metadata.is_deleting())?;
        Some(Member { id, control_plane: machine.metadata.labels.contains_key(label::CONTROL_PLANE) })
    };
    seen.members = machines.iter().filter_map(member).collect();
    seen.members.sort();
    if let Some(domain) = seen.domains.first().filter(|_| mirror::must_ask(object, &seen.members)) {
        seen.mirror = Some(match clouds.access(&domain.spec, view).await {
            Ok(access) => {
                seen.owner = access.owner.clone();
                mirror::find(object, cluster, &access).await
            }
            Err(cause) => Err(cause),
        });
    }
    Ok(seen)
}
