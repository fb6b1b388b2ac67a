//! Status of a MachineDeployment.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_capi_types::core::machine_deployment::reason as own_reason;
use capstan_capi_types::core::{
    Deprecated, Machine, MachineDeployment, MachineDeploymentPhase, MachineDeploymentStatus, MachineSet,
    condition, machine, reason,
};
use capstan_object::kstatus::condition::RECONCILING;
use capstan_object::{ConditionStatus, Conditions, IntOrString};
use jiff::{SignedDuration, Timestamp};

use super::rollout::{Strategy, max_unavailable};
use crate::conditions::{ConditionState, Reasons, aggregate};
use crate::machines::{
    self, added_versions, is_to_be_remediated, sources, stale_deletions, unhealthy_message,
};
use crate::selector::text;

/// A machine younger than this may lack the `UpToDate` condition.
pub const UP_TO_DATE_GRACE: SignedDuration = SignedDuration::from_secs(10);

/// The conditions of a deployment.
pub const CONDITIONS: &[&str] = &[
    condition::PAUSED,
    condition::AVAILABLE,
    condition::MACHINES_READY,
    condition::MACHINES_UP_TO_DATE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
    condition::DELETING,
    RECONCILING,
];

pub struct StatusInputs<'a> {
    pub deployment: &'a MachineDeployment,
    /// How it replaces machines.
    pub strategy: &'a Strategy,
    pub sets: &'a [Arc<MachineSet>],
    pub machines: &'a [Arc<Machine>],
    /// Kinds of templates that do not exist.
    pub missing_templates: &'a [String],
    pub now: Timestamp,
}

/// Counts and phase.
pub fn counters(inputs: &StatusInputs<'_>, status: &mut MachineDeploymentStatus) {
    let total = |count: fn(&MachineSet) -> Option<i32>| {
        inputs.sets.iter().filter_map(|set| count(set)).reduce(|a, b| a + b)
    };
    status.observed_generation = inputs.deployment.metadata.generation;
    status.selector = text(&inputs.deployment.spec.selector);
    status.replicas = total(|set| set.status.replicas);
    status.ready_replicas = total(|set| set.status.ready_replicas);
    status.available_replicas = total(|set| set.status.available_replicas);
    status.up_to_date_replicas = total(|set| set.status.up_to_date_replicas);
    status.versions = added_versions(inputs.sets.iter().flat_map(|set| set.status.versions.clone()));
    status.phase = Some(phase(inputs));
    let wanted: i32 = inputs.sets.iter().filter_map(|set| set.spec.replicas).sum();
    let available = status.available_replicas.unwrap_or(0);
    let deprecated = status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_with(Default::default);
    old.updated_replicas = status.up_to_date_replicas.unwrap_or(0);
    old.ready_replicas = status.ready_replicas.unwrap_or(0);
    old.available_replicas = available;
    old.unavailable_replicas = (wanted - available).max(0);
}

fn existing(inputs: &StatusInputs<'_>) -> i32 {
    inputs.sets.iter().filter_map(|set| set.status.replicas).sum()
}

fn phase(inputs: &StatusInputs<'_>) -> MachineDeploymentPhase {
    let Some(desired) = inputs.deployment.spec.replicas else { return MachineDeploymentPhase::Unknown };
    if inputs.deployment.metadata.is_deleting() {
        return MachineDeploymentPhase::ScalingDown;
    }
    match existing(inputs).cmp(&desired) {
        std::cmp::Ordering::Less => MachineDeploymentPhase::ScalingUp,
        std::cmp::Ordering::Equal => MachineDeploymentPhase::Running,
        std::cmp::Ordering::Greater => MachineDeploymentPhase::ScalingDown,
    }
}

/// Sets all conditions but `Paused`, from the inputs and the counters in `status`.
pub fn conditions(
    inputs: &StatusInputs<'_>,
    status: &MachineDeploymentStatus,
) -> Vec<(&'static str, ConditionState)> {
    vec![
        (condition::AVAILABLE, available(inputs, status)),
        (condition::ROLLING_OUT, rolling_out(inputs.machines)),
        (condition::SCALING_UP, scaling_up(inputs)),
        (condition::SCALING_DOWN, scaling_down(inputs)),
        (condition::MACHINES_READY, machines_ready(inputs.machines)),
        (condition::MACHINES_UP_TO_DATE, machines_up_to_date(inputs.machines, inputs.now)),
        (condition::REMEDIATING, remediating(inputs.machines, "MachineDeployment/MachineSet")),
        (condition::DELETING, deleting(inputs)),
    ]
}

fn replicas_not_set() -> ConditionState {
    ConditionState::new(
        ConditionStatus::Unknown,
        reason::WAITING_FOR_REPLICAS_SET,
        "Waiting for spec.replicas set",
    )
}

fn available(inputs: &StatusInputs<'_>, status: &MachineDeploymentStatus) -> ConditionState {
    let Some(desired) = inputs.deployment.spec.replicas else { return replicas_not_set() };
    let Some(available) = status.available_replicas else {
        let reason = own_reason::WAITING_FOR_AVAILABLE_REPLICAS_SET;
        return ConditionState::new(
            ConditionStatus::Unknown,
            reason,
            "Waiting for status.availableReplicas set",
        );
    };
    let needed = desired - max_unavailable(inputs.strategy, desired);
    if available >= needed {
        return ConditionState::new(ConditionStatus::True, reason::AVAILABLE, "");
    }
    let message = if inputs.deployment.metadata.is_deleting() {
        "Deletion in progress".to_owned()
    } else {
        let bound = match inputs.strategy {
            Strategy::RollingUpdate { max_unavailable, .. } => {
                let bound = match max_unavailable {
                    IntOrString::Int(count) => count.to_string(),
                    IntOrString::String(text) => text.clone(),
                };
                format!(" (spec.strategy.rollout.maxUnavailable is {bound}, spec.replicas is {desired})")
            }
            Strategy::OnDelete => String::new(),
        };
        format!("{available} available replicas, at least {needed} required{bound}")
    };
    ConditionState::new(ConditionStatus::False, reason::NOT_AVAILABLE, message)
}

pub fn rolling_out(machines: &[Arc<Machine>]) -> ConditionState {
    let outdated: Vec<_> = machines
        .iter()
        .filter_map(|machine| machine.status.conditions.condition(machine::condition::UP_TO_DATE))
        .filter(|condition| condition.status == ConditionStatus::False)
        .collect();
    if outdated.is_empty() {
        return ConditionState::new(ConditionStatus::False, reason::NOT_ROLLING_OUT, "");
    }
    let mut reasons: Vec<&str> = outdated
        .iter()
        .filter(|condition| !condition.message.is_empty())
        .flat_map(|condition| condition.message.split('\n'))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    reasons.sort_by_key(|reason| !reason.starts_with("* Version"));
    let mut message = format!("Rolling out {} not up-to-date replicas", outdated.len());
    for reason in reasons {
        message.push('\n');
        message.push_str(reason);
    }
    ConditionState::new(ConditionStatus::True, reason::ROLLING_OUT, message)
}

/// `RollingOut` of a rollout that something blocks.
pub fn blocked(state: ConditionState, why: &str) -> ConditionState {
    let message = match state.message.is_empty() {
        true => format!("Rollout is blocked\n* {why}"),
        false => format!("{}\n* {why}", state.message),
    };
    ConditionState::new(ConditionStatus::True, reason::ROLLING_OUT, message)
}

/// Desired replicas; 0 while being deleted.
fn wanted(inputs: &StatusInputs<'_>) -> Option<i32> {
    let replicas = inputs.deployment.spec.replicas?;
    Some(if inputs.deployment.metadata.is_deleting() { 0 } else { replicas })
}

/// Message about missing templates.
pub fn missing(kinds: &[String]) -> Option<String> {
    match kinds {
        [] => None,
        [kind] => Some(format!("{kind} does not exist")),
        kinds => Some(format!("{} do not exist", kinds.join(" and "))),
    }
}

fn scaling_up(inputs: &StatusInputs<'_>) -> ConditionState {
    let Some(wanted) = wanted(inputs) else { return replicas_not_set() };
    let existing = existing(inputs);
    let missing = missing(inputs.missing_templates);
    if existing >= wanted {
        let missing = missing.filter(|_| !inputs.deployment.metadata.is_deleting());
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return ConditionState::new(
            ConditionStatus::False,
            reason::NOT_SCALING_UP,
            message.unwrap_or_default(),
        );
    }
    let blocked = missing.map(|missing| format!(" is blocked because {missing}")).unwrap_or_default();
    let message = format!("Scaling up from {existing} to {wanted} replicas{blocked}");
    ConditionState::new(ConditionStatus::True, reason::SCALING_UP, message)
}

fn scaling_down(inputs: &StatusInputs<'_>) -> ConditionState {
    let Some(wanted) = wanted(inputs) else { return replicas_not_set() };
    let existing = existing(inputs);
    if existing <= wanted {
        return ConditionState::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let message =
        with_stale(format!("Scaling down from {existing} to {wanted} replicas"), inputs.machines, inputs.now);
    ConditionState::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

/// Appends slow deletions to a message.
pub fn with_stale(message: String, machines: &[Arc<Machine>], now: Timestamp) -> String {
    let stale = stale_deletions(machines, now);
    if stale.is_empty() { message } else { format!("{message}\n* {stale}") }
}

pub fn machines_ready(machines: &[Arc<Machine>]) -> ConditionState {
    let reasons = Reasons { issue: reason::NOT_READY, unknown: reason::READY_UNKNOWN, fine: reason::READY };
    aggregate(&sources(machines), condition::READY, false, reasons).unwrap_or_else(no_replicas)
}

/// `MachinesUpToDate`. New machines without the condition are left out.
pub fn machines_up_to_date(machines: &[Arc<Machine>], now: Timestamp) -> ConditionState {
    let reasons = Reasons {
        issue: reason::NOT_UP_TO_DATE,
        unknown: reason::UP_TO_DATE_UNKNOWN,
        fine: reason::UP_TO_DATE,
    };
    let counted = machines.iter().filter(|machine| !in_up_to_date_grace(machine, now));
    aggregate(&sources(counted), machine::condition::UP_TO_DATE, false, reasons).unwrap_or_else(no_replicas)
}

/// The machine is too new to count without the `UpToDate` condition.
pub fn in_up_to_date_grace(machine: &Machine, now: Timestamp) -> bool {
    let created = machine.metadata.creation_timestamp;
    machine.status.conditions.condition(machine::condition::UP_TO_DATE).is_none()
        && created.is_some_and(|created| now.duration_since(created.timestamp()) <= UP_TO_DATE_GRACE)
}

fn no_replicas() -> ConditionState {
    ConditionState::new(ConditionStatus::True, reason::NO_REPLICAS, "")
}

pub fn remediating(machines: &[Arc<Machine>], owner: &str) -> ConditionState {
    let concerned = machines.iter().filter(|machine| is_to_be_remediated(machine));
    let reasons =
        Reasons { issue: reason::REMEDIATING, unknown: reason::REMEDIATING, fine: reason::REMEDIATING };
    match aggregate(&sources(concerned), machines::OWNER_REMEDIATED, false, reasons) {
        Some(state) => ConditionState::new(ConditionStatus::True, reason::REMEDIATING, state.message),
        None => ConditionState::new(
            ConditionStatus::False,
            reason::NOT_REMEDIATING,
            unhealthy_message(machines, owner),
        ),
    }
}

fn deleting(inputs: &StatusInputs<'_>) -> ConditionState {
    if !inputs.deployment.metadata.is_deleting() {
        return ConditionState::new(ConditionStatus::False, reason::NOT_DELETING, "");
    }
    let message = match (inputs.machines.len(), inputs.sets.len()) {
        (0, 0) => "Deletion completed".to_owned(),
        (0, sets) => format!("Deleting {sets} MachineSets"),
        (1, _) => with_stale("Deleting 1 Machine".to_owned(), inputs.machines, inputs.now),
        (count, _) => with_stale(format!("Deleting {count} Machines"), inputs.machines, inputs.now),
    };
    ConditionState::new(ConditionStatus::True, reason::DELETING, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition as reported, machine};

    fn set(replicas: i32, available: i32) -> Arc<MachineSet> {
        let mut set = MachineSet::default();
        set.spec.replicas = Some(replicas);
        set.status.replicas = Some(replicas);
        set.status.available_replicas = Some(available);
        Arc::new(set)
    }

    fn conditions_of(
        change: impl Fn(&mut MachineDeployment),
        sets: &[Arc<MachineSet>],
        machines: &[Arc<Machine>],
        missing: &[String],
    ) -> Vec<String> {
        let mut deployment = MachineDeployment::default();
        deployment.spec.replicas = Some(3);
        change(&mut deployment);
        let strategy =
            Strategy::RollingUpdate { max_surge: IntOrString::Int(1), max_unavailable: IntOrString::Int(0) };
        let inputs = StatusInputs {
            deployment: &deployment,
            strategy: &strategy,
            sets,
            machines,
            missing_templates: missing,
            now: at(100),
        };
        let mut status = MachineDeploymentStatus::default();
        counters(&inputs, &mut status);
        let lines = conditions(&inputs, &status);
        lines
            .into_iter()
            .map(|(kind, state)| format!("{kind}={:?} {}: {}", state.status, state.reason, state.message))
            .collect()
    }

    fn assert_contains(lines: &[String], expected: &str) {
        assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
    }

    #[test]
    fn conditions_of_a_deployment() {
        let one_down = conditions_of(|_| (), &[set(3, 2)], &[], &[]);
        assert_contains(
            &one_down,
            "Available=False NotAvailable: 2 available replicas, at least 3 required (spec.strategy.rollout.maxUnavailable is 0, spec.replicas is 3)",
        );
        assert_contains(&one_down, "ScalingUp=False NotScalingUp: ");
        let growing = conditions_of(|_| (), &[set(1, 1)], &[], &["SimMachineTemplate".to_owned()]);
        assert_contains(
            &growing,
            "ScalingUp=True ScalingUp: Scaling up from 1 to 3 replicas is blocked because SimMachineTemplate does not exist",
        );
        let shrinking = conditions_of(|_| (), &[set(4, 4)], &[], &[]);
        assert_contains(&shrinking, "ScalingDown=True ScalingDown: Scaling down from 4 to 3 replicas");
        let fresh = conditions_of(|_| (), &[], &[], &[]);
        assert_contains(
            &fresh,
            "Available=Unknown WaitingForAvailableReplicasSet: Waiting for status.availableReplicas set",
        );
        assert_contains(&fresh, "MachinesReady=True NoReplicas: ");
        let going = conditions_of(
            |md| md.metadata.deletion_timestamp = Some(at(0).into()),
            &[set(3, 3)],
            &[Arc::new(machine("m"))],
            &[],
        );
        assert_contains(&going, "Deleting=True Deleting: Deleting 1 Machine");
        assert_contains(&going, "ScalingDown=True ScalingDown: Scaling down from 3 to 0 replicas");
    }

    #[test]
    fn a_rollout_names_the_version_first() {
        let mut old = machine("old");
        let text = "* Failure domain a, b required\n* Version v1.32.0, v1.33.0 required";
        old.status.conditions.push(reported("UpToDate", "False", "NotUpToDate", text));
        let rolling = conditions_of(|_| (), &[set(3, 3)], &[Arc::new(old)], &[]);
        assert_contains(
            &rolling,
            "RollingOut=True RollingOut: Rolling out 1 not up-to-date replicas\n* Version v1.32.0, v1.33.0 required\n* Failure domain a, b required",
        );
    }

    #[test]
    fn a_new_machine_without_the_condition_is_ignored_for_ten_seconds() {
        let machines = [Arc::new(machine("m"))];
        assert_eq!(machines_up_to_date(&machines, at(10)).reason, reason::NO_REPLICAS);
        assert_eq!(machines_up_to_date(&machines, at(11)).reason, reason::UP_TO_DATE_UNKNOWN);
    }
}
