//! Members of etcd that go: those nobody runs any more, and those of machines that wait to end.

use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, condition};
use capstan_capi_types::core::machine::{condition as machine_condition, reason as machine_reason};
use capstan_capi_types::core::{Machine, annotation as shared, condition as shared_condition};
use capstan_controller::{Effect, Note};
use capstan_object::Conditions;

use super::decide::Turn;
use super::deletion::release as let_go;
use super::etcd::EtcdSeen;
use super::quorum::{Change, components_survive, etcd_survives};
use super::{ControlPlaneCall, Member, Plane};

/// Removes a member of etcd that belongs to no machine: one at a time, and only if the quorum stands it.
pub(super) fn strangers(turn: &mut Turn<'_>, plane: &Plane) {
    let conditions = &turn.decision.object.status.conditions;
    let healthy = conditions.is_condition_true(condition::ETCD_CLUSTER_HEALTHY);
    if !plane.manages_etcd() || plane.etcd.is_empty() || healthy {
        return;
    }
    // The one without name has a machine that has not become a node, or belongs to a machine that went.
    let Some(stranger) = plane.etcd.iter().find(|member| plane.machine_of_node(&member.name).is_none())
    else {
        return;
    };
    let starting = plane.machines.iter().any(|member| member.node.is_empty());
    let name = if stranger.name.is_empty() { "without name" } else { stranger.name.as_str() };
    if starting {
        turn.wait("WaitingForNode", format!("a machine to become the node of etcd member {name}"));
        return;
    }
    let change = Change::Remove { machine: "", member: &stranger.name };
    if !stranger.name.is_empty() && !etcd_survives(plane, change) {
        turn.wait(
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
    let call = remove(turn, stranger.id, &stranger.name);
    turn.decision.then_noting(Effect::Call(call), note);
}

fn remove(turn: &Turn<'_>, id: u64, member: &str) -> ControlPlaneCall {
    let nodes = turn.look.seen.workload.inside().map(|inside| inside.nodes.keys().cloned().collect());
    let mut nodes: Vec<String> = nodes.unwrap_or_default();
    nodes.retain(|node| node != member);
    ControlPlaneCall::RemoveMember { id, member: member.to_owned(), nodes }
}

/// Takes the member of a machine that waits to end out of etcd, and lets the machine end: one after the other.
pub(super) fn release(turn: &mut Turn<'_>, plane: &Plane) {
    let going: Vec<&Member> =
        plane.machines.iter().filter(|member| member.machine.metadata.is_deleting()).collect();
    let is_held = |member: &Member| {
        member.machine.metadata.annotations.contains_key(annotation::PRE_TERMINATE_HOOK_CLEANUP)
    };
    if let Some(ending) = going.iter().find(|member| !is_held(member)) {
        turn.wait("WaitingForMachines", format!("Machine {} to go", ending.machine.metadata.name));
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
    // Ours is the last hook: what others do before may need the kubelet, and that the API server beside it.
    let others = machine.metadata.annotations.keys().any(|key| {
        key.starts_with(shared::PRE_TERMINATE_HOOK_PREFIX) && key != annotation::PRE_TERMINATE_HOOK_CLEANUP
    });
    if !reached || others {
        turn.wait("WaitingForMachines", format!("Machine {name} to be drained and its other hooks to end"));
        return;
    }
    if plane.machines.len() <= 1 {
        return let_go(&mut turn.decision, machine);
    }
    let member = going.node.as_str();
    let change = Change::Remove { machine: name, member };
    if !components_survive(plane, change) {
        turn.wait(
            "NoOtherControlPlane",
            format!("a machine other than {name} to have a healthy control plane"),
        );
        return;
    }
    if !plane.manages_etcd() {
        return let_go(&mut turn.decision, machine);
    }
    if plane.etcd.is_empty() {
        turn.wait("EtcdUnknown", format!("etcd to say who its members are, before Machine {name} goes"));
        return;
    }
    let Some(found) = plane.etcd.iter().find(|found| !member.is_empty() && found.name == member) else {
        return let_go(&mut turn.decision, machine);
    };
    if !etcd_survives(plane, change) {
        turn.wait("EtcdQuorum", format!("etcd to keep its quorum without Machine {name}"));
        return;
    }
    match move_leader(turn, plane, going) {
        Ok(call) => {
            let note = Note::normal(
                "EtcdMemberRemoved",
                "RemoveMember",
                format!("Removed the etcd member of Machine {name}"),
            );
            let removal = remove(turn, found.id, member);
            if let Some(call) = call {
                turn.decision.call(call);
            }
            turn.decision.then_noting(Effect::Call(removal), note);
            let_go(&mut turn.decision, machine);
        }
        Err(why) => turn.wait("EtcdLeader", why),
    }
}

/// The call that moves leadership away from a machine, if it leads.
pub(super) fn move_leader(
    turn: &Turn<'_>,
    plane: &Plane,
    going: &Member,
) -> Result<Option<ControlPlaneCall>, String> {
    let node = &going.node;
    let leader = match turn.look.seen.workload.inside().map(|inside| &inside.etcd) {
        Some(EtcdSeen::Members { leader, .. }) => leader,
        _ if !plane.manages_etcd() || node.is_empty() => return Ok(None),
        _ => return Err("etcd does not say who leads it".to_owned()),
    };
    if node.is_empty() || leader != node {
        return Ok(None);
    }
    let holds = |machine: &Machine, kind| machine.status.conditions.is_condition_true(kind);
    // The most reliable first: a member that is well, a machine that stays, the newest.
    let next = plane
        .machines
        .iter()
        .filter(|member| {
            !member.machine.metadata.is_deleting()
                && !member.node.is_empty()
                && member.machine.metadata.name != going.machine.metadata.name
        })
        .max_by_key(|member| {
            let machine = member.machine.as_ref();
            (
                holds(machine, condition::MACHINE_ETCD_MEMBER_HEALTHY),
                holds(machine, machine_condition::HEALTH_CHECK_SUCCEEDED),
                holds(machine, machine_condition::UP_TO_DATE),
                machine.metadata.creation_timestamp,
                std::cmp::Reverse(machine.metadata.name.clone()),
            )
        });
    let next = next.ok_or("there is no machine that could lead etcd instead")?;
    let (from, to) = (node.clone(), next.node.clone());
    Ok(Some(ControlPlaneCall::MoveLeader { from, to }))
}
