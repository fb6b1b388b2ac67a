//! Deletes a machine, stage by stage.

use std::time::Duration;

use capstan_capi_types::core::machine::{FINALIZER, reason as own};
use capstan_capi_types::core::{MachineDeletionStatus, annotation, reason};
use capstan_controller::{Decision, Effect, Look, Note, Wait};
use capstan_object::{ConditionStatus, Time};
use jiff::{SignedDuration, Timestamp};

use crate::conditions::ConditionState;
use crate::contract::Lookup;
use crate::machine::MachineController;
use crate::machine::call::{Evicted, MachineCall, PodName};
use crate::machine::deletion_stage::{awaits_volumes, drains, hooks, is_over, node_to_delete};
use crate::machine::observed::ObservedNode;

/// Requeue interval while draining and detaching.
const AGAIN: Duration = Duration::from_secs(20);

/// Minimum time that deleting a Node is retried, as upstream: the machine's timeout runs from its own deletion, and a
/// drain may have used it up before the first attempt.
const TRIES: SignedDuration = SignedDuration::from_secs(10);

/// Maximum evictions per reconcile; the rest follows in the next.
const MOST_EVICTIONS: usize = 8;

fn waiting(reason: &str, message: impl Into<String>) -> ConditionState {
    ConditionState::new(ConditionStatus::True, reason, message)
}

/// Takes the next step of the deletion. Returns the `Deleting` condition.
pub(super) fn next(
    look: &Look<MachineController>,
    decision: &mut Decision<MachineController>,
) -> ConditionState {
    let machine = &look.object;
    let now = Time::new(look.now);
    let node = node_to_delete(machine, &look.seen);
    if let Some(node) = &node {
        let hooks = hooks(machine, annotation::PRE_DRAIN_HOOK_PREFIX);
        if !hooks.is_empty() {
            deletion(decision).wait_for_pre_drain_hook_start_time.get_or_insert(now);
            let message = format!("Waiting for pre-drain hooks to succeed (hooks: {})", hooks.join(","));
            decision.wait(Wait::on(own::WAITING_FOR_PRE_DRAIN_HOOK, hooks.join(", ")));
            return waiting(own::WAITING_FOR_PRE_DRAIN_HOOK, message);
        }
        if drains(machine, &look.seen, look.now)
            && let Some(state) = drain(look, decision, node)
        {
            return state;
        }
        if awaits_volumes(machine, &look.seen, look.now)
            && let Some(state) = detach(look, decision, node)
        {
            return state;
        }
    }
    let hooks = hooks(machine, annotation::PRE_TERMINATE_HOOK_PREFIX);
    if !hooks.is_empty() {
        deletion(decision).wait_for_pre_terminate_hook_start_time.get_or_insert(now);
        let message = format!("Waiting for pre-terminate hooks to succeed (hooks: {})", hooks.join(","));
        decision.wait(Wait::on(own::WAITING_FOR_PRE_TERMINATE_HOOK, hooks.join(", ")));
        return waiting(own::WAITING_FOR_PRE_TERMINATE_HOOK, message);
    }
    for (found, stage) in [
        (&look.seen.infrastructure, own::WAITING_FOR_INFRASTRUCTURE_DELETION),
        (&look.seen.bootstrap, own::WAITING_FOR_BOOTSTRAP_DELETION),
    ] {
        match found {
            Lookup::NotReferenced | Lookup::Missing => {}
            // Without certainty that the earlier objects are gone, nothing is deleted.
            Lookup::Unusable(why) => return waiting(reason::INTERNAL_ERROR, why.clone()),
            Lookup::Object(object) => {
                if !object.metadata.is_deleting() {
                    decision.then(Effect::delete_seen(object.reference(), &object.metadata));
                }
                let message = format!("Waiting for {} to be deleted", object.kind.kind);
                let what = format!("{} {} to be deleted", object.kind.kind, object.metadata.name);
                decision.wait(Wait::on(stage, what).object(object.reference()));
                return waiting(stage, message);
            }
        }
    }
    // Last, because a Node that is deleted before its machine is gone registers again.
    if let Some(node) = node
        && let Some(state) = delete_node(look, decision, node)
    {
        return state;
    }
    decision.remove_finalizer(FINALIZER);
    waiting(reason::DELETION_COMPLETED, "Deletion completed")
}

fn deletion(decision: &mut Decision<MachineController>) -> &mut MachineDeletionStatus {
    decision.object.status.deletion.get_or_insert_default()
}

/// Cordons the Node and evicts its pods; `None` once it is empty.
fn drain(
    look: &Look<MachineController>,
    decision: &mut Decision<MachineController>,
    node: &str,
) -> Option<ConditionState> {
    let since = *deletion(decision).node_drain_start_time.get_or_insert(Time::new(look.now));
    let plan = match &look.seen.pods {
        Some(Ok(plan)) => plan,
        Some(Err(why)) => {
            decision.note(Note::warning(
                "FailedDrainNode",
                "Drain",
                format!("error draining Machine's node {node:?}: {why}"),
            ));
            decision.wait(Wait::on(own::DRAINING_NODE, why.clone()).since(since.timestamp())).again_in(AGAIN);
            return Some(waiting(own::DRAINING_NODE, format!("Error draining Node: {why}")));
        }
        None => {
            return Some(waiting(
                own::DRAINING_NODE,
                format!("Drain not completed yet (started at {since}):"),
            ));
        }
    };
    let cordon = MachineCall::Cordon { node: node.to_owned() };
    let open = look.seen.node.node().is_some_and(|node| !node.spec.unschedulable);
    if open && look.result_of(&cordon).is_none() {
        decision.call(cordon);
    }
    if plan.is_done() {
        decision.note(Note::normal(
            "SuccessfulDrainNode",
            "Drain",
            format!("success draining Machine's node {node:?}"),
        ));
        return None;
    }
    let (refused, evictions) = refused(look);
    let pods: Vec<PodName> = plan
        .evict_now
        .iter()
        .filter(|pod| !refused.iter().any(|(other, _)| other == *pod))
        .cloned()
        .collect();
    let evict = MachineCall::Evict { pods, grace_seconds: plan.hurry.then_some(1) };
    let wanted = matches!(&evict, MachineCall::Evict { pods, .. } if !pods.is_empty());
    if wanted && evictions < MOST_EVICTIONS && look.result_of(&evict).is_none() {
        decision.call(evict);
    }
    let message = plan.message(since, &refused);
    let mut lines = message.lines();
    lines.next();
    let what = lines.collect::<Vec<_>>().join("; ");
    decision.wait(Wait::on(own::DRAINING_NODE, what).since(since.timestamp())).again_in(AGAIN);
    end_of(decision, since, look.object.spec.deletion.node_drain_timeout_seconds, look.now);
    Some(waiting(own::DRAINING_NODE, message))
}

/// Requeues when a stage times out.
fn end_of(decision: &mut Decision<MachineController>, since: Time, limit: Option<i32>, now: Timestamp) {
    if let Some(limit) = limit.filter(|limit| *limit > 0)
        && let Ok(end) = since.timestamp().saturating_add(SignedDuration::from_secs(limit.into()))
    {
        decision.again_at(now, end);
    }
}

/// Refused evictions of this reconcile, and the number of evictions.
fn refused(look: &Look<MachineController>) -> (Vec<(PodName, String)>, usize) {
    let mut refused = Vec::new();
    let mut evictions = 0;
    for concluded in
        look.concluded.iter().filter(|concluded| matches!(concluded.call, MachineCall::Evict { .. }))
    {
        evictions += 1;
        let result =
            concluded.result.clone().and_then(|result| serde_json::from_value::<Evicted>(result).ok());
        refused.extend(result.unwrap_or_default().refused);
    }
    (refused, evictions)
}

/// Waits for volumes; `None` once none is attached.
fn detach(
    look: &Look<MachineController>,
    decision: &mut Decision<MachineController>,
    node: &str,
) -> Option<ConditionState> {
    let since = *deletion(decision).wait_for_node_volume_detach_start_time.get_or_insert(Time::new(look.now));
    let attached = match (&look.seen.volumes, &look.seen.pods) {
        (Some(Ok(attached)), _) => attached,
        (Some(Err(why)), _) | (None, Some(Err(why))) => {
            let message = format!("error waiting for node volumes detaching, Machine's node {node:?}: {why}");
            decision.note(Note::warning("FailedWaitForVolumeDetach", "DetachVolumes", message));
            decision
                .wait(Wait::on(own::WAITING_FOR_VOLUME_DETACH, why.clone()).since(since.timestamp()))
                .again_in(AGAIN);
            let message = format!("Error waiting for volumes to be detached from Node: {why}");
            return Some(waiting(own::WAITING_FOR_VOLUME_DETACH, message));
        }
        (None, _) => {
            let message = format!("Waiting for Node volumes to be detached (started at {since})");
            return Some(waiting(own::WAITING_FOR_VOLUME_DETACH, message));
        }
    };
    if attached.is_empty() {
        return None;
    }
    let message = attached.message(since);
    let what = message.lines().skip(1).collect::<Vec<_>>().join("; ");
    decision.wait(Wait::on(own::WAITING_FOR_VOLUME_DETACH, what).since(since.timestamp())).again_in(AGAIN);
    end_of(decision, since, look.object.spec.deletion.node_volume_detach_timeout_seconds, look.now);
    Some(waiting(own::WAITING_FOR_VOLUME_DETACH, message))
}

/// Deletes the Node; `None` once it is gone or the deletion timed out.
fn delete_node(
    look: &Look<MachineController>,
    decision: &mut Decision<MachineController>,
    node: String,
) -> Option<ConditionState> {
    if matches!(look.seen.node, ObservedNode::Missing) {
        return None;
    }
    let call = MachineCall::DeleteNode { node };
    if look.result_of(&call).is_some() {
        return None;
    }
    let since = look.object.metadata.deletion_timestamp;
    let limit = look.object.spec.deletion.node_deletion_timeout_seconds;
    let Some(failure) = look.failure_of(&call) else {
        decision.call(call);
        return Some(waiting(own::DELETING_NODE, "Deleting Node"));
    };
    if is_over(since, limit, look.now) && look.now.duration_since(failure.since) >= TRIES {
        return None;
    }
    let why = failure.error.message.clone();
    decision.note(Note::warning(
        "FailedDeleteNode",
        "DeleteNode",
        format!("error deleting Machine's Node: {why}"),
    ));
    decision.call(call).wait(Wait::on(own::DELETING_NODE, why.clone()).since(failure.since));
    Some(waiting(own::DELETING_NODE, format!("Error deleting Node: {why}")))
}
