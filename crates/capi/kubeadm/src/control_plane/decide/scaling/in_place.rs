//! Machines that an extension updates in place, where the rollout would otherwise delete them.

use capstan_capi_core::in_place::{begins, is_marked, is_updating, to_template};
use capstan_capi_core::propagate::merge_difference;
use capstan_capi_types::core::annotation;
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::{PENDING_HOOKS, PendingHooks};
use capstan_controller::{Effect, Note, ObjectRef};
use serde_json::json;

use crate::control_plane::decide::scope::ReconcileScope;
use crate::control_plane::desired_machine as desired;
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState, InPlace};

/// Goes on with updates that began. While there is one, nothing else is added, removed or updated.
pub(super) fn goes_on(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) -> bool {
    let running: Vec<&ControlPlaneMachine> = plane
        .machines
        .iter()
        .filter(|member| is_updating(&member.machine) && !member.machine.metadata.is_deleting())
        .collect();
    for member in running.iter().filter(|member| begins(&member.machine)) {
        change(scope, plane, member);
    }
    if !running.is_empty() && !scope.has_work() {
        let names: Vec<&str> = running.iter().map(|member| member.machine.metadata.name.as_str()).collect();
        scope.wait("UpdatingInPlace", format!("the in-place update of Machine {}", names.join(", ")));
    }
    !running.is_empty()
}

/// Updates a machine in place if an extension can; whether it is not to be deleted now.
pub(super) fn is_tried(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState, name: &str) -> bool {
    match &scope.look.seen.in_place {
        InPlace::NotAsked => false,
        InPlace::Failed(failure) => {
            scope.obstacles.push(failure.why.clone());
            scope.wait("ExtensionFailed", failure.why.clone());
            scope.decision.again_in(failure.again);
            true
        }
        InPlace::Refused { machine, why } if machine == name => {
            scope.decision.note(Note::normal("NoInPlaceUpdate", "Delete", why.clone()));
            false
        }
        InPlace::Possible { machine } if machine == name => {
            let Some(member) = plane.machine(name) else { return false };
            let machine = &member.machine;
            let mark = json!({"metadata": {"annotations": {annotation::UPDATE_IN_PROGRESS: ""}}});
            let effect = Effect::merge_guarded(ObjectRef::to(machine.as_ref()), &machine.metadata, mark);
            scope.decision.then(effect);
            true
        }
        // The answer is about another machine: the next round asks about this one.
        InPlace::Refused { .. } | InPlace::Possible { .. } => {
            scope.wait("AskingExtension", format!("whether Machine {name} can be updated in place"));
            true
        }
    }
}

/// Gives a machine the new spec: first its infrastructure machine and its KubeadmConfig, then itself.
fn change(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState, member: &ControlPlaneMachine) {
    let (look, machine) = (scope.look, &member.machine);
    let name = &machine.metadata.name;
    let seen = look.seen.machines.iter().find(|seen| seen.machine.metadata.name == *name);
    let parts = seen.and_then(|seen| {
        let (infrastructure, template) = (seen.infrastructure.object()?, look.seen.template.object()?);
        Some((seen.config.as_ref()?, infrastructure, template))
    });
    let Some((config, infrastructure, template)) = parts else {
        let why = format!("an object of Machine {name} or the template does not exist: it cannot be updated");
        scope.obstacles.push(why.clone());
        return scope.wait("InPlaceUpdateBlocked", why);
    };
    // Plain data always serializes.
    let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
    if let Some(change) = to_template(infrastructure, look.seen.former_templates.get(name), template) {
        let effect = Effect::merge_guarded(infrastructure.reference(), &infrastructure.metadata, change);
        scope.decision.then(effect);
    }
    if !is_marked(&config.metadata) {
        let wanted = desired::updated_spec(&plane.control_plane, &config.spec);
        let mut change = json!({"metadata": {"annotations": {annotation::UPDATE_IN_PROGRESS: ""}}});
        if let Some(spec) = merge_difference(&form(&config.spec), &form(&wanted)) {
            change["spec"] = spec;
        }
        let effect = Effect::merge_guarded(ObjectRef::to(config.as_ref()), &config.metadata, change);
        scope.decision.then(effect);
    }
    if scope.has_work() {
        return;
    }
    let mut annotations = machine.metadata.annotations.clone();
    let mut pending = PendingHooks::of(&annotations);
    pending.add(Hook::UpdateMachine);
    pending.write(&mut annotations);
    let change = json!({
        "metadata": {"annotations": {PENDING_HOOKS: annotations.get(PENDING_HOOKS)}},
        "spec": {"version": plane.control_plane.spec.version},
    });
    let message = format!("Machine {name:?} starting in-place update");
    let note = Note::normal("SuccessfulStartInPlaceUpdate", "Update", message);
    let effect = Effect::merge_guarded(ObjectRef::to(machine.as_ref()), &machine.metadata, change);
    scope.decision.then_noting(effect, note);
}
