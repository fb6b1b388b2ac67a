//! When a control plane counts as initialized.

use capstan_capi_core::machines::is_to_be_remediated;
use capstan_controller::Wait;

use super::UNWELL;
use super::turn::Turn;
use crate::control_plane::observed::Member;

/// Sets `controlPlaneInitialized` once the first API server has kubeadm's ConfigMap. It is never reset.
pub(super) fn becomes_initialized(turn: &mut Turn<'_>) -> bool {
    let plane = turn.plane();
    if plane.is_initialized() || plane.machines.is_empty() {
        return false;
    }
    // If the only machine is being deleted, nothing can join the cluster.
    let goes =
        |member: &Member| member.machine.metadata.is_deleting() || is_to_be_remediated(&member.machine);
    let lost = plane.machines.len() == 1 && plane.machines.iter().any(goes);
    let seen = turn.look.seen.workload.inside().is_some_and(|inside| inside.kubeadm_config.is_some());
    if seen && !lost {
        turn.decision.object.status.initialization.control_plane_initialized = Some(true);
        // State read before initialization is not evaluated; the next reconcile reads it again.
        return true;
    }
    turn.decision.wait(Wait::on("WaitingForFirstControlPlane", "the first API server to take requests"));
    turn.decision.again_in(UNWELL);
    false
}
