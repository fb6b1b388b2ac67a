//! What a decision about a SimCluster depends on.

use capstan_controller::{ObserveError, View};
use capstan_guest::Balancer;
use capstan_object::Object;
use capstan_provider_kit::ClusterMembers;
use capstan_sim_site::Ground;

use super::balancer_of;
use crate::site;
use crate::types::{SimCluster, SimMachine};

/// What was seen beside the SimCluster.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its Cluster, and the machines of that.
    pub members: ClusterMembers,
    /// The load balancer.
    pub balancer: Option<Balancer>,
}

pub(super) async fn observe(object: &SimCluster, view: &View, ground: &Ground) -> Result<Seen, ObserveError> {
    Ok(Seen {
        balancer: ground.balancer(&balancer_of(&object.key())).await.map_err(site::unseen)?,
        members: ClusterMembers::observe::<SimMachine>(&object.metadata, view)?,
    })
}
