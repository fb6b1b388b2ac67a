//! When a control plane counts as initialized.

use capstan_capi_core::machines::is_to_be_remediated;
use capstan_controller::Wait;

use super::RECHECK_UNHEALTHY;
use super::scope::ReconcileScope;
use crate::control_plane::observed::ControlPlaneMachine;

/// Sets `controlPlaneInitialized` once the first API server has kubeadm's ConfigMap. It is never reset.
pub(super) fn becomes_initialized(scope: &mut ReconcileScope<'_>) -> bool {
    let plane = scope.plane();
    if plane.is_initialized() || plane.machines.is_empty() {
        return false;
    }
    // If the only machine is being deleted, nothing can join the cluster.
    let goes = |member: &ControlPlaneMachine| {
        member.machine.metadata.is_deleting() || is_to_be_remediated(&member.machine)
    };
    let lost = plane.machines.len() == 1 && plane.machines.iter().any(goes);
    let seen = scope.look.seen.workload.reached().is_some_and(|reached| reached.kubeadm_config.is_some());
    if seen && !lost {
        scope.decision.object.status.initialization.control_plane_initialized = Some(true);
        // State read before initialization is not evaluated; the next reconcile reads it again.
        return true;
    }
    scope.decision.wait(Wait::on("WaitingForFirstControlPlane", "the first API server to take requests"));
    scope.decision.again_in(RECHECK_UNHEALTHY);
    false
}
