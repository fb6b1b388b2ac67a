//! Replacing broken machines: what `policy` decides is carried out here.

mod policy;
mod record;
#[cfg(test)]
mod tests;

use capstan_capi_core::conditions::Verdict;
use capstan_capi_core::machines::{condition_is, is_to_be_remediated, tell};
use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, reason};
use capstan_capi_types::core::machine::condition::{HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED};
use capstan_controller::Note;
use capstan_object::ConditionStatus;

use self::record::recorded;
use super::machine_deletion;
use super::turn::Turn;
use crate::control_plane::observed::Plane;

pub(super) use policy::{Remediation, remediate};
pub(super) use record::RemediationRecord;

/// The record of a replacement goes once there is the replacement, or once there is nothing to replace.
pub(super) fn keep_records(turn: &mut Turn<'_>, plane: &Plane) {
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
        // It was about to be deleted, and has recovered before it was.
        let recovered = recorded(plane).is_some_and(|member| {
            !member.machine.metadata.is_deleting() && !is_to_be_remediated(&member.machine)
        });
        if replaced || recovered {
            turn.decision.object.metadata.annotations.remove(annotation::REMEDIATION_IN_PROGRESS);
        }
    }
    for member in plane.machines.iter().filter(|member| !member.machine.metadata.is_deleting()) {
        let machine = &member.machine;
        if condition_is(machine, HEALTH_CHECK_SUCCEEDED, ConditionStatus::True)
            && condition_is(machine, OWNER_REMEDIATED, ConditionStatus::False)
            && let Some(effect) = tell(machine, OWNER_REMEDIATED, None, turn.look.now)
        {
            turn.decision.then(effect);
        }
    }
}

/// Says of a broken machine what holds up its replacement.
pub(super) fn report_held(turn: &mut Turn<'_>, _: &Plane) {
    let plane = turn.plane();
    let Remediation::Held { machine, reason, message } = remediate(&plane) else { return };
    let verdict = Verdict::new(ConditionStatus::False, reason, message.clone());
    if let Some(member) = plane.member(&machine)
        && let Some(effect) = tell(&member.machine, OWNER_REMEDIATED, Some(&verdict), turn.look.now)
    {
        turn.decision.then(effect);
    }
    turn.wait("RemediationHeld", format!("machine {machine} is not replaced: {message}"));
}

/// Deletes a broken machine. The record is written before: a crash in between loses no count.
pub(super) fn replace(turn: &mut Turn<'_>, plane: &Plane, machine: &str, record: &RemediationRecord) {
    let Some(member) = plane.member(machine) else { return };
    // A struct of plain data always has a JSON form.
    let text = serde_json::to_string(record).unwrap_or_default();
    let annotations = &mut turn.decision.object.metadata.annotations;
    annotations.insert(annotation::REMEDIATION_IN_PROGRESS.to_owned(), text);
    let verdict = Verdict::new(ConditionStatus::False, reason::MACHINE_DELETING, "Machine is deleting");
    if let Some(effect) = tell(&member.machine, OWNER_REMEDIATED, Some(&verdict), turn.look.now) {
        turn.decision.then(effect);
    }
    let note = Note::normal("Remediating", "Remediate", format!("Deleted unhealthy Machine {machine:?}"));
    machine_deletion::remove(turn, plane, machine, note);
}
