//! Whether a control plane survives adding or removing a machine.

use capstan_capi_types::controlplane::kubeadm_control_plane::condition::MACHINE_ETCD_MEMBER_HEALTHY;
use capstan_object::Conditions;

use crate::control_plane::observed::ControlPlaneState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// A machine is added. It counts as unhealthy until it is observed healthy.
    Add,
    /// A machine is removed, with its etcd member.
    Remove {
        machine: &'a str,
        /// Name of its etcd member; empty if it has none or it is unknown.
        member: &'a str,
    },
}

/// Whether etcd keeps its quorum. False while a member starts or is a learner.
pub fn etcd_survives(plane: &ControlPlaneState, change: Change<'_>) -> bool {
    let mut voting = 0usize;
    let mut unhealthy = 0usize;
    if change == Change::Add {
        voting += 1;
        // With at most one member there is no redundancy to lose.
        if plane.etcd.len() > 1 {
            unhealthy += 1;
        }
    }
    for member in &plane.etcd {
        if member.name.is_empty() {
            return false;
        }
        if matches!(change, Change::Remove { member: gone, .. } if gone == member.name) {
            continue;
        }
        if member.learner {
            return false;
        }
        voting += 1;
        let healthy = match plane.machine_of_node(&member.name) {
            Some(machine) => machine.status.conditions.is_condition_true(MACHINE_ETCD_MEMBER_HEALTHY),
            None => member.alarms.is_empty(),
        };
        if !healthy {
            unhealthy += 1;
        }
    }
    let quorum = voting / 2 + 1;
    voting.saturating_sub(unhealthy) >= quorum
}

/// Whether at least one machine still has a complete healthy set of control plane components.
pub fn components_survive(plane: &ControlPlaneState, change: Change<'_>) -> bool {
    if change == Change::Add && plane.machines.is_empty() {
        return true;
    }
    let gone = match change {
        Change::Add => None,
        Change::Remove { machine, .. } => Some(machine),
    };
    plane
        .machines
        .iter()
        .filter(|member| Some(member.machine.metadata.name.as_str()) != gone)
        .any(|member| plane.components_healthy(&member.machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::fixture::{control_plane, healthy, machine, plane, set};
    use crate::control_plane::observed::EtcdMember;

    #[test]
    fn no_step_costs_etcd_its_quorum() {
        let sick = |n| {
            let mut machine = machine(n);
            set(&mut machine, "EtcdMemberHealthy", "False");
            machine
        };
        let remove = |machine: &'static str, member: &'static str| Change::Remove { machine, member };
        // Number of members, unhealthy ones, may add one, may remove the first.
        for (members, sick_ones, add, remove_first) in [
            (1, vec![], true, false),
            (2, vec![], true, true),
            (3, vec![], true, true),
            (3, vec![1], false, true),
            (3, vec![2], false, false),
            (5, vec![1], true, true),
            (5, vec![1, 2], false, true),
            (5, vec![2, 3], false, false),
            (7, vec![1, 2, 3], false, true),
        ] {
            let machines =
                (1..=members).map(|n| if sick_ones.contains(&n) { sick(n) } else { machine(n) }).collect();
            let plane = plane(control_plane(3, ""), machines);
            assert_eq!(etcd_survives(&plane, Change::Add), add, "add to {members}, sick {sick_ones:?}");
            let survives = etcd_survives(&plane, remove("m1", "n1"));
            assert_eq!(survives, remove_first, "remove from {members}, sick {sick_ones:?}");
        }
        let mut learning = healthy(3, 3);
        learning.etcd[2].learner = true;
        assert!(!etcd_survives(&learning, Change::Add));
        learning.etcd[2] = EtcdMember::default();
        assert!(!etcd_survives(&learning, remove("m1", "n1")), "a member that starts is waited for");
    }
}
