//! Replaces unhealthy machines. `rollout::remediation` says which and when; this module turns that into effects.

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::machines::{condition_is, is_to_be_remediated, set_condition};
use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, reason};
use capstan_capi_types::core::machine::condition::{HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED};
use capstan_controller::Note;
use capstan_object::ConditionStatus;

use super::machine_deletion;
use super::scope::ReconcileScope;
use crate::control_plane::observed::ControlPlaneState;
use crate::control_plane::rollout::remediation::{Remediation, RemediationRecord, recorded, remediate};

/// Clears the remediation record once the replacement exists or the machine recovered.
pub(super) fn update_records(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) {
    let annotations = &plane.control_plane.metadata.annotations;
    if let Some(text) = annotations.get(annotation::REMEDIATION_IN_PROGRESS) {
        let record = serde_json::from_str::<RemediationRecord>(text).ok();
        let replaced = plane.machines.iter().any(|member| {
            let meta = &member.machine.metadata;
            let later = |record: &RemediationRecord| {
                meta.creation_timestamp.is_some_and(|made| made > record.timestamp)
            };
            meta.annotations.get(annotation::REMEDIATION_FOR) == Some(text)
                || record.as_ref().is_none_or(later)
        });
        // It recovered before it was deleted.
        let recovered = recorded(plane).is_some_and(|member| {
            !member.machine.metadata.is_deleting() && !is_to_be_remediated(&member.machine)
        });
        if replaced || recovered {
            scope.decision.object.metadata.annotations.remove(annotation::REMEDIATION_IN_PROGRESS);
        }
    }
    for member in plane.machines.iter().filter(|member| !member.machine.metadata.is_deleting()) {
        let machine = &member.machine;
        if condition_is(machine, HEALTH_CHECK_SUCCEEDED, ConditionStatus::True)
            && condition_is(machine, OWNER_REMEDIATED, ConditionStatus::False)
            && let Some(effect) = set_condition(machine, OWNER_REMEDIATED, None, scope.look.now)
        {
            scope.decision.then(effect);
        }
    }
}

/// Reports in `OwnerRemediated` why an unhealthy machine is not replaced yet.
pub(super) fn report_held(scope: &mut ReconcileScope<'_>, _: &ControlPlaneState) {
    let plane = scope.plane();
    let Remediation::Held { machine, reason, message } = remediate(&plane) else { return };
    let state = ConditionState::new(ConditionStatus::False, reason, message.clone());
    if let Some(member) = plane.machine(&machine)
        && let Some(effect) = set_condition(&member.machine, OWNER_REMEDIATED, Some(&state), scope.look.now)
    {
        scope.decision.then(effect);
    }
    scope.wait("RemediationHeld", format!("machine {machine} is not replaced: {message}"));
}

/// Deletes an unhealthy machine. The record is written first so that a crash does not lose the retry count.
pub(super) fn replace(
    scope: &mut ReconcileScope<'_>,
    plane: &ControlPlaneState,
    machine: &str,
    record: &RemediationRecord,
) {
    let Some(member) = plane.machine(machine) else { return };
    // Plain data always serializes.
    let text = serde_json::to_string(record).unwrap_or_default();
    let annotations = &mut scope.decision.object.metadata.annotations;
    annotations.insert(annotation::REMEDIATION_IN_PROGRESS.to_owned(), text);
    let state = ConditionState::new(ConditionStatus::False, reason::MACHINE_DELETING, "Machine is deleting");
    if let Some(effect) = set_condition(&member.machine, OWNER_REMEDIATED, Some(&state), scope.look.now) {
        scope.decision.then(effect);
    }
    let note = Note::normal("Remediating", "Remediate", format!("Deleted unhealthy Machine {machine:?}"));
    machine_deletion::remove(scope, plane, machine, note, None);
}
