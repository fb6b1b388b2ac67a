//! Moves etcd's leadership away from a machine before its deletion.

use capstan_capi_types::controlplane::kubeadm_control_plane::condition;
use capstan_capi_types::core::Machine;
use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_object::Conditions;

use crate::control_plane::calls::ControlPlaneCall;
use crate::control_plane::decide::scope::ReconcileScope;
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState, EtcdState};

/// The call that moves leadership away from the etcd member of a machine; `None` if it does not lead. An empty name stands
/// for no known member.
pub(crate) fn move_leader(
    scope: &ReconcileScope<'_>,
    plane: &ControlPlaneState,
    going: &Machine,
    node: &str,
) -> Result<Option<ControlPlaneCall>, String> {
    let leader = match scope.look.seen.workload.reached().map(|reached| &reached.etcd) {
        Some(EtcdState::Members { leader, .. }) => leader,
        _ if !plane.manages_etcd() || node.is_empty() => return Ok(None),
        _ => return Err("etcd reports no leader".to_owned()),
    };
    if node.is_empty() || leader != node {
        return Ok(None);
    }
    let holds = |machine: &Machine, kind| machine.status.conditions.is_condition_true(kind);
    let call = |to: &ControlPlaneMachine| ControlPlaneCall::MoveLeader {
        from: node.to_owned(),
        to: to.node.clone(),
    };
    // Prefer one that has not just refused, a healthy member, then a healthy and up-to-date machine, then the newest.
    let next = plane
        .machines
        .iter()
        .filter(|member| {
            !member.machine.metadata.is_deleting()
                && !member.node.is_empty()
                && member.machine.metadata.name != going.metadata.name
        })
        .max_by_key(|member| {
            let machine = member.machine.as_ref();
            (
                scope.look.failure_of(&call(member)).is_none(),
                holds(machine, condition::MACHINE_ETCD_MEMBER_HEALTHY),
                holds(machine, machine_condition::HEALTH_CHECK_SUCCEEDED),
                holds(machine, machine_condition::UP_TO_DATE),
                machine.metadata.creation_timestamp,
                std::cmp::Reverse(machine.metadata.name.clone()),
            )
        });
    let next = next.ok_or("no other machine can become the etcd leader")?;
    Ok(Some(call(next)))
}
