//! Status of a MachineSet.

use std::sync::Arc;

use capstan_capi_types::core::{
    Deprecated, Machine, MachineSet, MachineSetStatus, condition, machine, reason,
};
use capstan_object::kstatus::condition::RECONCILING;
use capstan_object::{ConditionStatus, Conditions};
use jiff::Timestamp;

use super::desired::is_pending_acknowledge;
use crate::conditions::{ConditionState, Counts, unfinished};
use crate::in_place::is_updating;
use crate::machine_deployment::status::{
    machines_ready, machines_up_to_date, missing, remediating, with_stale,
};
use crate::machines::versions;
use crate::selector::text;

/// The conditions of a set.
pub const CONDITIONS: &[&str] = &[
    condition::PAUSED,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::MACHINES_READY,
    condition::MACHINES_UP_TO_DATE,
    condition::REMEDIATING,
    condition::DELETING,
    RECONCILING,
];

pub struct StatusInputs<'a> {
    pub set: &'a MachineSet,
    pub machines: &'a [Arc<Machine>],
    /// Kinds of templates that do not exist.
    pub missing_templates: &'a [String],
    /// What blocks creating machines.
    pub obstacles: &'a [String],
    pub now: Timestamp,
}

pub fn counters(inputs: &StatusInputs<'_>, status: &mut MachineSetStatus) {
    let count = |kind: &str| {
        let holds = |machine: &&Arc<Machine>| {
            // A machine that is being updated in place counts as neither, regardless of its conditions.
            !is_updating(machine) && machine.status.conditions.is_condition_true(kind)
        };
        i32::try_from(inputs.machines.iter().filter(holds).count()).ok()
    };
    status.observed_generation = inputs.set.metadata.generation;
    status.selector = text(&inputs.set.spec.selector);
    status.replicas = i32::try_from(inputs.machines.len()).ok();
    status.ready_replicas = count(condition::READY);
    status.available_replicas = count(condition::AVAILABLE);
    status.up_to_date_replicas = count(machine::condition::UP_TO_DATE);
    status.versions = versions(inputs.machines);
    let labels = &inputs.set.spec.template.metadata.labels;
    let labelled = |machine: &&Arc<Machine>| {
        labels.iter().all(|(key, value)| machine.metadata.labels.get(key) == Some(value))
    };
    let labelled = inputs.machines.iter().filter(labelled).count();
    let deprecated = status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_with(Default::default);
    old.fully_labeled_replicas = i32::try_from(labelled).unwrap_or(i32::MAX);
    old.ready_replicas = status.ready_replicas.unwrap_or(0);
    old.available_replicas = status.available_replicas.unwrap_or(0);
}

/// All conditions but `Paused`.
pub fn conditions(inputs: &StatusInputs<'_>) -> Vec<(&'static str, ConditionState)> {
    vec![
        (condition::SCALING_UP, scaling_up(inputs)),
        (condition::SCALING_DOWN, scaling_down(inputs)),
        (condition::MACHINES_READY, machines_ready(inputs.machines)),
        (condition::MACHINES_UP_TO_DATE, machines_up_to_date(inputs.machines, inputs.now)),
        (condition::REMEDIATING, remediating(inputs.machines, "MachineSet")),
        (condition::DELETING, deleting(inputs)),
    ]
}

/// What the set still has to do to be as its spec says, from the counters in `status`.
pub(super) fn still_to_do(inputs: &StatusInputs<'_>, status: &MachineSetStatus) -> Option<ConditionState> {
    let Some(wanted) = inputs.set.spec.replicas else {
        return Some(unfinished(reason::WAITING_FOR_REPLICAS_SET, "Waiting for spec.replicas set"));
    };
    let counts = Counts {
        wanted,
        existing: status.replicas.unwrap_or(0),
        ready: status.ready_replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
    };
    counts.unfinished()
}

/// Desired replicas; 0 while being deleted.
fn wanted(inputs: &StatusInputs<'_>) -> Result<i32, ConditionState> {
    let replicas = inputs.set.spec.replicas.ok_or_else(|| {
        ConditionState::new(
            ConditionStatus::Unknown,
            reason::WAITING_FOR_REPLICAS_SET,
            "Waiting for spec.replicas set",
        )
    })?;
    Ok(if inputs.set.metadata.is_deleting() { 0 } else { replicas })
}

fn scaling_up(inputs: &StatusInputs<'_>) -> ConditionState {
    let wanted = match wanted(inputs) {
        Ok(wanted) => wanted,
        Err(state) => return state,
    };
    let existing = i32::try_from(inputs.machines.len()).unwrap_or(i32::MAX);
    let missing = missing(inputs.missing_templates);
    if existing >= wanted {
        let missing = missing.filter(|_| !inputs.set.metadata.is_deleting());
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return ConditionState::new(
            ConditionStatus::False,
            reason::NOT_SCALING_UP,
            message.unwrap_or_default(),
        );
    }
    let mut message = format!("Scaling up from {existing} to {wanted} replicas");
    let obstacles: Vec<String> =
        inputs.obstacles.iter().chain(&missing).map(|obstacle| format!("\n* {obstacle}")).collect();
    if !obstacles.is_empty() {
        message = format!("{message} is blocked because:{}", obstacles.concat());
    }
    ConditionState::new(ConditionStatus::True, reason::SCALING_UP, message)
}

fn scaling_down(inputs: &StatusInputs<'_>) -> ConditionState {
    let wanted = match wanted(inputs) {
        Ok(wanted) => wanted,
        Err(state) => return state,
    };
    let counted = inputs.machines.iter().filter(|machine| !is_pending_acknowledge(machine)).count();
    let existing = i32::try_from(counted).unwrap_or(i32::MAX);
    if existing <= wanted {
        return ConditionState::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let message =
        with_stale(format!("Scaling down from {existing} to {wanted} replicas"), inputs.machines, inputs.now);
    ConditionState::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

fn deleting(inputs: &StatusInputs<'_>) -> ConditionState {
    if !inputs.set.metadata.is_deleting() {
        return ConditionState::new(ConditionStatus::False, reason::NOT_DELETING, "");
    }
    let message = match inputs.machines.len() {
        0 => "Deletion completed".to_owned(),
        1 => with_stale("Deleting 1 Machine".to_owned(), inputs.machines, inputs.now),
        count => with_stale(format!("Deleting {count} Machines"), inputs.machines, inputs.now),
    };
    ConditionState::new(ConditionStatus::True, reason::DELETING, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition as reported, machine as named};

    fn inputs<'a>(
        set: &'a MachineSet,
        machines: &'a [Arc<Machine>],
        obstacles: &'a [String],
    ) -> StatusInputs<'a> {
        StatusInputs { set, machines, missing_templates: &[], obstacles, now: at(100) }
    }

    #[test]
    fn a_machine_being_updated_in_place_counts_as_existing_only() {
        let ready = |name: &str| {
            let mut machine = named(name);
            for kind in ["Ready", "Available", "UpToDate"] {
                machine.status.conditions.push(reported(kind, "True", "R", ""));
            }
            machine
        };
        let mut updating = ready("b");
        updating
            .metadata
            .annotations
            .insert(capstan_capi_types::core::annotation::UPDATE_IN_PROGRESS.to_owned(), String::new());
        let machines = [Arc::new(ready("a")), Arc::new(updating), Arc::new(named("c"))];
        let set = MachineSet::default();
        let mut status = MachineSetStatus::default();
        counters(&inputs(&set, &machines, &[]), &mut status);
        let counts =
            [status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas];
        assert_eq!(counts, [Some(3), Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn a_set_reports_what_blocks_scaling_up() {
        let mut set = MachineSet::default();
        set.spec.replicas = Some(2);
        let obstacles = ["the control plane is upgrading".to_owned()];
        let state = scaling_up(&inputs(&set, &[], &obstacles));
        assert_eq!(
            state.message,
            "Scaling up from 0 to 2 replicas is blocked because:\n* the control plane is upgrading"
        );
    }
}
