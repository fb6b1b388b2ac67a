//! The status of a machine config.

use capstan_capi_core::conditions::{ConditionState, set_state};
use capstan_controller::{Decision, Look};
use capstan_object::ConditionStatus::{False, True};
use capstan_object::Conditions as _;

use super::{MachineConfigs, User};
use crate::cluster::condition::READY;

pub(super) fn decide(look: &Look<MachineConfigs>) -> Decision<MachineConfigs> {
    let mut decision = Decision::rest(look);
    if look.object.metadata.is_deleting() || look.paused.is_some() {
        return decision;
    }
    let state = match look.seen.iter().find(|user| !has_taken_up(user)) {
        Some(User { cluster, .. }) => {
            let message = format!("Cluster {} is not ready with it", cluster.metadata.key());
            ConditionState::new(False, "ClusterNotReady", message)
        }
        None if look.seen.is_empty() => ConditionState::new(True, "NotUsed", ""),
        None => ConditionState::new(True, "Ready", ""),
    };
    let status = &mut decision.object.status;
    status.observed_generation = look.object.metadata.generation;
    set_state(look, &mut status.conditions, READY, state, None);
    decision
}

/// The cluster is as this generation of its configs says. One that is being deleted takes up nothing any more.
fn has_taken_up(user: &User) -> bool {
    let User { cluster, generations } = user;
    let status = &cluster.status;
    cluster.metadata.is_deleting()
        || status.observed_generation == cluster.metadata.generation
            && status.reconciled_generation == cluster.metadata.generation
            && status.children_reconciled_generation == *generations
            && status.conditions.is_condition_true(READY)
}
