//! Adopts control plane machines without a controller. Does nothing while there are machines of another controller.

use capstan_capi_core::owners;
use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::core::Machine;
use capstan_controller::Note;
use capstan_object::Object;

use super::scope::ReconcileScope;
use crate::config::kubernetes_version;

/// Returns whether all control plane machines are controlled by this object.
pub(super) fn adopt(scope: &mut ReconcileScope<'_>) -> bool {
    let (look, uid) = (scope.look, &scope.look.object.metadata.uid);
    let machines = || look.seen.machines.iter().map(|seen| seen.machine.as_ref());
    let orphans: Vec<&Machine> =
        machines().filter(|machine| machine.metadata.controller().is_none()).collect();
    let obstacles: Vec<String> = orphans.iter().filter_map(|machine| obstacle(scope, machine)).collect();
    if let Some(obstacle) = obstacles.first() {
        let wanted = &look.object.spec.version;
        for machine in orphans.iter().filter(|machine| is_skewed(machine, wanted)) {
            let message = format!(
                "Could not adopt Machine {}: its version ({:?}) is outside supported +/- one minor version skew from KCP's ({:?})",
                machine.metadata.key(),
                machine.spec.version,
                wanted
            );
            scope.decision.note(Note::warning("AdoptionFailed", "Adopt", message));
        }
        scope.wait("AdoptionFailed", obstacle.clone());
        scope.obstacles = obstacles;
        return false;
    }
    for machine in orphans {
        let note =
            Note::normal("SuccessfulAdopt", "Adopt", format!("Adopted Machine {:?}", machine.metadata.name));
        scope.decision.then_noting(owners::adopt(look.object.as_ref(), machine), note);
    }
    let theirs =
        machines().find(|machine| machine.metadata.controller().is_some_and(|owner| owner.uid != *uid));
    if let Some(machine) = theirs {
        let message = format!(
            "control plane Machine {} is not owned by this KubeadmControlPlane, refusing to operate in mixed management mode",
            machine.metadata.name
        );
        scope.wait("MixedManagement", message.clone());
        scope.obstacles.push(message);
        return false;
    }
    true
}

/// Why a machine cannot be adopted.
fn obstacle(scope: &ReconcileScope<'_>, machine: &Machine) -> Option<String> {
    let name = &machine.metadata.name;
    let reference = &machine.spec.bootstrap.config_ref;
    if reference.kind != KubeadmConfig::KIND.kind {
        return Some(format!("Machine {name} does not boot from a KubeadmConfig"));
    }
    let (wanted, version) = (&scope.look.object.spec.version, &machine.spec.version);
    is_skewed(machine, wanted)
        .then(|| format!("Machine {name} is at {version}, more than one minor version away from {wanted}"))
}

/// Whether a machine is more than one minor version away. One without a version is adopted as it is.
fn is_skewed(machine: &Machine, wanted: &str) -> bool {
    let versions = kubernetes_version(&machine.spec.version).ok().zip(kubernetes_version(wanted).ok());
    versions.is_some_and(|(own, ours)| own.major != ours.major || own.minor.abs_diff(ours.minor) > 1)
}
