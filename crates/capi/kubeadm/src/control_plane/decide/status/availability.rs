//! `Available`: etcd has its quorum, and at least one machine has all components.

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::controlplane::KubeadmControlPlaneStatus;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition as own;
use capstan_capi_types::core::{Machine, reason};
use capstan_object::{ConditionStatus, Conditions};
use jiff::{SignedDuration, Timestamp};

use super::StatusInputs;
use crate::control_plane::decide::health::is_lasting;
use crate::control_plane::observed::ControlPlaneState;

/// How long after initialization unknown etcd members are not reported as an error.
const ETCD_APPEARS_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// Healthy parts, and unhealthy ones by how long they have been so.
#[derive(Default)]
struct HealthCount {
    healthy: usize,
    unhealthy: usize,
    /// Unhealthy for less than 10 seconds: may be a blip.
    recent: usize,
}

impl HealthCount {
    fn add(&mut self, machine: &Machine, kinds: &[&str], now: Timestamp) {
        if kinds.iter().all(|kind| machine.status.conditions.is_condition_true(kind)) {
            self.healthy += 1;
        } else if is_lasting(machine, kinds, now) {
            self.unhealthy += 1;
        } else {
            self.recent += 1;
        }
    }
}

pub(super) fn available(inputs: &StatusInputs<'_>, status: &KubeadmControlPlaneStatus) -> ConditionState {
    let plane = inputs.plane;
    let not = |message: String| ConditionState::new(ConditionStatus::False, reason::NOT_AVAILABLE, message);
    if status.initialization.control_plane_initialized != Some(true) {
        return not("Control plane not yet initialized".to_owned());
    }
    let managed = plane.manages_etcd();
    if managed && plane.etcd.is_empty() {
        let since = status.conditions.condition(own::INITIALIZED).filter(|condition| condition.is_true());
        let since = since.map(|condition| condition.last_transition_time.timestamp());
        if since.is_some_and(|since| plane.now.duration_since(since) < ETCD_APPEARS_WITHIN) {
            return not("Waiting for etcd to report the list of members".to_owned());
        }
        return ConditionState::new(
            ConditionStatus::Unknown,
            reason::INSPECTION_FAILED,
            "Failed to get etcd members",
        );
    }
    if managed && !inputs.matching {
        return not("The list of etcd members does not match the list of Machines and Nodes".to_owned());
    }
    let kinds = plane.health_conditions();
    let mut components = HealthCount::default();
    for member in plane.machines.iter().filter(|member| !member.machine.spec.provider_id.is_empty()) {
        components.add(&member.machine, &kinds, plane.now);
    }
    let (members, voting) = if managed { count_etcd_members(plane) } else { (HealthCount::default(), 0) };
    let quorum = voting / 2 + 1;
    let total = plane.etcd.len();
    let learners = total - voting;
    let learning = if learners > 0 { format!(" {learners} learner etcd member,") } else { String::new() };
    let required = format!("{learning} at least {quorum} healthy member required for etcd quorum");
    let certificates = status.conditions.is_condition_true(own::CERTIFICATES_AVAILABLE);
    let mut lines = Vec::new();
    let count = |count: usize| match count {
        0 => format!("* There are no healthy etcd member,{required}"),
        1 => format!("* 1 of {total} etcd members is healthy,{required}"),
        count => format!("* {count} of {total} etcd members are healthy,{required}"),
    };
    if !inputs.is_deleting()
        && (!managed || members.healthy >= quorum)
        && components.healthy >= 1
        && certificates
    {
        if managed && members.unhealthy > 0 {
            lines.push(count(members.healthy + members.recent));
        }
        if components.unhealthy > 0 {
            let (healthy, machines) = (components.healthy + components.recent, plane.machines.len());
            let have = if healthy == 1 { "Machines has" } else { "Machines have" };
            lines.push(format!(
                "* {healthy} of {machines} {have} healthy control plane components, at least 1 required"
            ));
        }
        return ConditionState::new(ConditionStatus::True, reason::AVAILABLE, lines.join("\n"));
    }
    if inputs.is_deleting() {
        lines.push("* Control plane metadata.deletionTimestamp is set".to_owned());
    }
    if !certificates {
        lines.push("* Control plane certificates are not available".to_owned());
    }
    if managed && members.healthy < quorum {
        lines.push(count(members.healthy));
    }
    if components.healthy < 1 {
        let text = "* There are no Machines with healthy control plane components, at least 1 required";
        lines.push(text.to_owned());
    }
    not(lines.join("\n"))
}

/// etcd members by health, and the number of voting members.
fn count_etcd_members(plane: &ControlPlaneState) -> (HealthCount, usize) {
    let mut count = HealthCount::default();
    let mut voting = 0;
    let mut provisioning: Vec<&Machine> = plane
        .machines
        .iter()
        .map(|member| member.machine.as_ref())
        .filter(|machine| machine.status.node_ref.name.is_empty())
        .collect();
    for member in &plane.etcd {
        if member.name.is_empty() {
            // It has not started: neither a voter nor an issue.
            count.healthy += 1;
            continue;
        }
        voting += usize::from(!member.learner);
        let machine = plane.machine_of_node(&member.name).or_else(|| {
            // Machines are added one at a time, so this member belongs to the one without nodeRef.
            if provisioning.len() == 1 { provisioning.pop() } else { None }
        });
        match machine {
            Some(machine) => count.add(machine, &[own::MACHINE_ETCD_MEMBER_HEALTHY], plane.now),
            None => count.unhealthy += 1,
        }
    }
    (count, voting)
}
