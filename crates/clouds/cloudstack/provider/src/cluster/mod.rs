//! `CloudStackCluster`: where a cluster's machines may live, and where its API is reached.
//!
//! Owns: CloudStackClusters, their finalizer, endpoint and status; one CloudStackFailureDomain per entry of theirs.
//! Reads: the Cluster that owns it, the cluster's networks and machines. Asks nothing of the cloud itself.

mod decide;
mod observe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, condition, label};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{Caches, Change, Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object, ObjectMeta};

pub use observe::Seen;

/// The controller of CloudStackClusters.
pub struct CloudStackClusters;

impl Controller for CloudStackClusters {
    const NAME: &'static str = "cloudstackcluster";
    type Kind = CloudStackCluster;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackCluster>) {
        watches.owned::<CloudStackFailureDomain>();
        watches.index_label::<CloudStackMachine>(label::CLUSTER_NAME);
        watches.index_label::<CloudStackIsolatedNetwork>(label::CLUSTER_NAME);
        watches.related::<Cluster>(|change, _| {
            if !paused::concerns_members(change) {
                return Vec::new();
            }
            change.latest().and_then(|cluster| infrastructure_of(cluster)).into_iter().collect()
        });
        watches.related::<CloudStackIsolatedNetwork>(|change, caches| {
            let told = |network: &Arc<CloudStackIsolatedNetwork>| {
                (network.spec.control_plane_endpoint.clone(), network.status.ready)
            };
            if change.old.as_ref().map(told) == change.new.as_ref().map(told) {
                return Vec::new();
            }
            change.latest().and_then(|network| of_member(&network.metadata, caches)).into_iter().collect()
        });
        // The last machine that goes lets the cluster go.
        watches.related::<CloudStackMachine>(|change: &Change<CloudStackMachine>, caches| {
            let gone = change.old.as_ref().filter(|_| change.new.is_none());
            gone.and_then(|machine| of_member(&machine.metadata, caches)).into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    fn paused(&self, object: &CloudStackCluster, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackCluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<CloudStackCluster>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}

/// The CloudStackCluster of a cluster.
pub(crate) fn infrastructure_of(cluster: &Cluster) -> Option<Key> {
    let reference = &cluster.spec.infrastructure_ref;
    let kind = CloudStackCluster::KIND;
    let ours = reference.kind == kind.kind && reference.api_group == kind.group;
    ours.then(|| Key::new(cluster.metadata.namespace.as_str(), reference.name.as_str()))
}

/// The CloudStackCluster of something that carries its cluster's label.
fn of_member(meta: &ObjectMeta, caches: &Caches) -> Option<Key> {
    let cluster = meta.labels.get(label::CLUSTER_NAME)?;
    let key = Key::new(meta.namespace.as_str(), cluster.as_str());
    infrastructure_of(&*caches.get::<Cluster>(&key).ok()??)
}
