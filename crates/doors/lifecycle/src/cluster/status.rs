//! Conditions and generations of a cluster.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::MachineDeployment;
use capstan_controller::{Decision, Look};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::kstatus::Progress;
use capstan_object::{Condition, ObjectMeta};

use super::cni::SKIPPED;
use super::{Clusters, condition};
use crate::names;
use crate::types::WorkerNodeGroupConfiguration;

/// `finished` says that all phases were passed, `cni` whether the CNI is configured.
pub(super) fn report(
    look: &Look<Clusters>,
    decision: &mut Decision<Clusters>,
    finished: bool,
    cni: ConditionState,
) {
    let settled = finished && decision.effects.is_empty();
    let failure = decision.object.status.failure_message.clone();
    let reason = decision.object.status.failure_reason.clone();
    let initialized = control_plane_initialized(look);
    let control_plane = control_plane_ready(look);
    let workers = workers_ready(look);
    let blocking = [&initialized, &control_plane, &workers]
        .into_iter()
        .chain((cni.reason != SKIPPED).then_some(&cni))
        .find(|state| state.status != True);
    let ready = match (failure, blocking) {
        (Some(message), _) => ConditionState::new(False, &reason.unwrap_or_default(), message),
        (None, Some(state)) => state.clone(),
        (None, None) if !settled => ConditionState::new(False, OUTDATED, "changes are being applied"),
        (None, None) => ConditionState::new(True, "Ready", ""),
    };
    let status = &mut decision.object.status;
    for (kind, state) in [
        (condition::CONTROL_PLANE_INITIALIZED, initialized),
        (condition::CONTROL_PLANE_READY, control_plane),
        (condition::CNI_CONFIGURED, cni),
        (condition::WORKERS_READY, workers),
        (condition::READY, ready),
    ] {
        set_state(look, &mut status.conditions, kind, state, None);
    }
    let generation = look.object.metadata.generation;
    status.observed_generation = generation;
    if settled {
        status.reconciled_generation = generation;
        status.children_reconciled_generation = look.seen.children_generation();
    }
}

const OUTDATED: &str = "OutdatedInformation";

fn control_plane_initialized(look: &Look<Clusters>) -> ConditionState {
    let plane = look.seen.current.control_plane.as_ref();
    match plane.and_then(|plane| plane.status.initialization.control_plane_initialized) {
        Some(true) => ConditionState::new(True, "ControlPlaneInitialized", ""),
        _ => ConditionState::new(
            False,
            "ControlPlaneInitializationInProgress",
            "The first control plane instance is not available yet",
        ),
    }
}

fn control_plane_ready(look: &Look<Clusters>) -> ConditionState {
    let not = |reason: &str, message: String| ConditionState::new(False, reason, message);
    let Some(plane) = &look.seen.current.control_plane else {
        return not("ControlPlaneInitializationInProgress", "Control plane is not created yet".to_owned());
    };
    let KubeadmControlPlane { spec, status, metadata } = &**plane;
    let wanted = look.object.spec.control_plane_configuration.count;
    if status.observed_generation != metadata.generation || spec.replicas != Some(wanted) {
        return not(OUTDATED, "Control plane is not reconciled yet".to_owned());
    }
    let count = |number: Option<i32>| number.unwrap_or(0);
    let (total, ready, updated) =
        (count(status.replicas), count(status.ready_replicas), count(status.up_to_date_replicas));
    let old = total - updated;
    if old > 0 {
        return not(
            "RollingUpgradeInProgress",
            format!("Control plane nodes not up-to-date yet, {old} rolling ({updated} up to date)"),
        );
    }
    if total < wanted {
        return not(
            "ScalingUp",
            format!("Scaling up control plane nodes, {wanted} expected ({total} actual)"),
        );
    }
    if total > wanted {
        return not(
            "ScalingDown",
            format!("Scaling down control plane nodes, {wanted} expected ({total} actual)"),
        );
    }
    if ready != wanted {
        return not(
            "NodesNotReady",
            format!("Control plane nodes not ready yet, {wanted} expected ({ready} ready)"),
        );
    }
    // Counts of machines may be about an earlier generation.
    match unfinished(metadata, &status.conditions) {
        Some(why) => not("KubeadmControlPlaneNotReady", why),
        None => ConditionState::new(True, "ControlPlaneReady", ""),
    }
}

/// What an object of Cluster API still has to do. Its observed generation was compared before.
fn unfinished(metadata: &ObjectMeta, conditions: &[Condition]) -> Option<String> {
    match Progress::from(metadata, None, conditions) {
        Progress::InProgress(why) | Progress::Failed(why) => Some(why),
        Progress::Current | Progress::Terminating => None,
    }
}

fn workers_ready(look: &Look<Clusters>) -> ConditionState {
    let cluster = &look.object;
    let groups = &cluster.spec.worker_node_group_configurations;
    let deployments = &look.seen.current.deployments;
    let states = groups.iter().map(|group| {
        let name = names::deployment(&cluster.metadata.name, &group.name);
        group_ready(group, deployments.get(&name).map(|it| &**it))
    });
    let unwanted = deployments.len().saturating_sub(groups.len());
    if let Some(state) = states.into_iter().find(|state| state.status != True) {
        return state;
    }
    if unwanted > 0 {
        return ConditionState::new(
            False,
            "ScalingDown",
            format!("{unwanted} removed groups are being deleted"),
        );
    }
    ConditionState::new(True, "WorkersReady", "")
}

fn group_ready(
    group: &WorkerNodeGroupConfiguration,
    deployment: Option<&MachineDeployment>,
) -> ConditionState {
    let name = &group.name;
    let not = |reason: &str, message: String| ConditionState::new(False, reason, message);
    let Some(deployment) = deployment else {
        return not("ControlPlaneNotReady", format!("Worker group {name} is not created yet"));
    };
    let MachineDeployment { spec, status, metadata } = deployment;
    let wanted = spec.replicas.unwrap_or(0);
    let scaled = group.autoscaling_configuration.is_some() || Some(wanted) == group.count.or(Some(1));
    if status.observed_generation != metadata.generation || !scaled {
        return not(OUTDATED, format!("Worker group {name} is not reconciled yet"));
    }
    if let Some(bounds) = &group.autoscaling_configuration
        && !(bounds.min_count..=bounds.max_count).contains(&wanted)
    {
        return not(
            "AutoscalerConstraintNotMet",
            format!(
                "Worker group {name} has {wanted} nodes, outside of {} to {}",
                bounds.min_count, bounds.max_count
            ),
        );
    }
    let count = |number: Option<i32>| number.unwrap_or(0);
    let (total, ready, updated) =
        (count(status.replicas), count(status.ready_replicas), count(status.up_to_date_replicas));
    let old = total - updated;
    if old > 0 {
        let what = format!("Worker nodes of {name} not up-to-date yet, {old} rolling ({updated} up to date)");
        return not("RollingUpgradeInProgress", what);
    }
    if total != wanted {
        let (reason, verb) = if total < wanted { ("ScalingUp", "up") } else { ("ScalingDown", "down") };
        let what = format!("Scaling {verb} worker nodes of {name}, {wanted} expected ({total} actual)");
        return not(reason, what);
    }
    if ready != wanted {
        let what = format!("Worker nodes of {name} not ready yet, {wanted} expected ({ready} ready)");
        return not("NodesNotReady", what);
    }
    match unfinished(metadata, &status.conditions) {
        Some(why) => not("MachineDeploymentNotReady", format!("Worker group {name}: {why}")),
        None => ConditionState::new(True, "WorkersReady", ""),
    }
}
