//! `CloudStackFailureDomain`: a zone and a network in it, as somebody's account sees them.
//!
//! Owns: CloudStackFailureDomains, their finalizer, status, and the ids in their specification; the
//! CloudStackIsolatedNetwork of a network that is isolated or has to be made. Deletes the Machines in a failure domain that
//! the cluster names no longer, one at a time, unless its network has the endpoint of the cluster. Reads: the credentials' Secret, the
//! CloudStackCluster, machines and affinity groups placed there, the cloud until everything is found once.

mod decide;
mod endpoint;
mod evacuate;
mod observe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, MachineSet, condition, label};
use capstan_cloudstack_types::names::FAILURE_DOMAIN_LABEL;
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
    CloudStackMachine,
};
use capstan_controller::{Change, Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::{Key, Object};
use capstan_provider_kit::SecretOutline;

use crate::clouds::{Clouds, secret_of};

pub(crate) use endpoint::{has_endpoint, in_use};
pub(crate) use observe::zone;
pub use observe::{Seen, ZoneAndNetwork};

/// Failure domains by the Secret with their keys.
const BY_SECRET: &str = "secret";

/// The controller of CloudStackFailureDomains.
pub struct FailureDomains {
    clouds: Clouds,
}

impl FailureDomains {
    /// A controller of failure domains in these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds }
    }
}

impl Controller for FailureDomains {
    const NAME: &'static str = "cloudstackfailuredomain";
    type Kind = CloudStackFailureDomain;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackFailureDomain>) {
        watches.read::<CloudStackCluster>();
        watches.read::<MachineSet>();
        watches.index_label::<Machine>(label::CLUSTER_NAME);
        // Machines leave a failure domain that is being deleted one by one.
        watches.related::<Machine>(|change, caches| {
            let state = |machine: &Arc<Machine>| (machine.status.phase, machine.metadata.is_deleting());
            if change.old.as_ref().map(state) == change.new.as_ref().map(state) {
                return Vec::new();
            }
            let domains = change.latest().and_then(|machine| {
                let cluster = machine.metadata.labels.get(label::CLUSTER_NAME)?;
                let domains = caches.of::<CloudStackFailureDomain>().ok()?;
                domains.labelled(&machine.metadata.namespace, label::CLUSTER_NAME, cluster).ok()
            });
            let domains = domains.unwrap_or_default();
            domains.iter().filter(|domain| domain.metadata.is_deleting()).map(|domain| domain.key()).collect()
        });
        watches.owned::<CloudStackIsolatedNetwork>();
        watches.owned::<CloudStackAffinityGroup>();
        // A failure domain may wait for the network of another.
        watches.related::<CloudStackIsolatedNetwork>(|change, caches| {
            let relevant = |network: &Arc<CloudStackIsolatedNetwork>| network.status.ready;
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            let domains = change.latest().and_then(|network| {
                let cluster = network.metadata.labels.get(label::CLUSTER_NAME)?;
                let domains = caches.of::<CloudStackFailureDomain>().ok()?;
                domains.labelled(&network.metadata.namespace, label::CLUSTER_NAME, cluster).ok()
            });
            domains.unwrap_or_default().iter().map(|domain| domain.key()).collect()
        });
        watches.index_label::<CloudStackFailureDomain>(label::CLUSTER_NAME);
        watches.index_label::<CloudStackMachine>(FAILURE_DOMAIN_LABEL);
        watches.index::<CloudStackFailureDomain>(BY_SECRET, |domain| {
            vec![secret_of(&domain.spec.acs_endpoint).to_string()]
        });
        watches.related::<SecretOutline>(|change, caches| {
            let domains = caches
                .of::<CloudStackFailureDomain>()
                .and_then(|domains| domains.indexed(BY_SECRET, &change.key.to_string()));
            domains.unwrap_or_default().iter().map(|domain| domain.key()).collect()
        });
        watches.related::<Cluster>(|change, caches| {
            let Some(cluster) = change.latest().filter(|_| paused::concerns_members(change)) else {
                return Vec::new();
            };
            let meta = &cluster.metadata;
            let domains = caches
                .of::<CloudStackFailureDomain>()
                .and_then(|domains| domains.labelled(&meta.namespace, label::CLUSTER_NAME, &meta.name));
            domains.unwrap_or_default().iter().map(|domain| domain.key()).collect()
        });
        // The last machine that goes lets the failure domain go.
        watches.related::<CloudStackMachine>(|change: &Change<CloudStackMachine>, _| {
            let gone = change.old.as_ref().filter(|_| change.new.is_none());
            let domain = gone.and_then(|machine| {
                let name = machine.metadata.labels.get(FAILURE_DOMAIN_LABEL)?;
                Some(Key::new(machine.metadata.namespace.as_str(), name.as_str()))
            });
            domain.into_iter().collect()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED]
    }

    fn paused(&self, object: &CloudStackFailureDomain, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = observe::cluster_of(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackFailureDomain::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackFailureDomain>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.clouds).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}

pub(crate) use observe::cluster_of;
