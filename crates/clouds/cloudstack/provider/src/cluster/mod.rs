//! `CloudStackCluster`: where a cluster's machines may live, and where its API is reached.
//!
//! Owns: CloudStackClusters, their finalizer, endpoint and status; one CloudStackFailureDomain per entry of theirs.
//! Reads: the Cluster that owns it, the cluster's networks and machines. Asks the cloud only with `syncWithACS`: for the
//! entry in its list of clusters.

mod decide;
mod mirror;
mod observe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, condition, label};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{
    Caches, Change, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object, ObjectMeta};
use capstan_provider_kit::resolution;

use crate::clouds::{Access, Clouds};
use crate::error::CloudError;

pub use mirror::MirrorCall;
pub use observe::Seen;

/// The controller of CloudStackClusters.
pub struct CloudStackClusters {
    clouds: Clouds,
}

impl CloudStackClusters {
    /// A controller of clusters in these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }

    /// The way to the cloud of the first failure domain.
    async fn access(&self, object: &CloudStackCluster, view: &View) -> Result<Access, CloudError> {
        let domains = view.owned_by::<CloudStackFailureDomain>(&object.metadata.uid)?;
        let lost = || CloudError::new(crate::code::FAILED, "NoFailureDomain", "it has no failure domain");
        self.clouds.access(&domains.first().ok_or_else(lost)?.spec, view).await
    }
}

impl Controller for CloudStackClusters {
    const NAME: &'static str = "cloudstackcluster";
    type Kind = CloudStackCluster;
    type Seen = Seen;
    type Call = MirrorCall;

    fn watches(&self, watches: &mut Watches<CloudStackCluster>) {
        watches.owned::<CloudStackFailureDomain>();
        watches.read::<capstan_provider_kit::SecretOutline>();
        watches.index_label::<CloudStackMachine>(label::CLUSTER_NAME);
        watches.index_label::<CloudStackIsolatedNetwork>(label::CLUSTER_NAME);
        watches.related::<Cluster>(|change, _| {
            if !paused::concerns_members(change) {
                return Vec::new();
            }
            change.latest().and_then(|cluster| infrastructure_of(cluster)).into_iter().collect()
        });
        watches.related::<CloudStackIsolatedNetwork>(|change, caches| {
            let relevant = |network: &Arc<CloudStackIsolatedNetwork>| {
                (network.spec.control_plane_endpoint.clone(), network.status.ready)
            };
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            change.latest().and_then(|network| of_member(&network.metadata, caches)).into_iter().collect()
        });
        // The last machine that goes lets the cluster go.
        watches.related::<CloudStackMachine>(|change: &Change<CloudStackMachine>, caches| {
            let id = |machine: &Arc<CloudStackMachine>| {
                (machine.spec.instance_id.clone(), machine.metadata.is_deleting())
            };
            let same = change.old.as_ref().map(id) == change.new.as_ref().map(id);
            let changed = change.latest().filter(|_| !same || change.new.is_none());
            changed.and_then(|machine| of_member(&machine.metadata, caches)).into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, mirror::MIRRORED]
    }

    fn paused(&self, object: &CloudStackCluster, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = owners::of::<Cluster>(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackCluster::KIND.kind))
    }

    async fn observe(&self, object: &Arc<CloudStackCluster>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.clouds).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &MirrorCall, object: &Arc<CloudStackCluster>, view: &View) -> Outcome {
        match self.access(object, view).await {
            Ok(access) => mirror::make(call, &access).await,
            Err(cause) => cause.outcome(),
        }
    }

    async fn resolve(
        &self,
        intent: &Intent<MirrorCall>,
        object: &Arc<CloudStackCluster>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        let outside = |cause: CloudError| ObserveError::outside(cause.code, cause.message);
        let label = object.metadata.labels.get(label::CLUSTER_NAME).cloned();
        let cluster = owners::of::<Cluster>(&object.metadata, view)?.map(|it| it.metadata.name.clone());
        let Some(cluster) = cluster.or(label) else { return Ok(Resolution::DidNotHappen) };
        let access = self.access(object, view).await.map_err(outside)?;
        let there = mirror::find(object, &cluster, &access).await.map_err(outside)?.is_some();
        let creates = matches!(intent.call, MirrorCall::Create { .. });
        Ok(resolution(there == creates, creates, (intent.at.timestamp(), view.now()), "CloudStack"))
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
