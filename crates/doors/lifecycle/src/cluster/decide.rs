//! Decides about a cluster: one phase after another, until one has to wait.

use capstan_controller::{Decision, Effect, Look, Note, ObjectRef, Wait};

use super::phases::{self, Flow, Round};
use super::{Clusters, Settings, cni, status};
use crate::names::CLUSTER_FINALIZER;

/// A phase: what is done, and whether the next one follows.
type Phase = fn(&mut Round<'_>) -> Flow;

/// In EKS Anywhere's order.
const PHASES: [Phase; 8] = [
    phases::validate_control_plane_ip,
    phases::validate_datacenter,
    phases::validate_machine_configs,
    phases::clean_up_status,
    phases::control_plane,
    phases::check_control_plane_ready,
    cni::cni,
    phases::workers,
];

pub(super) fn decide(settings: &Settings, look: &Look<Clusters>) -> Decision<Clusters> {
    let mut decision = Decision::rest(look);
    if let Some(why) = &look.paused {
        if look.object.metadata.is_deleting() {
            decision.wait(Wait::on("Paused", format!("the cluster to be resumed: {why}")));
        }
        return decision;
    }
    if look.object.metadata.is_deleting() {
        delete(look, &mut decision);
        return decision;
    }
    decision.add_finalizer(CLUSTER_FINALIZER);
    let mut round = Round { settings, look, decision, generated: None, cni: None };
    let finished = phases::dependencies(&mut round) == Flow::Next
        && PHASES.iter().all(|phase| phase(&mut round) == Flow::Next);
    let Round { mut decision, cni, .. } = round;
    let cni = cni::configured(look, cni);
    status::report(look, &mut decision, finished, cni);
    decision
}

/// Deletes the Cluster of Cluster API and waits for it: what belongs to it goes with it. Only its labels say whose it is,
/// as in every phase: its namespace is the operators', while users may write everything of their own cluster, status included.
fn delete(look: &Look<Clusters>, decision: &mut Decision<Clusters>) {
    let own = look.object.metadata.key();
    let cluster =
        look.seen.current.cluster.as_ref().filter(|it| super::owner_of(&***it).as_ref() == Some(&own));
    let Some(cluster) = cluster else {
        decision.remove_finalizer(CLUSTER_FINALIZER);
        return;
    };
    if !cluster.metadata.is_deleting() {
        let note = Note::normal("Deleting", "Delete", format!("Deleted Cluster {:?}", cluster.metadata.name));
        decision.then_noting(Effect::delete(&**cluster), note);
    }
    decision.wait(
        Wait::on("WaitingForDeletion", "the Cluster of Cluster API and its machines to be deleted")
            .object(ObjectRef::to(&**cluster)),
    );
}
