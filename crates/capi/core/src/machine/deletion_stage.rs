//! Which stage the deletion of a Machine is in. [`observe`](super::observe) reads only what the stage needs,
//! [`decide`](super::decide) acts on it.

use capstan_capi_types::core::{Machine, MachineDeletionStatus, annotation};
use capstan_object::Time;
use jiff::{SignedDuration, Timestamp};

use super::observed::Observed;
use crate::contract::ControlPlane;

fn node_name(machine: &Machine, seen: &Observed) -> Option<String> {
    // The Node with the machine's providerID counts before the reference, which somebody may have changed.
    let known = Some(&machine.status.node_ref.name).filter(|known| !known.is_empty());
    seen.node.node().map(|node| &node.metadata.name).or(known).cloned()
}

/// The Node to drain and delete; `None` if there is none, or if the cluster or its control plane is being deleted
/// anyway.
pub(super) fn node_to_delete(machine: &Machine, seen: &Observed) -> Option<String> {
    let cluster = seen.cluster.as_ref()?;
    if cluster.metadata.is_deleting() {
        return None;
    }
    let node = node_name(machine, seen)?;
    if let Some(control_plane) = seen.control_plane.object() {
        if control_plane.metadata.is_deleting() {
            return None;
        }
        // An externally managed control plane has no machines.
        if ControlPlane(control_plane).externally_managed() {
            return Some(node);
        }
    }
    (seen.control_plane_machines > 0).then_some(node)
}

fn status(machine: &Machine) -> MachineDeletionStatus {
    machine.status.deletion.clone().unwrap_or_default()
}

/// Whether a stage timed out; `limit` is in seconds, and 0 or `None` means no timeout.
pub(super) fn is_over(since: Option<Time>, limit: Option<i32>, now: Timestamp) -> bool {
    match (since, limit) {
        (Some(since), Some(limit)) if limit > 0 => {
            now.duration_since(since.timestamp()) >= SignedDuration::from_secs(limit.into())
        }
        _ => false,
    }
}

/// The infrastructure machine exists and is not being deleted; otherwise draining is pointless.
fn still_runs(machine: &Machine, seen: &Observed) -> bool {
    let there = seen.infrastructure.object().is_some_and(|object| !object.metadata.is_deleting());
    there && status(machine).wait_for_pre_terminate_hook_start_time.is_none()
}

/// Whether draining applies and has not timed out.
pub(super) fn drains(machine: &Machine, seen: &Observed, now: Timestamp) -> bool {
    !machine.metadata.annotations.contains_key(annotation::EXCLUDE_NODE_DRAINING)
        && still_runs(machine, seen)
        && !is_over(
            status(machine).node_drain_start_time,
            machine.spec.deletion.node_drain_timeout_seconds,
            now,
        )
}

/// Whether waiting for volumes applies and has not timed out.
pub(super) fn awaits_volumes(machine: &Machine, seen: &Observed, now: Timestamp) -> bool {
    !machine.metadata.annotations.contains_key(annotation::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH)
        && still_runs(machine, seen)
        && !is_over(
            status(machine).wait_for_node_volume_detach_start_time,
            machine.spec.deletion.node_volume_detach_timeout_seconds,
            now,
        )
}

/// The Node to drain or detach now.
pub(super) fn node_to_empty(machine: &Machine, seen: &Observed, now: Timestamp) -> Option<String> {
    let node = node_to_delete(machine, seen)?;
    let emptied = hooks(machine, annotation::PRE_DRAIN_HOOK_PREFIX).is_empty()
        && (drains(machine, seen, now) || awaits_volumes(machine, seen, now));
    emptied.then_some(node)
}

pub(super) fn hooks<'a>(machine: &'a Machine, prefix: &str) -> Vec<&'a str> {
    machine.metadata.annotations.keys().map(String::as_str).filter(|name| name.starts_with(prefix)).collect()
}
