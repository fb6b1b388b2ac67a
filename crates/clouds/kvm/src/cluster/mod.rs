//! `KVMCluster`: a network on this host, and a load balancer for the API servers of a cluster.
//!
//! Owns: KVMClusters, their finalizer, endpoint and status; the network of the same id. Reads: the Cluster that owns
//! it, the cluster's KVMMachines, the host. On deletion: the network is removed after the machines.

mod decide;
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
use capstan_object::Object;
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::{ClusterMembers, mark, watch_cluster};
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Id, Network, Subnet};
use crate::code;
use crate::types::{KVMCluster, KVMMachine};

/// What a decision about a KVMCluster is based on.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its Cluster and its machines.
    pub members: ClusterMembers,
    pub network: Option<Network>,
    /// The host does not answer: whether there is a network is not known.
    pub silence: Option<Silence>,
}

/// Keeps a KVMCluster until its network is removed.
pub const FINALIZER: &str = "kvmcluster.infrastructure.cluster.x-k8s.io";

/// The id of the network of a cluster. An annotation, since `clusterctl move` changes uids and drops status.
pub const NETWORK: &str = "kvm.infrastructure.cluster.x-k8s.io/network";

pub struct KVMClusters {
    backend: Arc<dyn Backend>,
}

impl KVMClusters {
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    async fn look_up(&self, id: Id) -> Result<Option<Network>, Silence> {
        let found = self.blocking(move |backend| backend.network(&id)).await;
        let unread = |why: String| Silence { code: code::HOST, why };
        found.map_err(unread)?.map_err(|error| unread(error.to_string()))
    }

    /// Runs a blocking backend call.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Backend) -> T + Send + 'static,
    ) -> Result<T, String> {
        let backend = self.backend.clone();
        tokio::task::spawn_blocking(move || work(&*backend)).await.map_err(|error| error.to_string())
    }
}

/// A call to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase")]
pub enum NetworkCall {
    /// Creates a network with its load balancer, or the missing parts.
    Ensure {
        network: Id,
        /// The subnet. With `None` the host allocates a free one, as a cloud allocates an address: the choice is its own,
        /// atomic with the creation, and the network that is observed later says which it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subnet: Option<Subnet>,
    },
    /// Sets the members of the load balancer.
    Balance {
        network: Id,
        members: BTreeSet<Ipv4Addr>,
    },
    Remove {
        network: Id,
    },
}

impl NetworkCall {
    fn network(&self) -> &Id {
        match self {
            Self::Ensure { network, .. } | Self::Balance { network, .. } | Self::Remove { network } => {
                network
            }
        }
    }
}

impl Call for NetworkCall {
    fn idempotency_key(&self) -> String {
        self.network().to_string()
    }

    fn journalled(&self) -> bool {
        !matches!(self, Self::Balance { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::Ensure { network, .. } => format!("ensure-network {network}"),
            Self::Balance { network, members } => {
                let members: Vec<String> = members.iter().map(Ipv4Addr::to_string).collect();
                format!("set-members {network} [{}]", members.join(" "))
            }
            Self::Remove { network } => format!("remove-network {network}"),
        }
    }
}

/// The id of the network that a cluster has or will get.
pub(crate) fn network_of(object: &KVMCluster) -> String {
    mark::of(&object.metadata, NETWORK)
}

impl Controller for KVMClusters {
    const NAME: &'static str = "kvmcluster";
    type Kind = KVMCluster;
    type Seen = Seen;
    type Call = NetworkCall;

    fn watches(&self, watches: &mut Watches<KVMCluster>) {
        watch_cluster::<KVMCluster, KVMMachine>(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, CLOUD_REACHABLE]
    }

    fn paused(&self, object: &KVMCluster, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, KVMCluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<KVMCluster>, view: &View) -> Result<Seen, ObserveError> {
        let members = ClusterMembers::observe::<KVMMachine>(&object.metadata, view)?;
        let mut seen = Seen { members, ..Seen::default() };
        if let Ok(id) = Id::try_from(network_of(object)) {
            match self.look_up(id).await {
                Ok(network) => seen.network = network,
                Err(silence) => seen.silence = Some(silence.observed(&object.metadata)?),
            }
        }
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &NetworkCall, _: &Arc<KVMCluster>, _: &View) -> Outcome {
        let call = call.clone();
        let done = self.blocking(move |backend| match &call {
            NetworkCall::Ensure { network, subnet } => backend.ensure_network(network, *subnet).map(|_| ()),
            NetworkCall::Balance { network, members } => backend.balance(network, members),
            NetworkCall::Remove { network } => backend.remove_network(network),
        });
        match done.await {
            Ok(Ok(())) => Outcome::done(),
            Ok(Err(error)) => Outcome::failed(code::HOST, error.to_string()),
            Err(why) => Outcome::unknown(why),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<NetworkCall>,
        _: &Arc<KVMCluster>,
        _: &View,
    ) -> Result<Resolution, ObserveError> {
        let found = self.look_up(intent.call.network().clone()).await.map_err(Silence::error)?;
        let happened = match intent.call {
            NetworkCall::Remove { .. } => found.is_none(),
            _ => found.is_some_and(|network| network.complete),
        };
        Ok(if happened { Resolution::happened() } else { Resolution::DidNotHappen })
    }
}
