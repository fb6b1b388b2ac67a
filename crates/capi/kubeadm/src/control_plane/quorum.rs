//! Whether a control plane survives that a machine comes or goes.

use capstan_capi_types::controlplane::kubeadm_control_plane::condition::MACHINE_ETCD_MEMBER_HEALTHY;
use capstan_object::Conditions;

use super::Plane;

/// What happens to the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// One is added. What is new counts as broken until it is seen to work.
    Add,
    /// One goes: the machine's name, and its member of etcd where that is known.
    Remove {
        /// Name of the machine.
        machine: &'a str,
        /// Name of its etcd member; empty if it has none.
        member: &'a str,
    },
}

/// etcd keeps its quorum. Members that start or learn make every change wait.
pub fn etcd_survives(plane: &Plane, change: Change<'_>) -> bool {
    let mut voting = 0usize;
    let mut unhealthy = 0usize;
    if change == Change::Add {
        voting += 1;
        // From none to one and from one to two there is nothing to lose.
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

/// One machine at least has a whole and healthy set of control plane components.
pub fn components_survive(plane: &Plane, change: Change<'_>) -> bool {
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
