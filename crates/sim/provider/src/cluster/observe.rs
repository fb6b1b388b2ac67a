//! What a decision about a SimCluster is based on.

use capstan_controller::{ObserveError, View};
use capstan_guest::Balancer;
use capstan_object::Object;
use capstan_provider_kit::ClusterMembers;
use capstan_sim_site::SiteHandle;

use super::balancer_of;
use crate::site;
use crate::types::{SimCluster, SimMachine};

/// Observed state besides the SimCluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its Cluster and its machines.
    pub members: ClusterMembers,
    pub balancer: Option<Balancer>,
}

pub(super) async fn observe(
    object: &SimCluster,
    view: &View,
    site: &SiteHandle,
) -> Result<Seen, ObserveError> {
    Ok(Seen {
        balancer: site.balancer(&balancer_of(&object.key())).await.map_err(site::observe_error)?,
        members: ClusterMembers::observe::<SimMachine>(&object.metadata, view)?,
    })
}
