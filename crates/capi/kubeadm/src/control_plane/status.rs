//! What a control plane says about itself.

use std::sync::Arc;

use capstan_capi_core::conditions::{self, Verdict};
use capstan_capi_core::machine_deployment::status::{
    machines_ready, machines_up_to_date, may_be_silent, remediating, rolling_out,
};
use capstan_capi_core::machines::{stale_deletions, versions};
use capstan_capi_types::controlplane::KubeadmControlPlaneStatus;
use capstan_capi_types::controlplane::LastRemediationStatus;
use capstan_capi_types::controlplane::kubeadm_control_plane::{
    annotation, condition as own, reason as own_reason,
};
use capstan_capi_types::core::{Deprecated, Machine, condition, label, machine, reason};
use capstan_object::{ConditionStatus, Conditions};
use jiff::{SignedDuration, Timestamp};

use super::decide::{Decided, Looked};
use super::health::is_lasting;
use super::{Plane, RemediationRecord};

/// The conditions that this controller writes on control planes.
pub(super) const OWNED: &[&str] = &[
    condition::PAUSED,
    condition::AVAILABLE,
    own::INITIALIZED,
    own::CERTIFICATES_AVAILABLE,
    own::ETCD_CLUSTER_HEALTHY,
    own::CONTROL_PLANE_COMPONENTS_HEALTHY,
    condition::MACHINES_READY,
    condition::MACHINES_UP_TO_DATE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
    condition::DELETING,
];

/// While etcd's members are not known after the control plane was initialized, that is no error yet.
const ETCD_APPEARS_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// Sets a condition of the decided object.
pub(super) fn set(
    decision: &mut Decided,
    look: &Looked,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    say(decision, look, kind, Verdict::new(status, reason, message));
}

/// The same from a verdict.
pub(super) fn say(decision: &mut Decided, look: &Looked, kind: &str, verdict: Verdict) {
    conditions::state(look, &mut decision.object.status.conditions, kind, verdict, None);
}

/// What the status is made of beside the plane.
pub(super) struct Facts<'a> {
    pub plane: &'a Plane,
    /// Members of etcd and machines match.
    pub matching: bool,
    /// What keeps machines from coming or going.
    pub obstacles: &'a [String],
    /// Kind of the template, if it does not exist.
    pub missing_template: Option<&'a str>,
    /// What is waited for while the control plane goes.
    pub deleting: Option<Verdict>,
}

impl Facts<'_> {
    fn machines(&self) -> Vec<Arc<Machine>> {
        self.plane.machines.iter().map(|member| member.machine.clone()).collect()
    }

    fn is_deleting(&self) -> bool {
        self.plane.control_plane.metadata.is_deleting()
    }

    fn wanted(&self) -> usize {
        if self.is_deleting() { 0 } else { self.plane.wanted() }
    }
}

/// Counts, versions and all conditions but those set on the way.
pub(super) fn report(decision: &mut Decided, look: &Looked, facts: &Facts<'_>) {
    let machines = facts.machines();
    let status = &mut decision.object.status;
    counters(status, facts, &machines);
    status.observed_generation = look.object.metadata.generation;
    let initialized = status.initialization.control_plane_initialized == Some(true);
    let verdict = match initialized {
        true => Verdict::new(ConditionStatus::True, own_reason::INITIALIZED, ""),
        false => Verdict::new(ConditionStatus::False, own_reason::NOT_INITIALIZED, ""),
    };
    say(decision, look, own::INITIALIZED, verdict);
    for (kind, verdict) in [
        (condition::ROLLING_OUT, rolling_out(&machines)),
        (condition::SCALING_UP, scaling_up(facts)),
        (condition::SCALING_DOWN, scaling_down(facts, &machines)),
        (condition::MACHINES_READY, machines_ready(&machines)),
        (condition::MACHINES_UP_TO_DATE, machines_up_to_date(&machines, look.now)),
        (condition::REMEDIATING, remediating(&machines, "KubeadmControlPlane")),
        (
            condition::DELETING,
            facts
                .deleting
                .clone()
                .unwrap_or_else(|| Verdict::new(ConditionStatus::False, reason::NOT_DELETING, "")),
        ),
    ] {
        say(decision, look, kind, verdict);
    }
    let verdict = available(facts, &decision.object.status);
    say(decision, look, condition::AVAILABLE, verdict);
    for machine in machines.iter().filter(|machine| may_be_silent(machine, look.now)) {
        if let Some(created) = machine.metadata.creation_timestamp {
            decision.again_at(look.now, created.timestamp() + SignedDuration::from_secs(11));
        }
    }
}

fn counters(status: &mut KubeadmControlPlaneStatus, facts: &Facts<'_>, machines: &[Arc<Machine>]) {
    let cluster = &facts.plane.cluster.metadata.name;
    status.selector = format!("{}={cluster},{}", label::CLUSTER_NAME, label::CONTROL_PLANE);
    status.versions = versions(machines);
    if let Some(lowest) = status.versions.first() {
        status.version = lowest.version.clone();
    }
    let count = |kind: &str| {
        let holds = |machine: &&Arc<Machine>| machine.status.conditions.is_condition_true(kind);
        i32::try_from(machines.iter().filter(holds).count()).ok()
    };
    status.replicas = i32::try_from(machines.len()).ok();
    status.ready_replicas = count(condition::READY);
    status.available_replicas = count(condition::AVAILABLE);
    status.up_to_date_replicas = count(machine::condition::UP_TO_DATE);
    let ready = count(machine::condition::NODE_READY).unwrap_or(0);
    let deprecated = status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_with(Default::default);
    old.updated_replicas = status.up_to_date_replicas.unwrap_or(0);
    old.ready_replicas = ready;
    old.unavailable_replicas = status.replicas.unwrap_or(0) - ready;
    last_remediation(status, facts, machines);
}

/// The replacement under way, else the last one that a machine tells of.
fn last_remediation(status: &mut KubeadmControlPlaneStatus, facts: &Facts<'_>, machines: &[Arc<Machine>]) {
    let read = |text: &String| serde_json::from_str::<RemediationRecord>(text).ok();
    let under_way = facts.plane.control_plane.metadata.annotations.get(annotation::REMEDIATION_IN_PROGRESS);
    let record = under_way.and_then(read).or_else(|| {
        let told = machines
            .iter()
            .filter_map(|machine| machine.metadata.annotations.get(annotation::REMEDIATION_FOR));
        told.filter_map(read).max_by_key(|record| record.timestamp)
    });
    if let Some(record) = record {
        status.last_remediation = LastRemediationStatus {
            machine: record.machine,
            time: Some(record.timestamp),
            retry_count: Some(record.retry_count),
        };
    }
}

fn blocked(message: String, obstacles: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = obstacles.into_iter().map(|obstacle| format!("\n* {obstacle}")).collect();
    if lines.is_empty() { message } else { format!("{message} is blocked because:{}", lines.concat()) }
}

fn scaling_up(facts: &Facts<'_>) -> Verdict {
    if facts.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (facts.plane.machines.len(), facts.wanted());
    let missing = facts.missing_template.map(|kind| format!("{kind} does not exist"));
    if have >= want {
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_UP, message.unwrap_or_default());
    }
    let message = format!("Scaling up from {have} to {want} replicas");
    let message = blocked(message, facts.obstacles.iter().cloned().chain(missing));
    Verdict::new(ConditionStatus::True, reason::SCALING_UP, message)
}

fn scaling_down(facts: &Facts<'_>, machines: &[Arc<Machine>]) -> Verdict {
    if facts.plane.control_plane.spec.replicas.is_none() {
        return replicas_not_set();
    }
    let (have, want) = (facts.plane.machines.len(), facts.wanted());
    if have <= want {
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let stale = Some(stale_deletions(machines, facts.plane.now)).filter(|stale| !stale.is_empty());
    let message = format!("Scaling down from {have} to {want} replicas");
    let message = blocked(message, facts.obstacles.iter().cloned().chain(stale));
    Verdict::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

fn replicas_not_set() -> Verdict {
    Verdict::new(ConditionStatus::Unknown, reason::WAITING_FOR_REPLICAS_SET, "Waiting for spec.replicas set")
}

/// Healthy parts, and those whose trouble has lasted long enough to be told.
#[derive(Default)]
struct Tally {
    healthy: usize,
    troubled: usize,
    /// Neither: trouble that may be a flicker.
    young: usize,
}

impl Tally {
    fn add(&mut self, machine: &Machine, kinds: &[&str], now: Timestamp) {
        if kinds.iter().all(|kind| machine.status.conditions.is_condition_true(kind)) {
            self.healthy += 1;
        } else if is_lasting(machine, kinds, now) {
            self.troubled += 1;
        } else {
            self.young += 1;
        }
    }
}

/// Whether the control plane can be used: etcd has its quorum, and one machine at least has everything.
fn available(facts: &Facts<'_>, status: &KubeadmControlPlaneStatus) -> Verdict {
    let plane = facts.plane;
    let not = |message: String| Verdict::new(ConditionStatus::False, reason::NOT_AVAILABLE, message);
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
        return Verdict::new(
            ConditionStatus::Unknown,
            reason::INSPECTION_FAILED,
            "Failed to get etcd members",
        );
    }
    if managed && !facts.matching {
        return not("The list of etcd members does not match the list of Machines and Nodes".to_owned());
    }
    let kinds = plane.health_conditions();
    let mut components = Tally::default();
    for member in plane.machines.iter().filter(|member| !member.machine.spec.provider_id.is_empty()) {
        components.add(&member.machine, &kinds, plane.now);
    }
    let (members, voting) = if managed { etcd_tally(plane) } else { (Tally::default(), 0) };
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
    if !facts.is_deleting()
        && (!managed || members.healthy >= quorum)
        && components.healthy >= 1
        && certificates
    {
        if managed && members.troubled > 0 {
            lines.push(count(members.healthy + members.young));
        }
        if components.troubled > 0 {
            let (healthy, machines) = (components.healthy + components.young, plane.machines.len());
            let have = if healthy == 1 { "Machines has" } else { "Machines have" };
            lines.push(format!(
                "* {healthy} of {machines} {have} healthy control plane components, at least 1 required"
            ));
        }
        return Verdict::new(ConditionStatus::True, reason::AVAILABLE, lines.join("\n"));
    }
    if facts.is_deleting() {
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

/// Members of etcd by their health, and how many of them vote.
fn etcd_tally(plane: &Plane) -> (Tally, usize) {
    let mut tally = Tally::default();
    let mut voting = 0;
    let mut provisioning: Vec<&Machine> = plane
        .machines
        .iter()
        .map(|member| member.machine.as_ref())
        .filter(|machine| machine.status.node_ref.name.is_empty())
        .collect();
    for member in &plane.etcd {
        if member.name.is_empty() {
            // It has not started: neither a vote nor an issue.
            tally.healthy += 1;
            continue;
        }
        voting += usize::from(!member.learner);
        let machine = plane.machine_of_node(&member.name).or_else(|| {
            // Machines come one at a time, so this is the one that has not said its node's name yet.
            if provisioning.len() == 1 { provisioning.pop() } else { None }
        });
        match machine {
            Some(machine) => tally.add(machine, &[own::MACHINE_ETCD_MEMBER_HEALTHY], plane.now),
            None => tally.troubled += 1,
        }
    }
    (tally, voting)
}
