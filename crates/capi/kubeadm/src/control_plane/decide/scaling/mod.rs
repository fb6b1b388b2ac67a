//! Adds and removes machines, one at a time.

mod create;
mod in_place;

use capstan_controller::Note;

use self::create::{create, delete_leftovers};
use super::remediation;
use super::scope::ReconcileScope;
use super::{machine_deletion, workload};
use crate::control_plane::observed::ControlPlaneState;
use crate::control_plane::rollout::remediation::Remediation;
use crate::control_plane::rollout::up_to_date::outdated_machines;
use crate::control_plane::rollout::{Step, next_step};

pub(super) use create::record_names;

pub(super) fn step(scope: &mut ReconcileScope<'_>, _: &ControlPlaneState) {
    let plane = scope.plane();
    if !outdated_machines(&plane).is_empty() {
        workload::before_roll_out(scope, &plane);
        if !scope.decision.effects.is_empty() {
            return;
        }
    }
    let next = next_step(&plane);
    if !matches!(next, Step::Remediate(_)) && in_place::goes_on(scope, &plane) {
        return;
    }
    match next {
        Step::ScaleDown { machine } if in_place::is_tried(scope, &plane, &machine) => {}
        Step::Rest => delete_leftovers(scope, None),
        Step::Initialize { failure_domain } => create(scope, &plane, &failure_domain, false),
        Step::ScaleUp { failure_domain } => create(scope, &plane, &failure_domain, true),
        Step::ScaleDown { machine } => {
            let note = Note::normal("ScaledDown", "Delete", format!("Deleted Machine {machine:?}"));
            let message = format!(
                "Failed to delete control plane Machine {machine} for cluster {} control plane",
                scope.cluster.metadata.key()
            );
            let failure = Note::warning("FailedScaleDown", "Delete", message);
            machine_deletion::remove(scope, &plane, &machine, note, Some(failure));
        }
        Step::Remediate(Remediation::Delete { machine, record }) => {
            remediation::replace(scope, &plane, &machine, &record)
        }
        Step::Remediate(_) => {}
        Step::Wait(blocked) => {
            let reasons = blocked.reasons.join("; ");
            if blocked.unhealthy {
                let message = format!(
                    "Waiting for control plane to pass preflight checks to continue reconciliation: {reasons}"
                );
                scope.decision.note(Note::warning("ControlPlaneUnhealthy", "Check", message));
            }
            scope.wait("PreflightFailed", reasons);
            scope.obstacles = blocked.reasons;
            delete_leftovers(scope, None);
        }
    }
}
