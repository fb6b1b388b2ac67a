//! Functions over machines that several controllers use.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_capi_types::core::machine::{condition as machine_condition, reason as machine_reason};
use capstan_capi_types::core::{Machine, StatusVersion, condition, label, reason};
use capstan_controller::{Effect, ObjectRef};
use capstan_object::{Condition, ConditionStatus, Conditions, Time};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::conditions::{self, ConditionState, Fallback, Source, shortened};
use crate::contract::Lookup;

/// The condition in which an owner reports the progress of a remediation.
pub const OWNER_REMEDIATED: &str = machine_condition::OWNER_REMEDIATED;

/// Deletions older than this are mentioned in conditions.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Drains older than this are mentioned in conditions.
const SLOW_DRAIN_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// The condition exists and has the status.
pub fn condition_is(machine: &Machine, kind: &str, status: ConditionStatus) -> bool {
    machine.status.conditions.condition(kind).is_some_and(|condition| condition.status == status)
}

/// `BootstrapConfigReady` of a machine, or of a pool, whose reference to a bootstrap config of this kind leads there.
/// `created` is what its status says about the data Secret.
pub fn bootstrap_ready(
    found: &Lookup,
    kind: &str,
    created: bool,
    deleting: bool,
) -> (ConditionState, Option<Time>) {
    use ConditionStatus::{False, True, Unknown};
    let state = match found {
        Lookup::NotReferenced => ConditionState::new(True, machine_reason::DATA_SECRET_PROVIDED, ""),
        Lookup::Object(object) => {
            let message = format!("{kind} status.initialization.dataSecretCreated is {created}");
            let fallback =
                Fallback { flag: created, holds: reason::READY, fails: reason::NOT_READY, message };
            return conditions::mirrored(object.conditions(), condition::READY, fallback);
        }
        Lookup::Unusable(why) => ConditionState::new(Unknown, reason::INTERNAL_ERROR, why.clone()),
        Lookup::Missing if created && deleting => {
            ConditionState::new(False, reason::OBJECT_DELETED, format!("{kind} has been deleted"))
        }
        Lookup::Missing => {
            ConditionState::new(False, reason::OBJECT_DOES_NOT_EXIST, format!("{kind} does not exist"))
        }
    };
    (state, None)
}

/// Sets a condition of a machine, or removes it; `None` if nothing changes.
pub fn set_condition<K>(
    machine: &Machine,
    kind: &str,
    state: Option<&ConditionState>,
    now: Timestamp,
) -> Option<Effect<K>> {
    set_conditions(machine, [(kind, state)], now)
}

/// Sets or removes several conditions of a machine in one patch; `None` if nothing changes.
pub fn set_conditions<'a, K>(
    machine: &Machine,
    lines: impl IntoIterator<Item = (&'a str, Option<&'a ConditionState>)>,
    now: Timestamp,
) -> Option<Effect<K>> {
    let mut conditions = machine.status.conditions.clone();
    for (kind, state) in lines {
        match state {
            Some(state) => {
                let condition = Condition {
                    kind: kind.to_owned(),
                    status: state.status,
                    observed_generation: Some(machine.metadata.generation)
                        .filter(|generation| *generation != 0),
                    last_transition_time: now.into(),
                    reason: state.reason.clone(),
                    message: state.message.clone(),
                };
                crate::conditions::set(&mut conditions, condition);
            }
            None => conditions.retain(|condition| condition.kind != kind),
        }
    }
    if conditions == machine.status.conditions {
        return None;
    }
    // Guarded by resourceVersion: the list is replaced as a whole.
    let status = json!({"conditions": conditions});
    Some(Effect::merge_status_guarded(ObjectRef::to(machine), &machine.metadata, &status))
}

pub fn sources<'a>(machines: impl IntoIterator<Item = &'a Arc<Machine>>) -> Vec<Source<'a>> {
    let source = |machine: &'a Arc<Machine>| Source {
        kind: "Machine",
        name: &machine.metadata.name,
        control_plane: machine.metadata.labels.contains_key(label::CONTROL_PLANE),
        conditions: &machine.status.conditions,
    };
    machines.into_iter().map(source).collect()
}

/// The machine failed its health check.
pub fn is_unhealthy(machine: &Machine) -> bool {
    condition_is(machine, machine_condition::HEALTH_CHECK_SUCCEEDED, ConditionStatus::False)
}

/// The machine failed its health check and its owner must replace it.
pub fn is_to_be_remediated(machine: &Machine) -> bool {
    is_unhealthy(machine)
        && condition_is(machine, machine_condition::OWNER_REMEDIATED, ConditionStatus::False)
}

/// Versions and their number of machines; the kubelet's version takes precedence over the spec.
pub fn versions<'a>(machines: impl IntoIterator<Item = &'a Arc<Machine>>) -> Vec<StatusVersion> {
    let version_of = |machine: &'a Arc<Machine>| {
        let reported = machine.status.node_info.as_ref().map(|info| info.kubelet_version.as_str());
        let version = reported.filter(|version| !version.is_empty()).unwrap_or(&machine.spec.version);
        StatusVersion { version: version.to_owned(), replicas: 1 }
    };
    added_versions(machines.into_iter().map(version_of))
}

/// Adds counts of equal versions, lowest version first.
pub fn added_versions(versions: impl IntoIterator<Item = StatusVersion>) -> Vec<StatusVersion> {
    let mut added: Vec<StatusVersion> = Vec::new();
    for version in versions.into_iter().filter(|version| !version.version.is_empty()) {
        match added.iter_mut().find(|known| known.version == version.version) {
            Some(known) => known.replicas += version.replicas,
            None => added.push(version),
        }
    }
    added.sort_by_key(|version| (parsed(&version.version), version.version.clone()));
    added
}

/// A Kubernetes version, with or without the `v`. Control planes of other providers may leave out the patch.
pub fn parsed(version: &str) -> Option<semver::Version> {
    capstan_capi_types::version::tolerant(version)
}

/// Message about machines whose deletion takes long, with the likely cause; empty if there are none.
pub fn stale_deletions(machines: &[Arc<Machine>], now: Timestamp) -> String {
    let older = |since: Option<capstan_object::Time>, limit| {
        since.is_some_and(|since| now.duration_since(since.timestamp()) > limit)
    };
    let mut names = BTreeSet::new();
    let mut causes = [
        ("cannot evict pod as it would violate the pod's disruption budget.", "PodDisruptionBudgets", false),
        ("deletionTimestamp set, but still not removed from the Node", "Pods not terminating", false),
        ("failed to evict Pod", "Pod eviction errors", false),
        ("waiting for completion", "Pods not completed yet", false),
    ];
    for machine in machines.iter().filter(|machine| older(machine.metadata.deletion_timestamp, STALE_AFTER)) {
        names.insert(machine.metadata.name.clone());
        let deleting = machine.status.conditions.condition(condition::DELETING);
        let drain_start =
            machine.status.deletion.as_ref().and_then(|deletion| deletion.node_drain_start_time);
        let drains = deleting.filter(|deleting| {
            deleting.is_true()
                && deleting.reason == machine_reason::DRAINING_NODE
                && older(drain_start, SLOW_DRAIN_AFTER)
        });
        for (text, _, found) in &mut causes {
            *found |= drains.is_some_and(|deleting| deleting.message.contains(*text));
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let causes: Vec<_> = causes.iter().filter(|(_, _, found)| *found).map(|(_, cause, _)| *cause).collect();
    let delay = if causes.is_empty() {
        String::new()
    } else {
        format!(", delay likely due to {}", causes.join(", "))
    };
    format!("{} in deletion since more than 15m{delay}", subject(&names))
}

/// Message about unhealthy machines that `owner` does not replace; empty if there are none.
pub fn unhealthy_message(machines: &[Arc<Machine>], owner: &str) -> String {
    let names: BTreeSet<_> = machines
        .iter()
        .filter(|machine| is_unhealthy(machine))
        .map(|machine| machine.metadata.name.clone())
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!("{} not healthy (not to be remediated by {owner})", subject(&names))
}

fn subject(names: &BTreeSet<String>) -> String {
    let listed: Vec<_> = names.iter().collect();
    let shown = shortened(&listed, 3);
    if names.len() == 1 { format!("Machine {shown} is") } else { format!("Machines {shown} are") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition, machine};

    #[test]
    fn versions_are_sorted_and_the_kubelets_takes_precedence() {
        let mut machines = vec![machine("a"), machine("b"), machine("c")];
        for (machine, version) in machines.iter_mut().zip(["v1.33.0", "v1.32.1", "v1.33.0"]) {
            machine.spec.version = version.to_owned();
        }
        machines[2].status.node_info = Some(capstan_capi_types::kubernetes::NodeSystemInfo {
            kubelet_version: "v1.32.1".to_owned(),
            ..Default::default()
        });
        let machines: Vec<_> = machines.into_iter().map(Arc::new).collect();
        let counted: Vec<_> =
            versions(&machines).into_iter().map(|version| (version.version, version.replicas)).collect();
        assert_eq!(counted, [("v1.32.1".to_owned(), 2), ("v1.33.0".to_owned(), 1)]);
    }

    #[test]
    fn a_deletion_that_takes_long_is_mentioned_with_its_cause() {
        let mut slow = machine("slow");
        slow.metadata.deletion_timestamp = Some(at(0).into());
        slow.status.deletion = Some(capstan_capi_types::core::MachineDeletionStatus {
            node_drain_start_time: Some(at(0).into()),
            ..Default::default()
        });
        slow.status.conditions.push(condition("Deleting", "True", "DrainingNode", "failed to evict Pod x"));
        let machines = [Arc::new(slow), Arc::new(machine("fine"))];
        assert_eq!(stale_deletions(&machines, at(15 * 60)), "");
        assert_eq!(
            stale_deletions(&machines, at(15 * 60 + 1)),
            "Machine slow is in deletion since more than 15m, delay likely due to Pod eviction errors"
        );
    }
}
