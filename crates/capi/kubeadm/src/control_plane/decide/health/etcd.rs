//! The health of etcd's members, and whether members and machines match.

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::controlplane::kubeadm_control_plane::reason;
use capstan_capi_types::core::{Machine, reason as shared};
use capstan_object::ConditionStatus;
use jiff::SignedDuration;

use super::machine::waiting_for_node;
use super::{fails, named, unknown};
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState, EtcdState, WorkloadState};

/// A node older than this should have an etcd member.
const MEMBER_SEEN_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// Whether machines and etcd members match. New nodes may lack a member, and new members a node, for a while.
pub(super) fn matching(plane: &ControlPlaneState, reached: &WorkloadState, members_known: bool) -> bool {
    let EtcdState::Members { members, .. } = &reached.etcd else {
        return named(plane).next().is_none();
    };
    let lacks_member = |machine: &Machine| {
        let node = &machine.status.node_ref.name;
        let old = reached.nodes.get(node).and_then(|node| node.metadata.creation_timestamp);
        let old = old.is_some_and(|made| plane.now.duration_since(made.timestamp()) > MEMBER_SEEN_AFTER);
        old && !machine.metadata.is_deleting() && !members.iter().any(|member| member.name == *node)
    };
    members_known && !named(plane).any(lacks_member)
}

/// `EtcdMemberHealthy` of a machine.
pub(super) fn member_health(member: &ControlPlaneMachine, etcd: &EtcdState) -> ConditionState {
    let machine = &member.machine;
    let name = &machine.status.node_ref.name;
    if machine.metadata.is_deleting() {
        return fails(shared::DELETING, "Machine is deleting");
    }
    if name.is_empty() {
        return unknown(waiting_for_node(machine));
    }
    let members = match etcd {
        EtcdState::NotAsked => return unknown(format!("Node {name} does not exist")),
        EtcdState::Failed(why) => return unknown(why.clone()),
        EtcdState::Members { members, .. } => members,
    };
    let Some(found) = members.iter().find(|member| member.name == *name) else {
        return fails(reason::NOT_HEALTHY, format!("Etcd doesn't have an etcd member for Node {name}"));
    };
    if found.learner {
        return fails(reason::NOT_HEALTHY, "Waiting for learner etcd member to be promoted");
    }
    if !found.alarms.is_empty() {
        return fails(reason::NOT_HEALTHY, format!("Etcd reports alarms: {}", found.alarms.join(", ")));
    }
    ConditionState::new(ConditionStatus::True, reason::HEALTHY, "")
}
