//! Decides about a Machine, phase by phase.

mod deletion;
mod node;
mod node_sync;
mod references;

pub use node_sync::SyncedKeys;
pub(crate) use node_sync::UNINITIALIZED;

use capstan_capi_types::core::machine::FINALIZER;
use capstan_capi_types::core::{Cluster, Machine, annotation, condition, label};
use capstan_controller::{Decision, Look, Wait};
use capstan_object::{Object, OwnerReference, Time};
use jiff::Timestamp;

use crate::machine::{MachineController, Settings, in_place, status};
use crate::{conditions, owners, paused};

pub(super) fn decide(look: &Look<MachineController>, settings: &Settings) -> Decision<MachineController> {
    let mut decision = Decision::rest(look);
    let machine = &look.object;
    let Some(cluster) = &look.seen.cluster else {
        let what = format!("Cluster {} to exist", machine.spec.cluster_name);
        decision.wait(Wait::on("ClusterDoesNotExist", what)).again_in(references::MISSING_AGAIN);
        return decision;
    };
    if !machine.metadata.is_deleting() {
        decision.add_finalizer(FINALIZER);
    }
    let state = paused::condition(look.paused.as_deref());
    conditions::set_state(look, &mut decision.object.status.conditions, condition::PAUSED, state, None);
    if look.paused.is_some() {
        return decision;
    }
    owner_and_label(&mut decision.object, cluster);
    for step in [references::bootstrap, references::infrastructure] {
        if let Err(why) = step(look, cluster, &mut decision) {
            references::unusable(&mut decision, why);
        }
    }
    node::find(look, &mut decision, &settings.synced);
    certificate_expiry(look, &mut decision);
    if !machine.metadata.is_deleting() {
        in_place::proceed(look, &mut decision);
    }
    let deletion = machine.metadata.is_deleting().then(|| deletion::next(look, &mut decision));
    status::report(look, cluster, &mut decision, deletion, settings.grace);
    decision
}

/// A machine without a controller is owned by its cluster.
fn owner_and_label(machine: &mut Machine, cluster: &Cluster) {
    machine.metadata.labels.insert(label::CLUSTER_NAME.to_owned(), machine.spec.cluster_name.clone());
    if stands_alone(machine) {
        owners::ensure(&mut machine.metadata.owner_references, OwnerReference::to(cluster));
    }
}

/// After a restore, owners find their machines by label: those are left to be adopted.
fn stands_alone(machine: &Machine) -> bool {
    let meta = &machine.metadata;
    let of_cluster =
        |owner: &OwnerReference| owner.kind == Cluster::KIND.kind && owner.group() == Cluster::KIND.group;
    meta.controller().is_none()
        && !meta.owner_references.iter().any(of_cluster)
        && ![label::SET_NAME, label::POOL_NAME, label::CONTROL_PLANE_NAME]
            .iter()
            .any(|name| meta.labels.contains_key(*name))
}

/// Certificate expiry of a control plane machine, from its annotation or its bootstrap config's.
fn certificate_expiry(look: &Look<MachineController>, decision: &mut Decision<MachineController>) {
    let machine = &look.object;
    if !machine.metadata.labels.contains_key(label::CONTROL_PLANE) {
        return;
    }
    let own = machine.metadata.annotations.get(annotation::CERTIFICATES_EXPIRY);
    let bootstrap = look.seen.bootstrap.object();
    let reported = own.or_else(|| bootstrap?.metadata.annotations.get(annotation::CERTIFICATES_EXPIRY));
    decision.object.status.certificates_expiry_date = match reported.map(|text| text.parse::<Timestamp>()) {
        None => None,
        Some(Ok(expiry)) => Some(Time::new(expiry)),
        Some(Err(error)) => {
            decision.wait(Wait::on("InvalidCertificatesExpiry", error.to_string()));
            machine.status.certificates_expiry_date
        }
    };
}
