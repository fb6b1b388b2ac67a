//! The `TopologyReconciled` condition.

use std::collections::BTreeSet;

use capstan_capi_core::conditions::{self, ConditionState};
use capstan_capi_types::core::cluster::{condition, reason as own};
use capstan_capi_types::core::reason;
use capstan_capi_types::runtime::Hook;
use capstan_controller::{Decision, Look, ObjectRef};
use capstan_object::ConditionStatus;

use super::observed::{DeletionHook, Observed, Topology};
use super::{ClusterTopologies, class_of};
use crate::desired::hooks;
use crate::desired::versions::{Upgrade, WorkersUpgrade};

pub(super) fn report(look: &Look<ClusterTopologies>, decision: &mut Decision<ClusterTopologies>) {
    let Some(state) = state(look) else { return };
    let conditions = &mut decision.object.status.conditions;
    conditions::set_state(look, conditions, condition::TOPOLOGY_RECONCILED, state, None);
}

fn state(look: &Look<ClusterTopologies>) -> Option<ConditionState> {
    class_of(&look.object)?;
    let not =
        |reason: &str, message: String| Some(ConditionState::new(ConditionStatus::False, reason, message));
    if let Some(why) = &look.paused {
        return not(reason::PAUSED, why.clone());
    }
    if !look.failures.is_empty() {
        let errors: Vec<String> = look
            .failures
            .iter()
            .map(|failure| format!("{}: {}", failure.effect, failure.error.message))
            .collect();
        return not(own::RECONCILE_FAILED, errors.join(", "));
    }
    if let Observed::ExtensionFailed { why, .. } = &look.seen {
        return not(own::RECONCILE_FAILED, why.clone());
    }
    if look.object.metadata.is_deleting() {
        let blocking = match &look.seen {
            Observed::Deleting(DeletionHook::Blocks(answer)) => {
                hooks::message([(&Hook::BeforeClusterDelete, answer)].into_iter(), "delete")
            }
            _ => None,
        };
        let blocking = blocking.map(|message| format!(". {message}")).unwrap_or_default();
        return not(reason::DELETING, format!("Cluster is deleting{blocking}"));
    }
    match &look.seen {
        Observed::NotManaged | Observed::Deleting(_) | Observed::ExtensionFailed { .. } => None,
        Observed::CreationBlocked(answer) => {
            let blocking = [(&Hook::BeforeClusterCreate, answer)].into_iter();
            let message = hooks::message(blocking, "Cluster topology creation");
            not(own::CLUSTER_CREATING, message.unwrap_or_default())
        }
        Observed::NoClass(why) | Observed::Failed(why) => not(own::RECONCILE_FAILED, why.clone()),
        // Every edit of a class is followed by a change of its status, for all its clusters: what they report stays.
        Observed::ClassNotReconciled { patience: Some(_) } if is_reported(look) => None,
        Observed::ClassNotReconciled { .. } => not(
            own::CLUSTER_CLASS_NOT_RECONCILED,
            "ClusterClass not reconciled. If this condition persists please check ClusterClass status. A ClusterClass is \
             reconciled if.status.observedGeneration == .metadata.generation is true. If this is not the case either \
             ClusterClass reconciliation failed or the ClusterClass is paused"
                .to_owned(),
        ),
        Observed::Topology(topology) if topology.current.referenced && !topology.taken.is_empty() => {
            not(own::RECONCILE_FAILED, taken(topology))
        }
        Observed::Topology(topology) if topology.current.referenced && is_upgrading(topology) => {
            let (reason, message) = upgrading(topology);
            not(reason, message)
        }
        Observed::Topology(_) => Some(ConditionState::new(ConditionStatus::True, own::RECONCILE_SUCCEEDED, "")),
    }
}

fn is_reported(look: &Look<ClusterTopologies>) -> bool {
    look.object.status.conditions.iter().any(|it| it.kind == condition::TOPOLOGY_RECONCILED)
}

fn taken(topology: &Topology) -> String {
    let describe = |target: &ObjectRef| {
        format!(
            "failed to create {} {}: another object with this name exists that is not topology owned, delete it",
            target.kind.kind, target.key
        )
    };
    topology.taken.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn is_upgrading(topology: &Topology) -> bool {
    let desired = &topology.desired;
    !desired.upgrade.is_done() || desired.hooks.pending.contains(Hook::AfterClusterUpgrade)
}

/// What is upgrading, what waits, and for what; in upstream's words.
fn upgrading(topology: &Topology) -> (&'static str, String) {
    let upgrade = &topology.desired.upgrade;
    let mut message = format!("Cluster is upgrading to {}", topology.current.cluster.spec.topology.version);
    let version = topology.desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default();
    let kind = &topology.desired.control_plane.kind.kind;
    let mut line = |text: String| {
        message.push_str("\n  * ");
        message.push_str(&text);
    };
    if let Some(blocking) = topology.desired.hooks.message("upgrade") {
        line(blocking);
    }
    if upgrade.control_plane_starting || upgrade.control_plane_upgrading {
        let later = later(&upgrade.control_plane_plan, version);
        line(format!("{kind} upgrading to version {version}{later}"));
    } else if !upgrade.control_plane_plan.is_empty() {
        line(format!("{kind} pending upgrade to version {}", upgrade.control_plane_plan.join(", ")));
    }
    for (kind, group) in [("MachineDeployment", &upgrade.deployments), ("MachinePool", &upgrade.pools)] {
        let Names { running, pending, deferred } = Names::of(group);
        if !running.is_empty() {
            let later = later(&upgrade.workers_plan, version);
            line(format!("{} upgrading to version {version}{later}", listed(kind, &running)));
        }
        if !pending.is_empty() && !upgrade.workers_plan.is_empty() {
            let plan = upgrade.workers_plan.join(", ");
            line(format!("{} pending upgrade to version {plan}", listed(kind, &pending)));
        }
        if !deferred.is_empty() {
            line(format!(
                "{} upgrade to version {version} deferred using defer-upgrade or hold-upgrade-sequence annotations",
                listed(kind, &deferred)
            ));
        }
        if !group.pending_create.is_empty() {
            let waiting: Vec<String> = group.pending_create.iter().cloned().collect();
            let waiting = listed(kind, &waiting);
            line(format!("{waiting} creation deferred while control plane upgrade is in progress"));
        }
    }
    (reason_of(upgrade, !topology.desired.hooks.blocking.is_empty()), message)
}

/// Each name once: who upgrades is not pending, and who is deferred neither.
struct Names {
    running: Vec<String>,
    pending: Vec<String>,
    deferred: Vec<String>,
}

impl Names {
    fn of(group: &WorkersUpgrade) -> Self {
        let names = |set: &BTreeSet<String>, without: &[&BTreeSet<String>]| {
            let left = set.iter().filter(|name| !without.iter().any(|set| set.contains(*name)));
            left.cloned().collect::<Vec<String>>()
        };
        Self {
            running: names(&group.upgrading, &[]),
            pending: names(&group.pending, &[&group.upgrading, &group.deferred]),
            deferred: names(&group.deferred, &[&group.upgrading]),
        }
    }
}

/// Upstream reports as deferred only when nothing else is going on.
fn reason_of(upgrade: &Upgrade, blocked: bool) -> &'static str {
    let (deployments, pools) = (Names::of(&upgrade.deployments), Names::of(&upgrade.pools));
    let busy = blocked
        || upgrade.control_plane_starting
        || upgrade.control_plane_upgrading
        || [&deployments, &pools].iter().any(|it| !it.running.is_empty() || !it.pending.is_empty());
    match (busy, deployments.deferred.is_empty(), pools.deferred.is_empty()) {
        (false, false, _) => own::MACHINE_DEPLOYMENTS_UPGRADE_DEFERRED,
        (false, true, false) => own::MACHINE_POOLS_UPGRADE_DEFERRED,
        _ => own::CLUSTER_UPGRADING,
    }
}

fn later(plan: &[String], version: &str) -> String {
    let left: Vec<&str> = plan.iter().map(String::as_str).filter(|step| *step != version).collect();
    if left.is_empty() { String::new() } else { format!(" ({} pending)", left.join(", ")) }
}

fn listed(kind: &str, names: &[String]) -> String {
    match names {
        [only] => format!("{kind} {only}"),
        names if names.len() <= 3 => format!("{kind}s {}", names.join(", ")),
        names => format!("{kind}s {}, ... ({} more)", names[..3].join(", "), names.len() - 3),
    }
}
