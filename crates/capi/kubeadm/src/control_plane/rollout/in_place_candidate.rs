//! The machine that an extension may update in place, where the rollout would otherwise delete it.

use capstan_capi_types::core::annotation;

use super::next_step::{Step, next_step};
use super::preflight;
use super::up_to_date::{outdated_machines, reasons_for_a_new_machine};
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

/// The machine that would be deleted next, if it may be updated instead. As with a deletion, everything else must be
/// healthy: an update may fail, and then there is one machine less.
pub fn candidate(plane: &ControlPlaneState) -> Option<&ControlPlaneMachine> {
    let Step::ScaleDown { machine: name } = next_step(plane) else { return None };
    let member = plane.machine(&name)?;
    let outdated = outdated_machines(plane);
    let annotations = &member.machine.metadata.annotations;
    let is_chosen = [annotation::DELETE_MACHINE, annotation::REMEDIATE_MACHINE]
        .iter()
        .any(|key| annotations.contains_key(*key));
    let is_eligible = outdated.contains(&name)
        && !is_chosen
        && reasons_for_a_new_machine(plane, member).is_empty()
        && plane.machines.len() - outdated.len() < plane.wanted()
        // A sick machine is replaced rather than updated.
        && preflight::check(plane, false, None).is_ok();
    is_eligible.then_some(member)
}
