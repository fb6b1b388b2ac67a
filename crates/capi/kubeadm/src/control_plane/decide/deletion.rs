//! Deletes a whole control plane: workers first, then all its machines at once.

use capstan_capi_core::conditions::{ConditionState, shortened};
use capstan_capi_core::machines::stale_deletions;
use capstan_capi_types::controlplane::kubeadm_control_plane::{FINALIZER, reason as own};
use capstan_capi_types::core::reason;
use capstan_controller::{Effect, Note};
use capstan_object::ConditionStatus;

use super::machine_deletion::remove_hook;
use super::scope::ReconcileScope;

pub(super) fn delete(scope: &mut ReconcileScope<'_>) {
    let plane = scope.plane();
    let machines: Vec<_> = plane.machines.iter().map(|member| member.machine.clone()).collect();
    let going =
        |reason: &str, message: String| Some(ConditionState::new(ConditionStatus::True, reason, message));
    if machines.is_empty() {
        scope.deleting = going(reason::DELETION_COMPLETED, "Deletion completed".to_owned());
        scope.decision.remove_finalizer(FINALIZER);
        return;
    }
    let mut others = scope.look.seen.workers.clone();
    let seen = scope.look.seen.machines.iter().map(|seen| &seen.machine.metadata.name);
    others.extend(seen.filter(|name| !machines.iter().any(|own| own.metadata.name == **name)).cloned());
    if !others.is_empty() {
        let names = shortened(&others, 5);
        let message = format!(
            "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: {names}"
        );
        scope.wait("WaitingForWorkers", format!("Machines {names} to go"));
        scope.deleting = going(own::WAITING_FOR_WORKERS_DELETION, message);
        return;
    }
    for machine in &machines {
        // No machine remains, so etcd membership does not matter.
        remove_hook(&mut scope.decision, machine);
        if !machine.metadata.is_deleting() {
            let message = format!(
                "Failed to delete control plane Machines for cluster {} control plane",
                scope.cluster.metadata.key()
            );
            let failure = Note::warning("FailedDelete", "Delete", message);
            scope.decision.best_effort(Effect::delete(machine.as_ref())).or_noting(failure);
        }
    }
    let count = machines.len();
    let stale = stale_deletions(&machines, scope.look.now);
    let and = if stale.is_empty() { String::new() } else { format!(" and {stale}") };
    let message = format!("Deleting {count} Machine{}{and}", if count == 1 { "" } else { "s" });
    scope.wait("WaitingForMachines", "the machines of the control plane to go");
    scope.deleting = going(own::WAITING_FOR_MACHINE_DELETION, message);
}
