//! The pre-terminate hook: a machine's etcd member is removed before the machine is gone.

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use capstan_capi_types::core::machine::reason as machine_reason;
use capstan_capi_types::core::{Machine, annotation as shared, condition as shared_condition};
use capstan_controller::{Effect, Note, ObjectRef};
use capstan_object::Conditions;
use serde_json::json;

use crate::control_plane::decide::etcd_members::{move_leader, remove};
use crate::control_plane::decide::scope::{Decided, ReconcileScope};
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};
use crate::control_plane::rollout::quorum::{Change, components_survive, etcd_survives};

/// Removes the etcd member of a machine that waits at our hook, then the hook. One machine at a time.
pub(crate) fn complete(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) {
    let going: Vec<&ControlPlaneMachine> =
        plane.machines.iter().filter(|member| member.machine.metadata.is_deleting()).collect();
    let is_held = |member: &ControlPlaneMachine| {
        member.machine.metadata.annotations.contains_key(annotation::PRE_TERMINATE_HOOK_CLEANUP)
    };
    if let Some(ending) = going.iter().find(|member| !is_held(member)) {
        scope.wait("WaitingForMachines", format!("Machine {} to go", ending.machine.metadata.name));
        return;
    }
    let Some(going) = going.into_iter().min_by_key(|member| {
        (member.machine.metadata.deletion_timestamp, member.machine.metadata.name.clone())
    }) else {
        return;
    };
    let machine = going.machine.as_ref();
    let name = &machine.metadata.name;
    let deleting = machine.status.conditions.condition(shared_condition::DELETING);
    let reached = deleting.is_some_and(|condition| {
        condition.is_true() && condition.reason == machine_reason::WAITING_FOR_PRE_TERMINATE_HOOK
    });
    // Ours runs last: other hooks may need the kubelet, which needs the local API server.
    let others = machine.metadata.annotations.keys().any(|key| {
        key.starts_with(shared::PRE_TERMINATE_HOOK_PREFIX) && key != annotation::PRE_TERMINATE_HOOK_CLEANUP
    });
    if !reached || others {
        scope.wait("WaitingForMachines", format!("Machine {name} to be drained and its other hooks to end"));
        return;
    }
    if plane.machines.len() <= 1 {
        return remove_hook(&mut scope.decision, machine);
    }
    let components = components_survive(plane, Change::Remove { machine: name, member: &going.node });
    if !components {
        scope.wait(
            "NoOtherControlPlane",
            format!("a machine other than {name} to have a healthy control plane"),
        );
        return;
    }
    if !plane.manages_etcd() {
        return remove_hook(&mut scope.decision, machine);
    }
    if plane.etcd.is_empty() {
        scope.wait("EtcdUnknown", format!("etcd to report its members before Machine {name} is deleted"));
        return;
    }
    let member = match plane.member_of(going) {
        Ok(Some(member)) => member,
        Ok(None) => return remove_hook(&mut scope.decision, machine),
        Err(why) => return scope.wait("EtcdMemberUnknown", why),
    };
    if !etcd_survives(plane, Change::Remove { machine: name, member: &member.name }) {
        scope.wait("EtcdQuorum", format!("etcd to keep its quorum without Machine {name}"));
        return;
    }
    match move_leader(scope, plane, machine, &member.name) {
        Ok(call) => {
            let note = Note::normal(
                "EtcdMemberRemoved",
                "RemoveMember",
                format!("Removed the etcd member of Machine {name}"),
            );
            let removal = remove(scope, member.id, &member.name);
            if let Some(call) = call {
                scope.decision.call(call);
            }
            scope.decision.then_noting(Effect::Call(removal), note);
            remove_hook(&mut scope.decision, machine);
        }
        Err(why) => scope.wait("EtcdLeader", why),
    }
}

/// Removes our pre-terminate hook.
pub(crate) fn remove_hook(decision: &mut Decided, machine: &Machine) {
    if machine.metadata.annotations.contains_key(annotation::PRE_TERMINATE_HOOK_CLEANUP) {
        let change = json!({"metadata": {"annotations": {annotation::PRE_TERMINATE_HOOK_CLEANUP: null}}});
        decision.best_effort(Effect::merge_guarded(ObjectRef::to(machine), &machine.metadata, change));
    }
}
