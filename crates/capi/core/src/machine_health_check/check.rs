//! Whether one machine is healthy.

use std::time::Duration;

use capstan_capi_types::core::machine::reason;
use capstan_capi_types::core::{
    Cluster, Machine, MachineHealthCheckChecks, annotation, cluster, condition, label, machine_health_check,
};
use capstan_object::{Condition, ConditionStatus, Conditions, Time};
use jiff::{SignedDuration, Timestamp};

use super::observed::{Node, Target};
use crate::conditions::ConditionState;

/// Result of a health check.
#[derive(Debug, Clone, PartialEq)]
pub enum Health {
    Healthy,
    /// Not decided: it is starting, or becomes unhealthy after this time.
    Undecided(Option<Duration>),
    /// It must be replaced.
    Unhealthy(ConditionState),
}

pub fn health(
    target: &Target,
    cluster: &Cluster,
    checks: &MachineHealthCheckChecks,
    now: Timestamp,
) -> Health {
    let machine = &target.machine;
    if machine.metadata.annotations.contains_key(annotation::REMEDIATE_MACHINE) {
        let message =
            "Health check failed: marked for remediation via cluster.x-k8s.io/remediate-machine annotation";
        return Health::Unhealthy(ConditionState::new(
            ConditionStatus::False,
            reason::HAS_REMEDIATE_ANNOTATION,
            message,
        ));
    }
    let initialized =
        cluster.status.conditions.is_condition_true(cluster::condition::CONTROL_PLANE_INITIALIZED);
    let is_control_plane = machine.metadata.labels.contains_key(label::CONTROL_PLANE);
    // Workers are not unhealthy because the control plane is not up; its first machine may be.
    let can_be_judged = (initialized || is_control_plane)
        && cluster.status.conditions.is_condition_true(condition::INFRASTRUCTURE_READY);
    if !can_be_judged {
        return settled(target, None);
    }
    let of_machine = machine_findings(machine, checks, now);
    let (node_reason, of_node) = node_findings(target, cluster, checks, now);
    let messages: Vec<_> = of_machine.failed.iter().chain(&of_node.failed).collect();
    if messages.is_empty() {
        return settled(target, of_machine.again.into_iter().chain(of_node.again).min());
    }
    let reason = if of_machine.failed.is_empty() { node_reason } else { reason::UNHEALTHY_MACHINE };
    let lines: Vec<_> = messages.iter().map(|message| format!("  * {message}")).collect();
    let message = format!("Health check failed:\n{}", lines.join("\n"));
    Health::Unhealthy(ConditionState::new(ConditionStatus::False, reason, message))
}

/// A machine without findings is healthy once it has a node and no timeout is pending.
fn settled(target: &Target, again: Option<Duration>) -> Health {
    let has_node = matches!(target.node, Node::There(_));
    if again.is_none() && has_node && !target.machine.metadata.is_deleting() {
        Health::Healthy
    } else {
        Health::Undecided(again)
    }
}

#[derive(Debug, Default)]
struct Findings {
    failed: Vec<String>,
    /// When the next of them may fail.
    again: Option<Duration>,
}

impl Findings {
    /// Checks a state that must not last longer than a timeout.
    fn judge(
        &mut self,
        since: Timestamp,
        limit: SignedDuration,
        now: Timestamp,
        failure: impl FnOnce() -> String,
    ) {
        let lasted = now.duration_since(since);
        if lasted > limit {
            self.failed.push(failure());
            return;
        }
        // One second more: condition times are truncated to seconds.
        let left = Duration::try_from(limit - lasted + SignedDuration::from_secs(1)).unwrap_or_default();
        self.again = Some(self.again.map_or(left, |again| again.min(left)));
    }
}

fn machine_findings(machine: &Machine, checks: &MachineHealthCheckChecks, now: Timestamp) -> Findings {
    let mut findings = Findings::default();
    for check in &checks.unhealthy_machine_conditions {
        let Some(found) = machine.status.conditions.condition(&check.kind) else { continue };
        if Some(found.status) != check.status {
            continue;
        }
        let limit = SignedDuration::from_secs(check.timeout_seconds.unwrap_or(0).into());
        findings.judge(found.last_transition_time.timestamp(), limit, now, || {
            reported("Machine", &check.kind, &format!("{:?}", found.status), &found.reason, limit)
        });
    }
    if !findings.failed.is_empty() {
        findings.again = None;
    }
    findings
}

fn node_findings(
    target: &Target,
    cluster: &Cluster,
    checks: &MachineHealthCheckChecks,
    now: Timestamp,
) -> (&'static str, Findings) {
    let mut findings = Findings::default();
    let conditions = match &target.node {
        Node::Gone => {
            findings.failed.push(format!("Node {} has been deleted", target.machine.status.node_ref.name));
            return (reason::NODE_DELETED, findings);
        }
        Node::NotYet => {
            let timeout = checks
                .node_startup_timeout_seconds
                .unwrap_or(machine_health_check::DEFAULT_NODE_STARTUP_TIMEOUT_SECONDS);
            if timeout != 0 {
                let limit = SignedDuration::from_secs(timeout.into());
                findings.judge(startup_began(&target.machine, cluster), limit, now, || {
                    format!("Node failed to report startup in {}", written(limit))
                });
            }
            return (reason::NODE_STARTUP_TIMEOUT, findings);
        }
        Node::There(conditions) => conditions,
    };
    for check in &checks.unhealthy_node_conditions {
        let Some(found) = conditions.iter().find(|condition| condition.kind == check.kind) else { continue };
        let Some(since) = found.last_transition_time else { continue };
        if found.status != check.status {
            continue;
        }
        let limit = SignedDuration::from_secs(check.timeout_seconds.unwrap_or(0).into());
        findings.judge(since.timestamp(), limit, now, || {
            reported("Node", &check.kind, &found.status, &found.reason, limit)
        });
    }
    if !findings.failed.is_empty() {
        findings.again = None;
    }
    (reason::UNHEALTHY_NODE, findings)
}

/// The startup timeout runs from the last prerequisite.
fn startup_began(machine: &Machine, cluster: &Cluster) -> Timestamp {
    let since = |conditions: &Vec<Condition>, kind: &str| {
        conditions
            .condition(kind)
            .filter(|condition| condition.is_true())
            .map(|condition| condition.last_transition_time)
    };
    [
        machine.metadata.creation_timestamp,
        since(&cluster.status.conditions, cluster::condition::CONTROL_PLANE_INITIALIZED),
        since(&cluster.status.conditions, condition::INFRASTRUCTURE_READY),
        since(&machine.status.conditions, condition::INFRASTRUCTURE_READY),
    ]
    .into_iter()
    .flatten()
    .max()
    .map_or(Timestamp::UNIX_EPOCH, Time::timestamp)
}

fn reported(what: &str, kind: &str, status: &str, reason: &str, limit: SignedDuration) -> String {
    let limit = written(limit);
    format!(
        "Condition {kind} on {what} is reporting status {status} with reason {reason} for more than {limit}"
    )
}

/// Formats a Go duration: `1h0m0s`, `5m0s`, `30s`.
pub fn written(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_capi_types::core::{UnhealthyMachineCondition, UnhealthyNodeCondition};

    use super::*;
    use crate::testing::{at, condition as condition_of, machine};
    use crate::workload::NodeCondition;

    fn cluster(initialized: &str, infrastructure: &str) -> Cluster {
        let mut cluster = Cluster::default();
        cluster.status.conditions = vec![
            condition_of(cluster::condition::CONTROL_PLANE_INITIALIZED, initialized, "R", ""),
            condition_of(condition::INFRASTRUCTURE_READY, infrastructure, "R", ""),
        ];
        cluster
    }

    fn checks() -> MachineHealthCheckChecks {
        MachineHealthCheckChecks {
            node_startup_timeout_seconds: Some(600),
            unhealthy_node_conditions: vec![UnhealthyNodeCondition {
                kind: "Ready".to_owned(),
                status: "Unknown".to_owned(),
                timeout_seconds: Some(300),
            }],
            unhealthy_machine_conditions: vec![UnhealthyMachineCondition {
                kind: "DiskFine".to_owned(),
                status: Some(ConditionStatus::False),
                timeout_seconds: Some(60),
            }],
        }
    }

    fn ready(status: &str) -> Node {
        Node::There(vec![NodeCondition {
            kind: "Ready".to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(at(0).into()),
            reason: "KubeletSilent".to_owned(),
            message: String::new(),
        }])
    }

    fn reported(health: &Health) -> String {
        match health {
            Health::Healthy => "healthy".to_owned(),
            Health::Undecided(None) => "undecided".to_owned(),
            Health::Undecided(Some(again)) => format!("again in {}s", again.as_secs()),
            Health::Unhealthy(state) => state.reason.clone(),
        }
    }

    #[test]
    fn health_depends_on_node_conditions_and_age() {
        let up = || cluster("True", "True");
        let plain = |_: &mut Machine| ();
        type Change = fn(&mut Machine);
        let cases: Vec<(&str, Cluster, Change, Node, i64, &str)> = vec![
            ("a node that is ready", up(), plain, ready("True"), 1000, "healthy"),
            ("a node silent for a while", up(), plain, ready("Unknown"), 300, "again in 1s"),
            ("a node silent for too long", up(), plain, ready("Unknown"), 301, "UnhealthyNode"),
            ("a node state without a check", up(), plain, ready("False"), 1000, "healthy"),
            ("a node that is gone", up(), plain, Node::Gone, 1, "NodeDeleted"),
            ("no node yet", up(), plain, Node::NotYet, 100, "again in 501s"),
            ("no node for too long", up(), plain, Node::NotYet, 601, "NodeStartupTimeout"),
            (
                "infrastructure that came later gives more time",
                up(),
                |m| {
                    let mut later = condition_of("InfrastructureReady", "True", "R", "");
                    later.last_transition_time = at(500).into();
                    m.status.conditions.push(later);
                },
                Node::NotYet,
                601,
                "again in 500s",
            ),
            (
                "a condition of the machine",
                up(),
                |m| m.status.conditions.push(condition_of("DiskFine", "False", "Full", "")),
                ready("True"),
                61,
                "UnhealthyMachine",
            ),
            (
                "the machine's word goes before the node's",
                up(),
                |m| m.status.conditions.push(condition_of("DiskFine", "False", "Full", "")),
                ready("Unknown"),
                400,
                "UnhealthyMachine",
            ),
            (
                "a cluster without infrastructure",
                cluster("True", "False"),
                plain,
                Node::NotYet,
                9999,
                "undecided",
            ),
            (
                "a worker without a control plane",
                cluster("False", "True"),
                plain,
                Node::NotYet,
                9999,
                "undecided",
            ),
            (
                "the first machine of the control plane",
                cluster("False", "True"),
                |m| drop(m.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new())),
                Node::NotYet,
                9999,
                "NodeStartupTimeout",
            ),
            (
                "one marked by a user",
                cluster("False", "False"),
                |m| {
                    drop(
                        m.metadata
                            .annotations
                            .insert(annotation::REMEDIATE_MACHINE.to_owned(), String::new()),
                    )
                },
                ready("True"),
                0,
                "HasRemediateAnnotation",
            ),
            (
                "one that is going is not called healthy",
                up(),
                |m| m.metadata.deletion_timestamp = Some(at(0).into()),
                ready("True"),
                1,
                "undecided",
            ),
        ];
        for (what, cluster, change, node, now, expected) in cases {
            let mut machine = machine("m");
            change(&mut machine);
            let target = Target { machine: Arc::new(machine), node };
            assert_eq!(reported(&health(&target, &cluster, &checks(), at(now))), expected, "{what}");
        }
    }

    #[test]
    fn a_startup_timeout_of_zero_means_none() {
        let target = Target { machine: Arc::new(machine("m")), node: Node::NotYet };
        let checks = MachineHealthCheckChecks { node_startup_timeout_seconds: Some(0), ..checks() };
        assert_eq!(health(&target, &cluster("True", "True"), &checks, at(99_999)), Health::Undecided(None));
    }

    #[test]
    fn all_findings_are_reported() {
        let mut machine = machine("m");
        machine.status.conditions.push(condition_of("DiskFine", "False", "Full", ""));
        let target = Target { machine: Arc::new(machine), node: ready("Unknown") };
        let Health::Unhealthy(state) = health(&target, &cluster("True", "True"), &checks(), at(400)) else {
            panic!("unhealthy")
        };
        assert_eq!(
            state.message,
            "Health check failed:\n  * Condition DiskFine on Machine is reporting status False with reason Full for more \
             than 1m0s\n  * Condition Ready on Node is reporting status Unknown with reason KubeletSilent for more than 5m0s"
        );
    }

    #[test]
    fn durations_are_written_as_go_does() {
        for (seconds, expected) in [(0, "0s"), (59, "59s"), (60, "1m0s"), (3600, "1h0m0s"), (3725, "1h2m5s")]
        {
            assert_eq!(written(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
