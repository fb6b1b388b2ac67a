//! When a control plane counts as initialized.

use capstan_capi_core::machines::is_to_be_remediated;
use capstan_controller::Wait;

use super::UNWELL;
use super::turn::Turn;
use crate::control_plane::observed::Member;

/// The first API server takes requests: kubeadm has left its configuration there. Never taken back.
pub(super) fn becomes_initialized(turn: &mut Turn<'_>) -> bool {
    let plane = turn.plane();
    if plane.is_initialized() || plane.machines.is_empty() {
        return false;
    }
    // A first machine that goes would leave a cluster that nobody can join.
    let goes =
        |member: &Member| member.machine.metadata.is_deleting() || is_to_be_remediated(&member.machine);
    let lost = plane.machines.len() == 1 && plane.machines.iter().any(goes);
    let seen = turn.look.seen.workload.inside().is_some_and(|inside| inside.kubeadm_config.is_some());
    if seen && !lost {
        turn.decision.object.status.initialization.control_plane_initialized = Some(true);
        // What was seen of a cluster that had only just begun to answer is not judged.
        return true;
    }
    turn.decision.wait(Wait::on("WaitingForFirstControlPlane", "the first API server to take requests"));
    turn.decision.again_in(UNWELL);
    false
}
