//! Status of a Machine.

use capstan_capi_types::core::cluster::condition as cluster_condition;
use capstan_capi_types::core::machine::{condition as own, reason as own_reason};
use capstan_capi_types::core::{Cluster, ConditionPolarity, Machine, MachinePhase, condition, reason};
use capstan_controller::{Decision, Look};
use capstan_object::{Condition, ConditionStatus, Conditions, Time};
use jiff::SignedDuration;

use super::observed::ObservedNode;
use super::{MachineController, in_place};
use crate::conditions::{self, ConditionState, Fallback, Priority, Reasons, Summary};
use crate::contract::Lookup;
use crate::in_place::is_updating;
use crate::workload::Node;
use crate::{machines, template};

use ConditionStatus::{False, True, Unknown};

/// Failed probes before a cluster that never responded counts as unreachable.
const FIRST_PROBES: u32 = 5;

/// Deletions and drains older than this are reported as slow.
const SLOW_DELETION: SignedDuration = SignedDuration::from_mins(15);
const SLOW_DRAIN: SignedDuration = SignedDuration::from_mins(5);

/// Sets the whole status.
pub(super) fn report(
    look: &Look<MachineController>,
    cluster: &Cluster,
    decision: &mut Decision<MachineController>,
    deletion: Option<ConditionState>,
    grace: SignedDuration,
) {
    let mut conditions = std::mem::take(&mut decision.object.status.conditions);
    let machine = &decision.object;
    let mut set = |kind: &str, state: ConditionState, since: Option<Time>| {
        conditions::set_state(look, &mut conditions, kind, state, since);
    };
    let created = machine.status.initialization.bootstrap_data_secret_created == Some(true);
    let kind = &machine.spec.bootstrap.config_ref.kind;
    let (state, since) =
        machines::bootstrap_ready(&look.seen.bootstrap, kind, created, machine.metadata.is_deleting());
    set(condition::BOOTSTRAP_CONFIG_READY, state, since);
    let (state, since) = infrastructure_ready(look, machine);
    set(condition::INFRASTRUCTURE_READY, state, since);
    let known = [own::NODE_READY, own::NODE_HEALTHY]
        .iter()
        .all(|kind| look.object.status.conditions.condition(kind).is_some());
    if let Some((ready, since, healthy)) = node_conditions(look, cluster, machine, known, grace) {
        set(own::NODE_READY, ready, since);
        set(own::NODE_HEALTHY, healthy, None);
    }
    let deletion = deletion.unwrap_or_else(|| ConditionState::new(False, reason::NOT_DELETING, ""));
    set(condition::DELETING, deletion, None);
    set(own::UPDATING, in_place::condition(machine, &look.seen.update), None);
    if let Some(state) = up_to_date(look, machine) {
        conditions::set_state(look, &mut conditions, own::UP_TO_DATE, state, None);
    }
    let ready = ready(look, machine, &conditions);
    conditions::set_state(look, &mut conditions, condition::READY, ready, None);
    let (available, wait) = available(look, machine, &conditions);
    conditions::set_state(look, &mut conditions, condition::AVAILABLE, available, None);
    let phase = phase(machine, &conditions);
    let own = &mut decision.object;
    if own.status.phase != Some(phase) {
        own.status.phase = Some(phase);
        own.status.last_updated = Some(Time::new(look.now));
    }
    own.status.conditions = conditions;
    own.status.observed_generation = look.object.metadata.generation;
    if let Some(wait) = wait {
        decision.again_in(wait);
    }
}

fn infrastructure_ready(look: &Look<MachineController>, machine: &Machine) -> (ConditionState, Option<Time>) {
    let kind = &machine.spec.infrastructure_ref.kind;
    let provisioned = machine.status.initialization.infrastructure_provisioned == Some(true);
    let state = match &look.seen.infrastructure {
        Lookup::Object(object) => {
            let message = format!("{kind} status.initialization.provisioned is {provisioned}");
            let fallback =
                Fallback { flag: provisioned, holds: reason::READY, fails: reason::NOT_READY, message };
            return conditions::mirrored(object.conditions(), condition::READY, fallback);
        }
        Lookup::Unusable(why) => ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone()),
        Lookup::Missing | Lookup::NotReferenced => match (provisioned, machine.metadata.is_deleting()) {
            (true, true) => {
                ConditionState::new(False, reason::OBJECT_DELETED, format!("{kind} has been deleted"))
            }
            (true, false) => {
                let message = format!("{kind} has been deleted while the Machine still exists");
                ConditionState::new(False, reason::OBJECT_DELETED, message)
            }
            (false, _) => {
                ConditionState::new(False, reason::OBJECT_DOES_NOT_EXIST, format!("{kind} does not exist"))
            }
        },
    };
    (state, None)
}

/// `NodeReady` with its time, and `NodeHealthy`; `None` keeps the current conditions.
fn node_conditions(
    look: &Look<MachineController>,
    cluster: &Cluster,
    machine: &Machine,
    known: bool,
    grace: SignedDuration,
) -> Option<(ConditionState, Option<Time>, ConditionState)> {
    let both = |status, reason: &str, message: String| {
        let state = ConditionState::new(status, reason, message);
        Some((state.clone(), None, state))
    };
    if cluster.status.initialization.infrastructure_provisioned != Some(true) {
        let message = "Waiting for Cluster status.initialization.infrastructureProvisioned to be true";
        return both(Unknown, reason::INSPECTION_FAILED, message.to_owned());
    }
    let initialized = cluster.status.conditions.condition(cluster_condition::CONTROL_PLANE_INITIALIZED);
    let Some(initialized) = initialized.filter(|condition| condition.is_true()) else {
        return both(
            Unknown,
            reason::INSPECTION_FAILED,
            "Waiting for Cluster control plane to be initialized".to_owned(),
        );
    };
    let health = &look.seen.health;
    if health.last_success.is_none() && health.failures < FIRST_PROBES {
        return if known {
            None
        } else {
            both(Unknown, reason::CONNECTION_DOWN, "Remote connection not established yet".to_owned())
        };
    }
    let last_probe = health
        .last_success
        .map(|last| format!("Last successful probe at {}", Time::new(last)))
        .unwrap_or_default();
    let counted_from =
        health.last_success.unwrap_or(jiff::Timestamp::MIN).max(initialized.last_transition_time.timestamp());
    if look.now.duration_since(counted_from) > grace {
        return both(Unknown, reason::CONNECTION_DOWN, last_probe);
    }
    match &look.seen.node {
        ObservedNode::NotConnected(_) => {
            if known {
                None
            } else {
                both(Unknown, reason::CONNECTION_DOWN, last_probe)
            }
        }
        ObservedNode::Unusable(why) => both(Unknown, reason::INTERNAL_ERROR, why.clone()),
        ObservedNode::Found(node) if !machine.spec.provider_id.is_empty() => {
            let (ready, since) = node_ready(node);
            Some((ready, since, node_healthy(node)))
        }
        _ => {
            let name = &machine.status.node_ref.name;
            match (name.is_empty(), machine.metadata.is_deleting()) {
                (false, true) => {
                    both(False, own_reason::NODE_DELETED, format!("Node {name} has been deleted"))
                }
                (true, true) => {
                    both(Unknown, own_reason::NODE_DOES_NOT_EXIST, "Node does not exist".to_owned())
                }
                (false, false) => {
                    let message = format!("Node {name} has been deleted while the Machine still exists");
                    both(False, own_reason::NODE_DELETED, message)
                }
                (true, false) if machine.spec.provider_id.is_empty() => {
                    let message = format!(
                        "Waiting for {} to report spec.providerID",
                        machine.spec.infrastructure_ref.kind
                    );
                    both(Unknown, reason::INSPECTION_FAILED, message)
                }
                (true, false) => {
                    let message = format!(
                        "Waiting for a Node with spec.providerID {} to exist",
                        machine.spec.provider_id
                    );
                    both(Unknown, reason::INSPECTION_FAILED, message)
                }
            }
        }
    }
}

fn node_ready(node: &Node) -> (ConditionState, Option<Time>) {
    let Some(condition) = node.condition("Ready") else {
        let message = "* Node.Ready: Condition not yet reported";
        return (ConditionState::new(Unknown, own_reason::NODE_READY_UNKNOWN, message), None);
    };
    let (status, reason) = match condition.status.as_str() {
        "True" => (True, own_reason::NODE_READY),
        "False" => (False, own_reason::NODE_NOT_READY),
        _ => (Unknown, own_reason::NODE_READY_UNKNOWN),
    };
    let reported = status != True && !condition.message.is_empty();
    let message = if reported { format!("* Node.Ready: {}", condition.message) } else { String::new() };
    (ConditionState::new(status, reason, message), condition.last_transition_time)
}

/// `NodeHealthy`: the node is ready and has no pressure conditions.
fn node_healthy(node: &Node) -> ConditionState {
    let mut worst = Priority::Info;
    let mut lines = Vec::new();
    let mut reported: Vec<String> = Vec::new();
    for (kind, good) in
        [("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False")]
    {
        let Some(condition) = node.condition(kind) else {
            lines.push(format!("* Node.{kind}: Condition not yet reported"));
            worst = worst.min(Priority::Unknown);
            continue;
        };
        if condition.status == good {
            continue;
        }
        worst = worst.min(if condition.status == "Unknown" { Priority::Unknown } else { Priority::Issue });
        let message = if condition.message.is_empty() {
            format!("Condition is {}", condition.status)
        } else {
            condition.message.clone()
        };
        lines.push(format!("* Node.{kind}: {message}"));
        reported.push(message);
    }
    if reported.len() > 1 && reported.iter().all(|message| *message == reported[0]) {
        lines = vec![format!("* Node.AllConditions: {}", reported[0])];
    }
    let (status, reason) = match worst {
        Priority::Issue => (False, own_reason::NODE_NOT_HEALTHY),
        Priority::Unknown => (Unknown, own_reason::NODE_HEALTH_UNKNOWN),
        Priority::Info => (True, own_reason::NODE_HEALTHY),
    };
    ConditionState::new(
        status,
        reason,
        if worst == Priority::Info { String::new() } else { lines.join("\n") },
    )
}

/// `UpToDate`, for machines of MachineDeployments only; other owners set it themselves. Compares the set's template,
/// not the machine, as the deployment does when it plans a rollout.
fn up_to_date(look: &Look<MachineController>, machine: &Machine) -> Option<ConditionState> {
    let (set, deployment) = (look.seen.set.as_ref()?, look.seen.deployment.as_ref()?);
    let mut differences = template::differences(&set.spec.template, &deployment.spec.template);
    let expired = deployment.spec.rollout.after.is_some_and(|after| {
        after.timestamp() < look.now && set.metadata.creation_timestamp.is_some_and(|created| created < after)
    });
    if expired {
        differences.push("MachineDeployment spec.rolloutAfter expired".to_owned());
    }
    if !differences.is_empty() {
        let lines: Vec<_> = differences.iter().map(|difference| format!("* {difference}")).collect();
        return Some(ConditionState::new(False, reason::NOT_UP_TO_DATE, lines.join("\n")));
    }
    if is_updating(machine) {
        return Some(ConditionState::new(False, own_reason::UPDATING, "* In-place update in progress"));
    }
    let kubelet = machine.status.node_info.as_ref().map_or("", |info| info.kubelet_version.as_str());
    if !kubelet.is_empty() && kubelet != machine.spec.version {
        let message =
            format!("* Node.status.nodeInfo.kubeletVersion {kubelet}, {} required", machine.spec.version);
        return Some(ConditionState::new(False, own_reason::UPDATING, message));
    }
    Some(ConditionState::new(True, reason::UP_TO_DATE, ""))
}

fn ready(look: &Look<MachineController>, machine: &Machine, conditions: &[Condition]) -> ConditionState {
    let mut types = vec![
        condition::DELETING,
        own::UPDATING,
        condition::BOOTSTRAP_CONFIG_READY,
        condition::INFRASTRUCTURE_READY,
        own::NODE_HEALTHY,
        own::HEALTH_CHECK_SUCCEEDED,
    ];
    let gates = &machine.spec.readiness_gates;
    types.extend(gates.iter().map(|gate| gate.condition_type.as_str()));
    let negative = |kind: &str| {
        [condition::DELETING, own::UPDATING].contains(&kind)
            || gates
                .iter()
                .any(|gate| gate.condition_type == kind && gate.polarity == Some(ConditionPolarity::Negative))
    };
    let deleting = machine.metadata.is_deleting();
    let priority = |condition: &Condition| {
        let gone = [
            reason::OBJECT_DELETED,
            reason::OBJECT_DOES_NOT_EXIST,
            own_reason::NODE_DELETED,
            own_reason::NODE_DOES_NOT_EXIST,
        ];
        let mirrors = [condition::BOOTSTRAP_CONFIG_READY, condition::INFRASTRUCTURE_READY, own::NODE_HEALTHY];
        // During deletion these are expected to be gone.
        if deleting && mirrors.contains(&condition.kind.as_str()) && gone.contains(&condition.reason.as_str())
        {
            Priority::Info
        } else {
            conditions::priority(condition, negative(&condition.kind))
        }
    };
    let overrides: Vec<Condition> = if deleting {
        deleting_in_short(look, machine, conditions).into_iter().collect()
    } else {
        Vec::new()
    };
    let summary = Summary {
        types: &types,
        optional: &[own::HEALTH_CHECK_SUCCEEDED],
        overrides: &overrides,
        priority: &priority,
        reasons: Reasons { issue: reason::NOT_READY, unknown: reason::READY_UNKNOWN, fine: reason::READY },
    };
    let (mut state, lines) = summary.lines(conditions);
    state.message = components_together(lines).join("\n");
    state
}

/// `Deleting`, short enough that machines in the same stage have the same message.
fn deleting_in_short(
    look: &Look<MachineController>,
    machine: &Machine,
    conditions: &[Condition],
) -> Option<Condition> {
    let deleting = conditions.iter().find(|condition| condition.kind == condition::DELETING)?;
    let older = |since: Option<Time>, limit| {
        since.is_some_and(|since| look.now.duration_since(since.timestamp()) > limit)
    };
    let slow = older(machine.metadata.deletion_timestamp, SLOW_DELETION);
    let mut message = format!(
        "Machine deletion in progress{}, stage: {}",
        if slow { " since more than 15m" } else { "" },
        deleting.reason
    );
    let drain_start = machine.status.deletion.as_ref().and_then(|deletion| deletion.node_drain_start_time);
    if slow && deleting.reason == own_reason::DRAINING_NODE && older(drain_start, SLOW_DRAIN) {
        let causes: Vec<_> = [
            ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets"),
            ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating"),
            ("failed to evict Pod", "Pod eviction errors"),
            ("waiting for completion", "Pods not completed yet"),
        ]
        .iter()
        .filter(|(text, _)| deleting.message.contains(text))
        .map(|(_, cause)| *cause)
        .collect();
        if !causes.is_empty() {
            message.push_str(&format!(", delay likely due to {}", causes.join(", ")));
        }
    }
    Some(Condition { reason: reason::DELETING.to_owned(), message, ..deleting.clone() })
}

/// Control plane components with the same message are listed once.
fn components_together(lines: Vec<String>) -> Vec<String> {
    let component = |line: &str| {
        let (name, message) = line.split_once(':')?;
        let prefixes = ["* APIServer", "* ControllerManager", "* Scheduler"];
        let is = prefixes.iter().any(|prefix| name.starts_with(prefix)) || name == "* EtcdPodHealthy";
        is.then(|| message.to_owned())
    };
    let reported: Vec<String> = lines.iter().filter_map(|line| component(line)).collect();
    if reported.len() < 2 || reported.iter().any(|message| *message != reported[0]) {
        return lines;
    }
    let mut first = true;
    let together = lines.into_iter().filter_map(|line| match component(&line) {
        None => Some(line),
        Some(message) => std::mem::take(&mut first).then(|| format!("* Control plane components:{message}")),
    });
    together.collect()
}

/// `Available`: ready for long enough; and how long until then.
fn available(
    look: &Look<MachineController>,
    machine: &Machine,
    conditions: &[Condition],
) -> (ConditionState, Option<std::time::Duration>) {
    let ready = conditions.iter().find(|condition| condition.kind == condition::READY && condition.is_true());
    let Some(ready) = ready else { return (ConditionState::new(False, reason::NOT_READY, ""), None) };
    let needed = SignedDuration::from_secs(machine.spec.min_ready_seconds.unwrap_or(0).into());
    let left = needed - look.now.duration_since(ready.last_transition_time.timestamp());
    if left.is_positive() {
        return (
            ConditionState::new(False, own_reason::WAITING_FOR_MIN_READY_SECONDS, ""),
            Some(left.unsigned_abs()),
        );
    }
    (ConditionState::new(True, reason::AVAILABLE, ""), None)
}

fn phase(machine: &Machine, conditions: &[Condition]) -> MachinePhase {
    let initialization = &machine.status.initialization;
    let provisioned = initialization.infrastructure_provisioned == Some(true);
    let updating = conditions.iter().any(|condition| condition.kind == own::UPDATING && condition.is_true());
    if machine.metadata.is_deleting() {
        MachinePhase::Deleting
    } else if updating {
        MachinePhase::Updating
    } else if !machine.status.node_ref.name.is_empty() && provisioned {
        MachinePhase::Running
    } else if !machine.spec.provider_id.is_empty() {
        MachinePhase::Provisioned
    } else if initialization.bootstrap_data_secret_created == Some(true) && !provisioned {
        MachinePhase::Provisioning
    } else {
        machine.status.phase.unwrap_or(MachinePhase::Pending)
    }
}
