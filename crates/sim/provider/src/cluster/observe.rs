//! What a decision about a SimCluster is based on.

use capstan_controller::{ObserveError, View};
use capstan_guest::Balancer;
use capstan_object::Object;
use capstan_provider_kit::ClusterMembers;
use capstan_provider_kit::decisions::Silence;
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
    /// The site does not answer: whether there is a load balancer is not known.
    pub silence: Option<Silence>,
}

pub(super) async fn observe(
    object: &SimCluster,
    view: &View,
    site: &SiteHandle,
) -> Result<Seen, ObserveError> {
    let members = ClusterMembers::observe::<SimMachine>(&object.metadata, view)?;
    Ok(match site.balancer(&balancer_of(&object.key())).await {
        Ok(balancer) => Seen { members, balancer, silence: None },
        Err(error) => {
            let silence = Some(site::silence(&error).observed(&object.metadata)?);
            Seen { members, balancer: None, silence }
        }
    })
}
