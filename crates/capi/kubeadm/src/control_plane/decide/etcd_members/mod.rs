//! Removal of etcd members that no machine runs, and etcd's leadership.

mod leadership;

use capstan_capi_types::controlplane::kubeadm_control_plane::condition;
use capstan_controller::{Effect, Note};
use capstan_object::Conditions;

use super::scope::ReconcileScope;
use crate::control_plane::calls::ControlPlaneCall;
use crate::control_plane::observed::ControlPlaneState;
use crate::control_plane::rollout::quorum::{Change, etcd_survives};

pub(super) use leadership::move_leader;

/// Removes an etcd member without a machine: one at a time, and only if etcd keeps its quorum.
pub(super) fn remove_orphaned(scope: &mut ReconcileScope<'_>, plane: &ControlPlaneState) {
    let conditions = &scope.decision.object.status.conditions;
    let healthy = conditions.is_condition_true(condition::ETCD_CLUSTER_HEALTHY);
    if !plane.manages_etcd() || plane.etcd.is_empty() || healthy {
        return;
    }
    // A member without a name belongs to a machine that has no node yet, or to one that is gone.
    let Some(orphan) = plane.etcd.iter().find(|member| plane.machine_of_node(&member.name).is_none()) else {
        return;
    };
    let starting = plane.machines.iter().any(|member| member.node.is_empty());
    let name = if orphan.name.is_empty() { "without name" } else { orphan.name.as_str() };
    if starting {
        scope.wait("WaitingForNode", format!("a machine to become the node of etcd member {name}"));
        return;
    }
    let change = Change::Remove { machine: "", member: &orphan.name };
    if !orphan.name.is_empty() && !etcd_survives(plane, change) {
        scope.wait(
            "EtcdQuorum",
            format!("etcd member {name} has no Machine, but without it etcd may lose its quorum"),
        );
        return;
    }
    let note = Note::normal(
        "EtcdMemberRemoved",
        "RemoveMember",
        format!("Removed etcd member {name}, which has no Machine"),
    );
    let call = remove(scope, orphan.id, &orphan.name);
    scope.decision.then_noting(Effect::Call(call), note);
}

pub(super) fn remove(scope: &ReconcileScope<'_>, id: u64, member: &str) -> ControlPlaneCall {
    let nodes = scope.look.seen.workload.reached().map(|reached| reached.nodes.keys().cloned().collect());
    let mut nodes: Vec<String> = nodes.unwrap_or_default();
    nodes.retain(|node| node != member);
    ControlPlaneCall::RemoveMember { id, member: member.to_owned(), nodes }
}
