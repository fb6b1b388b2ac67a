//! Adds and removes machines, one at a time.

mod create;
mod next_step;
mod placement;
mod preflight;
#[cfg(test)]
mod tests;

use capstan_controller::Note;

use self::create::{create, leftovers};
use self::next_step::{Step, next_step};
use super::remediation::{self, Remediation};
use super::turn::Turn;
use super::up_to_date::outdated_machines;
use super::{machine_deletion, workload};
use crate::control_plane::observed::Plane;

pub(super) use create::record_names;

pub(super) fn step(turn: &mut Turn<'_>, _: &Plane) {
    let plane = turn.plane();
    if !outdated_machines(&plane).is_empty() {
        workload::before_roll_out(turn, &plane);
        if !turn.decision.effects.is_empty() {
            return;
        }
    }
    match next_step(&plane) {
        Step::Rest => leftovers(turn, None),
        Step::Initialize { failure_domain } => create(turn, &plane, &failure_domain, false),
        Step::ScaleUp { failure_domain } => create(turn, &plane, &failure_domain, true),
        Step::ScaleDown { machine } => {
            let note = Note::normal("ScaledDown", "Delete", format!("Deleted Machine {machine:?}"));
            machine_deletion::remove(turn, &plane, &machine, note);
        }
        Step::Remediate(Remediation::Delete { machine, record }) => {
            remediation::replace(turn, &plane, &machine, &record)
        }
        Step::Remediate(_) => {}
        Step::Wait(blocked) => {
            turn.wait("PreflightFailed", blocked.reasons.join("; "));
            turn.obstacles = blocked.reasons;
            leftovers(turn, None);
        }
    }
}
