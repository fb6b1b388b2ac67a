//! Deletes a pool: infrastructure and bootstrap config, Machines, Nodes, then the finalizer.

use std::time::Duration;

use capstan_capi_types::core::machine_pool::FINALIZER;
use capstan_capi_types::core::{Cluster, MachinePool, reason};
use capstan_controller::{Effect, Wait};
use capstan_object::ConditionStatus;
use jiff::{SignedDuration, Timestamp};

use super::decide::{Decided, Looked};
use super::nodes;
use super::observed::ObservedNodes;
use crate::conditions::{ConditionState, shortened};
use crate::contract::Lookup;
use crate::workload::Node;

const AGAIN: Duration = Duration::from_secs(20);

/// Takes the next step of the deletion. Returns the `Deleting` condition.
pub(super) fn next(look: &Looked, decision: &mut Decided, cluster: &Cluster) -> ConditionState {
    let waiting = |message: String| ConditionState::new(ConditionStatus::True, reason::DELETING, message);
    let mut left = Vec::new();
    // The provider drains and deletes the machines of its pool; none of them boots anymore.
    for found in [&look.seen.infrastructure, &look.seen.bootstrap] {
        match found {
            Lookup::NotReferenced | Lookup::Missing => {}
            // Without certainty that the earlier objects are gone, nothing else is deleted.
            Lookup::Unusable(why) => {
                return ConditionState::new(ConditionStatus::True, reason::INTERNAL_ERROR, why.clone());
            }
            Lookup::Object(object) => {
                if !object.metadata.is_deleting() {
                    decision.then(Effect::delete_seen(object.reference(), &object.metadata));
                }
                let what = format!("{} {} to be deleted", object.kind.kind, object.metadata.name);
                decision.wait(Wait::on("WaitingForDeletion", what).object(object.reference()));
                left.push(object.kind.kind.to_string());
            }
        }
    }
    if !left.is_empty() {
        return waiting(format!("Waiting for {} to be deleted", left.join(", ")));
    }
    if !look.seen.machines.is_empty() {
        // Of infrastructure that is gone without its Machines.
        for machine in look.seen.machines.iter().filter(|machine| !machine.metadata.is_deleting()) {
            decision.best_effort(Effect::delete(machine.as_ref()));
        }
        let names: Vec<_> = look.seen.machines.iter().map(|machine| machine.metadata.name.as_str()).collect();
        let what = format!("Machines {} to be deleted", shortened(&names, 5));
        decision.wait(Wait::on("WaitingForMachines", what.as_str()));
        return waiting(format!("Waiting for {what}"));
    }
    if let Some(state) = delete_nodes(look, decision, cluster) {
        return state;
    }
    decision.remove_finalizer(FINALIZER);
    ConditionState::new(ConditionStatus::True, reason::DELETION_COMPLETED, "Deletion completed")
}

/// Deletes the Nodes; `None` once they are gone, the time for it is over, or their cluster goes too.
fn delete_nodes(look: &Looked, decision: &mut Decided, cluster: &Cluster) -> Option<ConditionState> {
    let pool = &look.object;
    if cluster.metadata.is_deleting() || pool.status.node_refs.is_empty() || is_over(pool, look.now) {
        return None;
    }
    let waiting = |message: String| ConditionState::new(ConditionStatus::True, reason::DELETING, message);
    match &look.seen.nodes {
        ObservedNodes::NotAsked => None,
        ObservedNodes::NotConnected(why) => {
            decision.wait(Wait::on("DeletingNodes", why.clone())).again_in(AGAIN);
            if let Some(end) = end(pool) {
                decision.again_at(look.now, end);
            }
            Some(waiting(format!("Error deleting Nodes: {why}")))
        }
        ObservedNodes::Known { referenced, .. } => {
            let ours: Vec<_> = referenced.iter().filter(|node| is_ours(node, pool)).collect();
            if ours.is_empty() {
                return None;
            }
            let names: Vec<_> = ours.iter().map(|node| node.metadata.name.as_str()).collect();
            let message = format!("Deleting Nodes {}", shortened(&names, 5));
            let called = decision.effects.len();
            for node in &ours {
                nodes::delete(look, decision, node);
            }
            // All were deleted in this reconcile; the cache shows it later.
            if decision.effects.len() == called {
                return None;
            }
            decision.again_in(AGAIN);
            Some(waiting(message))
        }
    }
}

/// A reference that somebody changed must not have another group's Node deleted.
fn is_ours(node: &Node, pool: &MachinePool) -> bool {
    pool.spec.provider_id_list.contains(&node.spec.provider_id)
}

fn end(pool: &MachinePool) -> Option<Timestamp> {
    let limit = pool.spec.template.spec.deletion.node_deletion_timeout_seconds.filter(|limit| *limit > 0)?;
    let since = pool.metadata.deletion_timestamp?.timestamp();
    since.checked_add(SignedDuration::from_secs(limit.into())).ok()
}

/// The time for deleting Nodes is over.
fn is_over(pool: &MachinePool, now: Timestamp) -> bool {
    end(pool).is_some_and(|end| end < now)
}
