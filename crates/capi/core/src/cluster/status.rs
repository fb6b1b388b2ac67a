//! Status of a Cluster.

use std::sync::Arc;

use capstan_capi_types::core::cluster::{condition as own, reason as own_reason};
use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{Cluster, ClusterPhase, ConditionPolarity, Machine, condition, label, reason};
use capstan_controller::{Decision, Look, Note};
use capstan_object::{Condition, ConditionStatus, Conditions, Object, Time};
use jiff::SignedDuration;

use super::ClusterController;
use super::observed::{has_topology, is_of_pool, is_owned};
use super::probe::probe;
use super::replicas;
use super::unfinished::still_to_do;
use crate::conditions::{self, ConditionState, Fallback, Priority, Reasons, Source, Summary};
use crate::contract::{ControlPlane, Lookup};
use crate::machines;

use ConditionStatus::{False, True, Unknown};

/// How long a new machine may lack the `UpToDate` condition before that is reported.
const UP_TO_DATE_GRACE: SignedDuration = SignedDuration::from_secs(10);

const TOPOLOGY_PENDING: &str = "Waiting for cluster topology to be reconciled";

/// Sets the whole status.
pub(super) fn report(
    look: &Look<ClusterController>,
    decision: &mut Decision<ClusterController>,
    deletion: Option<ConditionState>,
    grace: SignedDuration,
) {
    phase(look, decision);
    replicas::count(look, &mut decision.object.status);
    probe(look, decision, grace);
    let cluster = decision.object.clone();
    let mut conditions = std::mem::take(&mut decision.object.status.conditions);
    let mut set = |kind: &str, state: ConditionState, since: Option<Time>| {
        conditions::set_state(look, &mut conditions, kind, state, since);
    };
    let (state, since) = infrastructure_ready(look, &cluster);
    set(condition::INFRASTRUCTURE_READY, state, since);
    let (state, since) = control_plane_available(look, &cluster);
    set(own::CONTROL_PLANE_AVAILABLE, state, since);
    // Never reset.
    if !cluster.status.conditions.is_condition_true(own::CONTROL_PLANE_INITIALIZED) {
        set(own::CONTROL_PLANE_INITIALIZED, control_plane_initialized(look, &cluster), None);
    }
    set(own::WORKERS_AVAILABLE, workers_available(look), None);
    let workers = look.seen.workers_outside_pools();
    for (kind, machines) in [
        (own::CONTROL_PLANE_MACHINES_READY, &look.seen.control_plane_machines),
        (own::WORKER_MACHINES_READY, &workers),
    ] {
        set(kind, machines_ready(machines), None);
    }
    for (kind, machines) in [
        (own::CONTROL_PLANE_MACHINES_UP_TO_DATE, &look.seen.control_plane_machines),
        (own::WORKER_MACHINES_UP_TO_DATE, &workers),
    ] {
        set(kind, machines_up_to_date(look, machines), None);
    }
    for (kind, going_on) in NEGATIVE {
        set(kind, aggregate_negative(look, kind, going_on), None);
    }
    set(condition::REMEDIATING, remediating(look), None);
    let deletion = deletion.unwrap_or_else(|| ConditionState::new(False, reason::NOT_DELETING, ""));
    set(condition::DELETING, deletion, None);
    let available = available(&cluster, &conditions);
    conditions::set_state(look, &mut conditions, condition::AVAILABLE, available, None);
    let to_do = still_to_do(look, &conditions);
    conditions::set_reconciling(look, &mut conditions, to_do);
    if waits_to_count_up_to_date(look) {
        decision.again_in(UP_TO_DATE_GRACE.unsigned_abs());
    }
    decision.object.status.conditions = conditions;
    decision.object.status.observed_generation = look.object.metadata.generation;
}

fn phase(look: &Look<ClusterController>, decision: &mut Decision<ClusterController>) {
    let cluster = &mut decision.object;
    let before = cluster.status.phase;
    let mut phase = before.unwrap_or(ClusterPhase::Pending);
    if !cluster.spec.infrastructure_ref.kind.is_empty() || !cluster.spec.control_plane_ref.kind.is_empty() {
        phase = ClusterPhase::Provisioning;
    }
    if cluster.status.initialization.infrastructure_provisioned == Some(true)
        && cluster.spec.control_plane_endpoint.is_valid()
    {
        phase = ClusterPhase::Provisioned;
    }
    if look.object.metadata.is_deleting() {
        phase = ClusterPhase::Deleting;
    }
    cluster.status.phase = Some(phase);
    if before != Some(phase) {
        let message = format!("Cluster {} is {phase}", cluster.metadata.name);
        decision.note(Note::normal(phase.as_str(), "Reconcile", message));
    }
}

/// The mirrored condition while a provider's object is missing or unusable.
fn without_object(cluster: &Cluster, found: &Lookup, kind: &str, was_there: bool) -> ConditionState {
    if let Lookup::Unusable(why) = found {
        return ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone());
    }
    match (was_there, cluster.metadata.is_deleting()) {
        (true, true) => {
            ConditionState::new(False, reason::OBJECT_DELETED, format!("{kind} has been deleted"))
        }
        (true, false) => ConditionState::new(
            False,
            reason::OBJECT_DELETED,
            format!("{kind} has been deleted while the cluster still exists"),
        ),
        (false, _) => {
            ConditionState::new(False, reason::OBJECT_DOES_NOT_EXIST, format!("{kind} does not exist"))
        }
    }
}

fn topology_pending(cluster: &Cluster, status: ConditionStatus) -> ConditionState {
    let message = if cluster.metadata.is_deleting() { "" } else { TOPOLOGY_PENDING };
    ConditionState::new(status, reason::OBJECT_DOES_NOT_EXIST, message)
}

fn infrastructure_ready(look: &Look<ClusterController>, cluster: &Cluster) -> (ConditionState, Option<Time>) {
    let kind = &cluster.spec.infrastructure_ref.kind;
    let provisioned = cluster.status.initialization.infrastructure_provisioned == Some(true);
    match &look.seen.infrastructure {
        Lookup::NotReferenced if has_topology(cluster) => (topology_pending(cluster, False), None),
        // Upstream reports an internal error here, although a cluster with infrastructure managed elsewhere has none.
        Lookup::NotReferenced => (ConditionState::new(True, reason::READY, ""), None),
        Lookup::Object(object) => {
            let message = format!("{kind} status.initialization.provisioned is {provisioned}");
            let fallback =
                Fallback { flag: provisioned, holds: reason::READY, fails: reason::NOT_READY, message };
            conditions::mirrored(object.conditions(), condition::READY, fallback)
        }
        found => (without_object(cluster, found, kind, provisioned), None),
    }
}

fn control_plane_available(
    look: &Look<ClusterController>,
    cluster: &Cluster,
) -> (ConditionState, Option<Time>) {
    let kind = &cluster.spec.control_plane_ref.kind;
    let initialized = cluster.status.initialization.control_plane_initialized == Some(true);
    match &look.seen.control_plane {
        Lookup::NotReferenced if has_topology(cluster) => (topology_pending(cluster, False), None),
        Lookup::NotReferenced if initialized => (ConditionState::new(True, reason::AVAILABLE, ""), None),
        Lookup::NotReferenced => {
            let message = "Waiting for the first control plane machine to have status.nodeRef set";
            (ConditionState::new(False, reason::NOT_AVAILABLE, message), None)
        }
        Lookup::Object(object) => {
            let message = format!("{kind} status.initialization.controlPlaneInitialized is {initialized}");
            let fallback = Fallback {
                flag: initialized,
                holds: reason::AVAILABLE,
                fails: reason::NOT_AVAILABLE,
                message,
            };
            conditions::mirrored(object.conditions(), condition::AVAILABLE, fallback)
        }
        found => (without_object(cluster, found, kind, initialized), None),
    }
}

fn control_plane_initialized(look: &Look<ClusterController>, cluster: &Cluster) -> ConditionState {
    let kind = &cluster.spec.control_plane_ref.kind;
    let (initialized, waiting) = match &look.seen.control_plane {
        Lookup::NotReferenced if has_topology(cluster) => return topology_pending(cluster, Unknown),
        Lookup::NotReferenced => (
            look.seen.control_plane_machines.iter().any(|machine| !machine.status.node_ref.name.is_empty()),
            "Waiting for the first control plane machine to have status.nodeRef set",
        ),
        Lookup::Object(object) => match ControlPlane(object).initialized() {
            Ok(initialized) => (initialized.unwrap_or(false), "Control plane not yet initialized"),
            Err(error) => return ConditionState::new(Unknown, reason::INTERNAL_ERROR, error.to_string()),
        },
        Lookup::Missing => {
            return ConditionState::new(
                Unknown,
                reason::OBJECT_DOES_NOT_EXIST,
                format!("{kind} does not exist"),
            );
        }
        Lookup::Unusable(why) => return ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone()),
    };
    if initialized {
        ConditionState::new(True, own_reason::INITIALIZED, "")
    } else {
        ConditionState::new(False, own_reason::NOT_INITIALIZED, waiting)
    }
}

fn source<'a, T: Object>(object: &'a Arc<T>, conditions: &'a [Condition]) -> Source<'a> {
    let meta = object.metadata();
    let control_plane = meta.labels.contains_key(label::CONTROL_PLANE);
    Source { kind: T::KIND.kind, name: &meta.name, control_plane, conditions }
}

fn workers_available(look: &Look<ClusterController>) -> ConditionState {
    let sources: Vec<_> =
        look.seen.deployments.iter().map(|object| source(object, &object.status.conditions)).collect();
    let reasons =
        Reasons { issue: reason::NOT_AVAILABLE, unknown: reason::AVAILABLE_UNKNOWN, fine: reason::AVAILABLE };
    let state = conditions::aggregate(&sources, condition::AVAILABLE, false, reasons);
    state.unwrap_or_else(|| ConditionState::new(True, own_reason::NO_WORKERS, ""))
}

fn of_machines<'a>(
    machines: impl Iterator<Item = &'a Arc<Machine>>,
    kind: &str,
    reasons: Reasons,
) -> ConditionState {
    let sources: Vec<_> = machines.map(|machine| source(machine, &machine.status.conditions)).collect();
    let state = conditions::aggregate(&sources, kind, false, reasons);
    state.unwrap_or_else(|| ConditionState::new(True, reason::NO_REPLICAS, ""))
}

fn machines_ready(machines: &[Arc<Machine>]) -> ConditionState {
    let reasons = Reasons { issue: reason::NOT_READY, unknown: reason::READY_UNKNOWN, fine: reason::READY };
    of_machines(machines.iter(), condition::READY, reasons)
}

fn counts_up_to_date(look: &Look<ClusterController>, machine: &Machine) -> bool {
    let old = machine
        .metadata
        .creation_timestamp
        .is_none_or(|created| look.now.duration_since(created.timestamp()) > UP_TO_DATE_GRACE);
    old || machine.status.conditions.condition(machine_condition::UP_TO_DATE).is_some()
}

fn machines_up_to_date(look: &Look<ClusterController>, machines: &[Arc<Machine>]) -> ConditionState {
    let reasons = Reasons {
        issue: reason::NOT_UP_TO_DATE,
        unknown: reason::UP_TO_DATE_UNKNOWN,
        fine: reason::UP_TO_DATE,
    };
    let counted = machines.iter().filter(|machine| counts_up_to_date(look, machine));
    of_machines(counted, machine_condition::UP_TO_DATE, reasons)
}

fn waits_to_count_up_to_date(look: &Look<ClusterController>) -> bool {
    let mut counted = look.seen.machines().filter(|machine| !is_of_pool(machine));
    counted.any(|machine| !counts_up_to_date(look, machine))
}

/// Conditions with negative polarity, and their reasons.
const NEGATIVE: [(&str, Reasons); 3] = [
    (
        condition::ROLLING_OUT,
        Reasons {
            issue: reason::ROLLING_OUT,
            unknown: own_reason::ROLLING_OUT_UNKNOWN,
            fine: reason::NOT_ROLLING_OUT,
        },
    ),
    (
        condition::SCALING_UP,
        Reasons {
            issue: reason::SCALING_UP,
            unknown: own_reason::SCALING_UP_UNKNOWN,
            fine: reason::NOT_SCALING_UP,
        },
    ),
    (
        condition::SCALING_DOWN,
        Reasons {
            issue: reason::SCALING_DOWN,
            unknown: own_reason::SCALING_DOWN_UNKNOWN,
            fine: reason::NOT_SCALING_DOWN,
        },
    ),
];

fn aggregate_negative(look: &Look<ClusterController>, kind: &str, reasons: Reasons) -> ConditionState {
    let seen = &look.seen;
    if let Lookup::Unusable(why) = &seen.control_plane {
        return ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone());
    }
    let object = seen.control_plane.object();
    let reported = object.and_then(|object| object.conditions().ok()).unwrap_or_default();
    let mut sources = Vec::new();
    // A control plane need not report the condition.
    if let Some(object) = object
        && reported.condition(kind).is_some()
    {
        let (kind, name) = (&*object.kind.kind, object.metadata.name.as_str());
        sources.push(Source { kind, name, control_plane: false, conditions: &reported });
    }
    sources.extend(seen.deployments.iter().map(|object| source(object, &object.status.conditions)));
    if kind != condition::ROLLING_OUT {
        let alone = seen.sets.iter().filter(|set| is_owned(&look.object, &set.metadata.owner_references));
        sources.extend(alone.map(|object| source(object, &object.status.conditions)));
    }
    let state = conditions::aggregate(&sources, kind, true, reasons);
    state.unwrap_or_else(|| ConditionState::new(False, reasons.fine, ""))
}

fn remediating(look: &Look<ClusterController>) -> ConditionState {
    // Providers replace the machines of their pools.
    let all: Vec<_> = look.seen.machines().filter(|machine| !is_of_pool(machine)).collect();
    let replaced: Vec<_> =
        all.iter().copied().filter(|machine| machines::is_to_be_remediated(machine)).collect();
    if replaced.is_empty() {
        let mut names: Vec<_> = all
            .iter()
            .filter(|machine| machines::is_unhealthy(machine))
            .map(|machine| machine.metadata.name.as_str())
            .collect();
        names.sort_unstable();
        let shown = conditions::shortened(&names, 3);
        let message = match names.len() {
            0 => String::new(),
            1 => format!("Machine {shown} is not healthy (not to be remediated)"),
            _ => format!("Machines {shown} are not healthy (not to be remediated)"),
        };
        return ConditionState::new(False, reason::NOT_REMEDIATING, message);
    }
    let reasons =
        Reasons { issue: reason::REMEDIATING, unknown: reason::REMEDIATING, fine: reason::REMEDIATING };
    let reported = of_machines(replaced.into_iter(), machine_condition::OWNER_REMEDIATED, reasons);
    ConditionState::new(True, reason::REMEDIATING, reported.message)
}

fn available(cluster: &Cluster, conditions: &[Condition]) -> ConditionState {
    let mut types = vec![
        condition::DELETING,
        own::REMOTE_CONNECTION_PROBE,
        condition::INFRASTRUCTURE_READY,
        own::CONTROL_PLANE_AVAILABLE,
        own::WORKERS_AVAILABLE,
        own::TOPOLOGY_RECONCILED,
    ];
    let gates = &cluster.spec.availability_gates;
    types.extend(gates.iter().map(|gate| gate.condition_type.as_str()));
    let negative = |kind: &str| {
        kind == condition::DELETING
            || gates
                .iter()
                .any(|gate| gate.condition_type == kind && gate.polarity == Some(ConditionPolarity::Negative))
    };
    let deleting = cluster.metadata.is_deleting();
    let priority = |condition: &Condition| {
        let gone =
            [reason::OBJECT_DELETED, reason::OBJECT_DOES_NOT_EXIST].contains(&condition.reason.as_str());
        let mirrors = [condition::INFRASTRUCTURE_READY, own::CONTROL_PLANE_AVAILABLE]
            .contains(&condition.kind.as_str());
        // During deletion these are expected to be gone, and a pending topology is no issue.
        let failed = [own_reason::RECONCILE_FAILED, own_reason::CLUSTER_CLASS_NOT_RECONCILED];
        let on_its_way = condition.kind == own::TOPOLOGY_RECONCILED
            && condition.status == False
            && !failed.contains(&condition.reason.as_str());
        if (deleting && mirrors && gone) || on_its_way {
            Priority::Info
        } else {
            conditions::priority(condition, negative(&condition.kind))
        }
    };
    let optional: &[&str] = if has_topology(cluster) { &[] } else { &[own::TOPOLOGY_RECONCILED] };
    let summary = Summary {
        types: &types,
        optional,
        overrides: &[],
        priority: &priority,
        reasons: Reasons {
            issue: reason::NOT_AVAILABLE,
            unknown: reason::AVAILABLE_UNKNOWN,
            fine: reason::AVAILABLE,
        },
    };
    summary.of(conditions)
}
