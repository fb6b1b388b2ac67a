//! What a cluster still has to do to be as its spec and its parts' specs say.

use capstan_capi_types::core::{cluster::condition as own, condition, reason};
use capstan_controller::Look;
use capstan_object::kstatus::Progress;
use capstan_object::{Condition, Object};

use super::ClusterController;
use super::observed::{has_topology, is_owned};
use crate::conditions::{ConditionState, part, unfinished};
use crate::contract::External;

/// Conditions that report a change while they are True.
const CHANGES: [&str; 4] =
    [condition::ROLLING_OUT, condition::SCALING_UP, condition::SCALING_DOWN, condition::REMEDIATING];

/// `conditions` are the new ones of the cluster.
pub(super) fn still_to_do(
    look: &Look<ClusterController>,
    conditions: &[Condition],
) -> Option<ConditionState> {
    let find = |kind: &str| conditions.iter().find(|condition| condition.kind == kind);
    let as_reported = |condition: &Condition| unfinished(&condition.reason, condition.message.clone());
    let change = || CHANGES.iter().filter_map(|kind| find(kind)).find(|condition| condition.is_true());
    let unavailable = || find(condition::AVAILABLE).filter(|available| !available.is_true());
    topology(look, find(own::TOPOLOGY_RECONCILED))
        .or_else(|| parts(look))
        .or_else(|| change().map(as_reported))
        .or_else(|| unavailable().map(as_reported))
}

/// The topology is applied by another controller, which may not have seen this generation.
fn topology(look: &Look<ClusterController>, reconciled: Option<&Condition>) -> Option<ConditionState> {
    if !has_topology(&look.object) {
        return None;
    }
    match reconciled {
        Some(condition) if !condition.is_true() => {
            Some(unfinished(&condition.reason, condition.message.clone()))
        }
        Some(condition) if condition.observed_generation == Some(look.object.metadata.generation) => None,
        _ => Some(unfinished(reason::NOT_UP_TO_DATE, "Waiting for the topology to be reconciled")),
    }
}

/// The objects that the cluster consists of.
fn parts(look: &Look<ClusterController>) -> Option<ConditionState> {
    let seen = &look.seen;
    let provided = [&seen.infrastructure, &seen.control_plane].into_iter();
    let provided = provided.filter_map(|found| found.object()).find_map(of_provider);
    let alone = seen.sets.iter().filter(|set| is_owned(&look.object, &set.metadata.owner_references));
    provided
        .or_else(|| {
            seen.deployments.iter().find_map(|object| {
                of_workers(&**object, object.status.observed_generation, &object.status.conditions)
            })
        })
        .or_else(|| {
            alone.into_iter().find_map(|object| {
                of_workers(&**object, object.status.observed_generation, &object.status.conditions)
            })
        })
}

fn of_provider(object: &External) -> Option<ConditionState> {
    let observed = object.value()["status"]["observedGeneration"].as_i64();
    let conditions = object.conditions().unwrap_or_default();
    let what = format!("{} {}", object.kind.kind, object.metadata.name);
    part(&what, Progress::from(&object.metadata, observed, &conditions))
}

fn of_workers<T: Object>(object: &T, observed: i64, conditions: &[Condition]) -> Option<ConditionState> {
    let what = format!("{} {}", T::KIND.kind, object.metadata().name);
    part(&what, Progress::from(object.metadata(), Some(observed), conditions))
}
