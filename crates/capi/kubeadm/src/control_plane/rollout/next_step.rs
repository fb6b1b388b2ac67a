//! Decides the next step of a control plane.

use capstan_object::IntOrString;

use super::placement::{failure_domain_for_new_machine, next_machine_to_delete};
use super::preflight::{self, Blocked};
use super::quorum::{Change, components_survive, etcd_survives};
use super::remediation::{Remediation, remediate};
use super::up_to_date::outdated_machines;
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do.
    Rest,
    Initialize {
        failure_domain: String,
    },
    ScaleUp {
        failure_domain: String,
    },
    /// A machine is deleted after etcd's leadership was moved away from it.
    ScaleDown {
        machine: String,
    },
    /// An unhealthy machine is replaced.
    Remediate(Remediation),
    /// A step is due but blocked.
    Wait(Blocked),
}

/// Remediation first, then rollout, then scaling. Never more than one machine.
pub fn next_step(plane: &ControlPlaneState) -> Step {
    if plane.control_plane.metadata.is_deleting() {
        return Step::Rest;
    }
    if let delete @ Remediation::Delete { .. } = remediate(plane) {
        return Step::Remediate(delete);
    }
    let outdated = outdated_machines(plane);
    let (have, want) = (plane.machines.len(), plane.wanted());
    if have == 0 {
        let failure_domain = failure_domain_for_new_machine(plane, &outdated);
        return if want == 0 { Step::Rest } else { Step::Initialize { failure_domain } };
    }
    if let Some(name) = stranded(plane, &outdated) {
        return drop_stranded(plane, name);
    }
    let most = if outdated.is_empty() { want } else { want + surge(plane) };
    if have < most {
        return scale_up(plane, &outdated);
    }
    if have > want || !outdated.is_empty() {
        return scale_down(plane, &outdated);
    }
    Step::Rest
}

/// An outdated machine that never joined: left from a version or template that was taken back or corrected. Nothing can be
/// added while it has no node, so it goes before anything else.
///
/// Before the first API server answers, a machine whose infrastructure exists may be about to become that server, so only
/// one without infrastructure counts.
fn stranded<'a>(plane: &'a ControlPlaneState, outdated: &[String]) -> Option<&'a str> {
    let never_joined = |member: &&ControlPlaneMachine| {
        let machine = &member.machine;
        let provisioned = machine.status.initialization.infrastructure_provisioned == Some(true);
        outdated.contains(&machine.metadata.name)
            && !machine.metadata.is_deleting()
            && machine.status.node_ref.name.is_empty()
            && member.node.is_empty()
            && (plane.is_initialized() || !provisioned)
    };
    plane.machines.iter().find(never_joined).map(|member| member.machine.metadata.name.as_str())
}

fn drop_stranded(plane: &ControlPlaneState, name: &str) -> Step {
    if !plane.is_initialized() {
        return Step::ScaleDown { machine: name.to_owned() };
    }
    match preflight::check(plane, false, Some(name)) {
        Ok(()) => Step::ScaleDown { machine: name.to_owned() },
        Err(blocked) => Step::Wait(blocked),
    }
}

/// Machines above `spec.replicas` during a rollout: 1, unless `maxSurge` is 0.
fn surge(plane: &ControlPlaneState) -> usize {
    match &plane.control_plane.spec.rollout.strategy.rolling_update.max_surge {
        Some(IntOrString::Int(0)) => 0,
        _ => 1,
    }
}

fn scale_up(plane: &ControlPlaneState, outdated: &[String]) -> Step {
    match preflight::check(plane, true, None) {
        Ok(()) => Step::ScaleUp { failure_domain: failure_domain_for_new_machine(plane, outdated) },
        Err(blocked) => Step::Wait(blocked),
    }
}

fn scale_down(plane: &ControlPlaneState, outdated: &[String]) -> Step {
    let wait = |reason: &str| Step::Wait(Blocked::by(reason));
    let Some(member) = next_machine_to_delete(plane, outdated) else {
        return wait("every machine is being deleted already");
    };
    let machine = &member.machine;
    let name = machine.metadata.name.as_str();
    if plane.machines.len() <= 1 {
        // Also with maxSurge 0: the last machine has the only etcd member.
        return wait("the only machine is not removed");
    }
    if let Err(blocked) = preflight::check(plane, false, Some(name)) {
        return Step::Wait(blocked);
    }
    // Upstream only checks the health of the others; with two members left that would lose the quorum.
    let change = Change::Remove { machine: name, member: &member.node };
    if !components_survive(plane, change) {
        return wait("no other machine has a healthy set of control plane components");
    }
    if plane.manages_etcd() && !(plane.etcd.is_empty() || etcd_survives(plane, change)) {
        return wait("etcd would lose its quorum");
    }
    Step::ScaleDown { machine: name.to_owned() }
}
