//! `SimCluster`: a load balancer for the API servers of a cluster.
//!
//! Owns: SimClusters, their finalizer, endpoint and status; the load balancer of the same name. Reads: the Cluster
//! that owns it, the cluster's SimMachines, the site. On deletion: the load balancer is released after the machines.

mod decide;
mod observe;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_core::owners;
use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, condition};
use capstan_controller::{
    Call, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object};
use capstan_provider_kit::decisions::CLOUD_REACHABLE;
use capstan_provider_kit::watch_cluster;
use capstan_sim_site::SiteHandle;
use serde::{Deserialize, Serialize};

use crate::site;
use crate::types::{SimCluster, SimMachine};

pub use observe::Seen;

/// Keeps a SimCluster until its load balancer is released.
pub const FINALIZER: &str = "simcluster.infrastructure.cluster.x-k8s.io";

pub struct SimClusters {
    site: SiteHandle,
}

impl SimClusters {
    pub fn new(site: impl Into<SiteHandle>) -> Self {
        Self { site: site.into() }
    }
}

/// A call to the site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum BalancerCall {
    Allocate {
        balancer: String,
    },
    /// Sets the members.
    Balance {
        balancer: String,
        members: BTreeSet<Ipv4Addr>,
    },
    Release {
        balancer: String,
    },
}

impl Call for BalancerCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::Allocate { balancer } | Self::Balance { balancer, .. } | Self::Release { balancer } => {
                balancer.clone()
            }
        }
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::Balance { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Allocate { balancer } => format!("create-balancer {balancer}"),
            Self::Balance { balancer, members } => {
                let members: Vec<String> = members.iter().map(Ipv4Addr::to_string).collect();
                format!("set-members {balancer} [{}]", members.join(" "))
            }
            Self::Release { balancer } => format!("destroy-balancer {balancer}"),
        }
    }
}

/// The name of a cluster's load balancer. It is unique: a finalizer keeps the SimCluster until its load balancer is
/// released.
pub(crate) fn balancer_of(key: &Key) -> String {
    format!("{}/{}", key.namespace, key.name)
}

impl Controller for SimClusters {
    const NAME: &'static str = "simcluster";
    type Kind = SimCluster;
    type Seen = Seen;
    type Call = BalancerCall;

    fn watches(&self, watches: &mut Watches<SimCluster>) {
        watch_cluster::<SimCluster, SimMachine>(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, CLOUD_REACHABLE]
    }

    fn paused(&self, object: &SimCluster, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, SimCluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<SimCluster>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.site).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &BalancerCall, _: &Arc<SimCluster>, _: &View) -> Outcome {
        let done = match call {
            BalancerCall::Allocate { balancer } => self.site.allocate(balancer).await,
            // A missing one is allocated by the next reconcile, not here.
            BalancerCall::Balance { balancer, members } => self.site.balance(balancer, members).await,
            BalancerCall::Release { balancer } => self.site.release(balancer).await,
        };
        done.map_or_else(site::outcome, |()| Outcome::done())
    }

    async fn resolve(
        &self,
        intent: &Intent<BalancerCall>,
        _: &Arc<SimCluster>,
        _: &View,
    ) -> Result<Resolution, ObserveError> {
        let there = self.site.balancer(&intent.key).await.map_err(site::observe_error)?.is_some();
        let wanted = !matches!(intent.call, BalancerCall::Release { .. });
        Ok(if there == wanted { Resolution::happened() } else { Resolution::DidNotHappen })
    }
}
