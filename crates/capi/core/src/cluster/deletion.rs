//! Deletes a cluster: workers, control plane, infrastructure, then the finalizer.

use std::time::Duration;

use capstan_capi_types::core::cluster::{FINALIZER, reason as own};
use capstan_capi_types::core::reason;
use capstan_capi_types::runtime::pending::OK_TO_DELETE;
use capstan_controller::{Decision, Effect, Look, Note, Wait};
use capstan_object::{ConditionStatus, Object, OwnerReference};

use super::ClusterController;
use super::observed::is_owned;
use crate::conditions::{ConditionState, shortened};
use crate::contract::{External, Lookup};

/// Maximum number of descendants in a message.
const SHOWN: usize = 5;

/// Fallback requeue interval; deleted descendants trigger a reconcile themselves.
const AGAIN: Duration = Duration::from_secs(30);

/// Takes the next step of the deletion. Returns the `Deleting` condition.
pub(super) fn next(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
) -> ConditionState {
    let waiting = |reason: &str, message: String| ConditionState::new(ConditionStatus::True, reason, message);
    // Set by the controller of topologies once hooks let the deletion begin.
    let annotations = &look.object.metadata.annotations;
    if look.object.has_topology() && !annotations.contains_key(OK_TO_DELETE) {
        let what = "Waiting for BeforeClusterDelete hook";
        decision.wait(Wait::on(own::WAITING_FOR_BEFORE_DELETE_HOOK, what));
        return waiting(own::WAITING_FOR_BEFORE_DELETE_HOOK, what.to_owned());
    }
    delete_children(look, decision);
    let left = descendants(look);
    if !left.is_empty() {
        let lines: Vec<_> = left.iter().map(|line| format!("* {line}")).collect();
        decision.wait(Wait::on(own::WAITING_FOR_WORKERS_DELETION, left.join("; "))).again_in(AGAIN);
        return waiting(own::WAITING_FOR_WORKERS_DELETION, lines.join("\n"));
    }
    for (found, stage) in [
        (&look.seen.control_plane, own::WAITING_FOR_CONTROL_PLANE_DELETION),
        (&look.seen.infrastructure, own::WAITING_FOR_INFRASTRUCTURE_DELETION),
    ] {
        match found {
            Lookup::NotReferenced | Lookup::Missing => {}
            // Without certainty that the earlier objects are gone, nothing is deleted.
            Lookup::Unusable(why) => return waiting(reason::INTERNAL_ERROR, why.clone()),
            Lookup::Object(object) => {
                delete(decision, object, stage);
                return waiting(stage, format!("Waiting for {} to be deleted", object.kind.kind));
            }
        }
    }
    let message = format!("Cluster {} has been deleted", look.object.metadata.name);
    decision.remove_finalizer(FINALIZER).note(Note::normal("Deleted", "Delete", message));
    waiting(reason::DELETION_COMPLETED, "Deletion completed".to_owned())
}

/// Deletes a provider's object, unless it is being deleted.
fn delete(decision: &mut Decision<ClusterController>, object: &External, stage: &str) {
    if !object.metadata.is_deleting() {
        decision.then(Effect::delete_seen(object.reference(), &object.metadata));
    }
    let what = format!("{} {} to be deleted", object.kind.kind, object.metadata.name);
    decision.wait(Wait::on(stage, what).object(object.reference()));
}

/// Machines of a control plane object are deleted by it, so that they outlive the workers.
fn stands_alone(look: &Look<ClusterController>) -> bool {
    look.object.spec.control_plane_ref.kind.is_empty()
}

/// Deletes the direct children of the cluster.
fn delete_children(look: &Look<ClusterController>, decision: &mut Decision<ClusterController>) {
    fn each<T: Object>(
        look: &Look<ClusterController>,
        decision: &mut Decision<ClusterController>,
        objects: &[std::sync::Arc<T>],
    ) {
        for object in objects {
            let owners: &[OwnerReference] = &object.metadata().owner_references;
            if is_owned(&look.object, owners) && !object.metadata().is_deleting() {
                decision.best_effort(Effect::delete(&**object));
            }
        }
    }
    each(look, decision, &look.seen.deployments);
    each(look, decision, &look.seen.sets);
    each(look, decision, &look.seen.pools);
    each(look, decision, &look.seen.worker_machines);
    if stands_alone(look) {
        each(look, decision, &look.seen.control_plane_machines);
    }
}

/// Remaining workers by kind.
fn descendants(look: &Look<ClusterController>) -> Vec<String> {
    fn names<T: Object>(what: &str, objects: &[std::sync::Arc<T>]) -> Option<String> {
        let names: Vec<_> = objects.iter().map(|object| object.metadata().name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{what}: {}", shortened(&names, SHOWN)))
    }
    let seen = &look.seen;
    let control_plane =
        stands_alone(look).then(|| names("Control plane Machines", &seen.control_plane_machines));
    [
        control_plane.flatten(),
        names("MachineDeployments", &seen.deployments),
        names("MachineSets", &seen.sets),
        names("MachinePools", &seen.pools),
        names("Worker Machines", &seen.worker_machines),
    ]
    .into_iter()
    .flatten()
    .collect()
}
