//! `CloudStackMachine`: a virtual machine.
//!
//! Owns: CloudStackMachines, their finalizer, ids and status; the virtual machine of a name that they gave, its membership in the
//! load balancer, the port that is forwarded to it, the data disk it was ordered with; the CloudStackAffinityGroup it asks for. Reads: the Machine that
//! owns it, its Cluster, failure domain and network, the Secret with its boot data, the cloud.
//!
//! ```text
//! placed ─▶ order decided ─▶ intent with the order, deployVirtualMachine ─▶ {id, job} on the object ─▶ job ends ─▶ runs ─▶ looked at each minute
//!              │ nobody heard: looked up by name and boot data              └─ failed: removed, ordered again later by another name
//! ```
//!
//! A machine that ran once and is gone is reported as failed and never created again: the owner of the Machine replaces it.

mod balancer_rule;
mod call;
mod catalog;
mod decide;
mod delete;
mod failures;
mod forwarding;
mod namesake;
pub(crate) mod naming;
mod observe;
mod order;
#[cfg(test)]
mod order_tests;
mod placement;
mod preflight;
mod prerequisites;
mod reason;
mod recent;
mod refused;
mod resolve;
mod ssh;
mod ssh_record;
#[cfg(test)]
mod ssh_tests;
mod teardown;
#[cfg(test)]
mod tests;
mod user_data;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_cloudstack_client::VolumeId;
use capstan_cloudstack_types::names::FAILURE_DOMAIN_LABEL;
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
    CloudStackMachine,
};
use capstan_controller::{
    Caches, Change, Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object, ObjectMeta};
use capstan_provider_kit::{SecretOutline, decisions};

use crate::clouds::Clouds;
use forwarding::AddressRules;
use placement::Placements;
use recent::Recent;

pub use call::MachineCall;
pub(crate) use catalog::{fits, service_offering, service_offerings};
pub use namesake::Namesake;
pub use observe::{Instance, Seen};
pub use order::Order;
pub use ssh::FORWARDED;
pub(crate) use ssh::SSH;
pub(crate) use teardown::{comes_along, recorded as recorded_disks};

/// The machine is a member of the load balancer of its cluster.
pub const ATTACHED: &str = "LoadBalancerAttached";

/// CloudStack answers questions about the machine. Absent while it does; False with the error while it does not, and then
/// the other conditions are as they were last seen.
pub const CLOUD_REACHABLE: &str = decisions::CLOUD_REACHABLE;

/// The controller of CloudStackMachines.
pub struct CloudStackMachines {
    clouds: Clouds,
    answers: Answers,
}

/// What several looks share: answers of the cloud, and choices.
#[derive(Default)]
struct Answers {
    /// Rules by the id of their address.
    rules: Recent<AddressRules>,
    /// Disks by the id of their machine.
    disks: Recent<Vec<VolumeId>>,
    /// Where machines go that are being placed.
    placements: Placements,
}

impl CloudStackMachines {
    /// A controller of machines in these clouds.
    pub fn new(clouds: Clouds) -> Self {
        Self { clouds, answers: Answers::default() }
    }
}

impl Controller for CloudStackMachines {
    const NAME: &'static str = "cloudstackmachine";
    type Kind = CloudStackMachine;
    type Seen = Seen;
    type Call = MachineCall;

    fn watches(&self, watches: &mut Watches<CloudStackMachine>) {
        watches.read::<SecretOutline>();
        watches.read::<CloudStackCluster>();
        // A rule that had to be made again has no members yet.
        watches.related::<CloudStackIsolatedNetwork>(|change: &Change<CloudStackIsolatedNetwork>, caches| {
            let rule =
                |network: &Arc<CloudStackIsolatedNetwork>| network.status.load_balancer_rule_id.clone();
            if change.old.as_ref().map(rule) == change.new.as_ref().map(rule) {
                return Vec::new();
            }
            change.latest().map(|network| members(&network.metadata, caches)).unwrap_or_default()
        });
        watches.index_label::<CloudStackMachine>(label::CLUSTER_NAME);
        watches.index_label::<CloudStackMachine>(FAILURE_DOMAIN_LABEL);
        watches.related::<Machine>(|change, _| {
            change.latest().and_then(infrastructure_of).into_iter().collect()
        });
        watches.related::<Cluster>(|change, caches| {
            let concerned = change.latest().filter(|_| paused::concerns_members(change));
            concerned.map(|cluster| named(&cluster.metadata, caches)).unwrap_or_default()
        });
        watches.related::<CloudStackFailureDomain>(|change: &Change<CloudStackFailureDomain>, caches| {
            let relevant = |domain: &Arc<CloudStackFailureDomain>| domain.status.ready;
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            let machines = change.latest().and_then(|domain| {
                let meta = &domain.metadata;
                let machines = caches.of::<CloudStackMachine>().ok()?;
                machines.labelled(&meta.namespace, FAILURE_DOMAIN_LABEL, &meta.name).ok()
            });
            machines.unwrap_or_default().iter().map(|machine| machine.key()).collect()
        });
        watches.related::<CloudStackAffinityGroup>(|change: &Change<CloudStackAffinityGroup>, caches| {
            let relevant = |group: &Arc<CloudStackAffinityGroup>| (group.status.ready, group.spec.id.clone());
            if change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant) {
                return Vec::new();
            }
            change.latest().map(|group| members(&group.metadata, caches)).unwrap_or_default()
        });
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, ATTACHED, CLOUD_REACHABLE, FORWARDED]
    }

    fn paused(&self, object: &CloudStackMachine, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = observe::cluster_of(object, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackMachine::KIND.kind))
    }

    async fn observe(&self, object: &Arc<CloudStackMachine>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(object, view, &self.clouds, &self.answers).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &MachineCall, object: &Arc<CloudStackMachine>, view: &View) -> Outcome {
        call::make(call, object, view, &self.clouds, &self.answers).await
    }

    async fn resolve(
        &self,
        intent: &Intent<MachineCall>,
        object: &Arc<CloudStackMachine>,
        view: &View,
    ) -> Result<Resolution, ObserveError> {
        resolve::resolve(intent, object, view, &self.clouds, &self.answers).await
    }

    fn gone(&self, key: &Key) {
        self.answers.placements.forget(key);
    }
}

/// The CloudStackMachine of a Machine.
fn infrastructure_of(machine: &Arc<Machine>) -> Option<Key> {
    let reference = &machine.spec.infrastructure_ref;
    let kind = CloudStackMachine::KIND;
    let ours = reference.kind == kind.kind && reference.api_group == kind.group;
    ours.then(|| Key::new(machine.metadata.namespace.as_str(), reference.name.as_str()))
}

/// The machines of a cluster, by the cluster's name.
fn named(cluster: &ObjectMeta, caches: &Caches) -> Vec<Key> {
    let machines = caches
        .of::<CloudStackMachine>()
        .and_then(|machines| machines.labelled(&cluster.namespace, label::CLUSTER_NAME, &cluster.name));
    machines.unwrap_or_default().iter().map(|machine| machine.key()).collect()
}

/// The machines of the cluster whose label something carries.
fn members(meta: &ObjectMeta, caches: &Caches) -> Vec<Key> {
    let Some(cluster) = meta.labels.get(label::CLUSTER_NAME) else { return Vec::new() };
    named(&ObjectMeta::named(meta.namespace.as_str(), cluster.as_str()), caches)
}
