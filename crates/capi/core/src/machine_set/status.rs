//! Status of a MachineSet.

use std::sync::Arc;

use capstan_capi_types::core::{
    Deprecated, Machine, MachineSet, MachineSetStatus, condition, machine, reason,
};
use capstan_object::{ConditionStatus, Conditions};
use jiff::Timestamp;

use super::desired::is_pending_acknowledge;
use crate::conditions::Verdict;
use crate::machine_deployment::status::{
    machines_ready, machines_up_to_date, missing, remediating, with_stale,
};
use crate::machines::{is_updating_in_place, versions};
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
];

/// Inputs of the status.
pub struct Facts<'a> {
    pub set: &'a MachineSet,
    pub machines: &'a [Arc<Machine>],
    /// Kinds of templates that do not exist.
    pub missing_templates: &'a [String],
    /// What blocks creating machines.
    pub obstacles: &'a [String],
    pub now: Timestamp,
}

/// Counts.
pub fn counters(facts: &Facts<'_>, status: &mut MachineSetStatus) {
    let count = |kind: &str| {
        let holds = |machine: &&Arc<Machine>| {
            // A machine that is being updated in place counts as neither, whatever its conditions say.
            !is_updating_in_place(machine) && machine.status.conditions.is_condition_true(kind)
        };
        i32::try_from(facts.machines.iter().filter(holds).count()).ok()
    };
    status.observed_generation = facts.set.metadata.generation;
    status.selector = text(&facts.set.spec.selector);
    status.replicas = i32::try_from(facts.machines.len()).ok();
    status.ready_replicas = count(condition::READY);
    status.available_replicas = count(condition::AVAILABLE);
    status.up_to_date_replicas = count(machine::condition::UP_TO_DATE);
    status.versions = versions(facts.machines);
    let labels = &facts.set.spec.template.metadata.labels;
    let labelled = |machine: &&Arc<Machine>| {
        labels.iter().all(|(key, value)| machine.metadata.labels.get(key) == Some(value))
    };
    let labelled = facts.machines.iter().filter(labelled).count();
    let deprecated = status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_with(Default::default);
    old.fully_labeled_replicas = i32::try_from(labelled).unwrap_or(i32::MAX);
    old.ready_replicas = status.ready_replicas.unwrap_or(0);
    old.available_replicas = status.available_replicas.unwrap_or(0);
}

/// All conditions but `Paused`.
pub fn conditions(facts: &Facts<'_>) -> Vec<(&'static str, Verdict)> {
    vec![
        (condition::SCALING_UP, scaling_up(facts)),
        (condition::SCALING_DOWN, scaling_down(facts)),
        (condition::MACHINES_READY, machines_ready(facts.machines)),
        (condition::MACHINES_UP_TO_DATE, machines_up_to_date(facts.machines, facts.now)),
        (condition::REMEDIATING, remediating(facts.machines, "MachineSet")),
        (condition::DELETING, deleting(facts)),
    ]
}

/// Desired replicas; 0 while being deleted.
fn wanted(facts: &Facts<'_>) -> Result<i32, Verdict> {
    let replicas = facts.set.spec.replicas.ok_or_else(|| {
        Verdict::new(
            ConditionStatus::Unknown,
            reason::WAITING_FOR_REPLICAS_SET,
            "Waiting for spec.replicas set",
        )
    })?;
    Ok(if facts.set.metadata.is_deleting() { 0 } else { replicas })
}

fn scaling_up(facts: &Facts<'_>) -> Verdict {
    let wanted = match wanted(facts) {
        Ok(wanted) => wanted,
        Err(verdict) => return verdict,
    };
    let existing = i32::try_from(facts.machines.len()).unwrap_or(i32::MAX);
    let missing = missing(facts.missing_templates);
    if existing >= wanted {
        let missing = missing.filter(|_| !facts.set.metadata.is_deleting());
        let message = missing.map(|missing| format!("Scaling up would be blocked because {missing}"));
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_UP, message.unwrap_or_default());
    }
    let mut message = format!("Scaling up from {existing} to {wanted} replicas");
    let obstacles: Vec<String> =
        facts.obstacles.iter().chain(&missing).map(|obstacle| format!("\n* {obstacle}")).collect();
    if !obstacles.is_empty() {
        message = format!("{message} is blocked because:{}", obstacles.concat());
    }
    Verdict::new(ConditionStatus::True, reason::SCALING_UP, message)
}

fn scaling_down(facts: &Facts<'_>) -> Verdict {
    let wanted = match wanted(facts) {
        Ok(wanted) => wanted,
        Err(verdict) => return verdict,
    };
    let counted = facts.machines.iter().filter(|machine| !is_pending_acknowledge(machine)).count();
    let existing = i32::try_from(counted).unwrap_or(i32::MAX);
    if existing <= wanted {
        return Verdict::new(ConditionStatus::False, reason::NOT_SCALING_DOWN, "");
    }
    let message =
        with_stale(format!("Scaling down from {existing} to {wanted} replicas"), facts.machines, facts.now);
    Verdict::new(ConditionStatus::True, reason::SCALING_DOWN, message)
}

fn deleting(facts: &Facts<'_>) -> Verdict {
    if !facts.set.metadata.is_deleting() {
        return Verdict::new(ConditionStatus::False, reason::NOT_DELETING, "");
    }
    let message = match facts.machines.len() {
        0 => "Deletion completed".to_owned(),
        1 => with_stale("Deleting 1 Machine".to_owned(), facts.machines, facts.now),
        count => with_stale(format!("Deleting {count} Machines"), facts.machines, facts.now),
    };
    Verdict::new(ConditionStatus::True, reason::DELETING, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition as reported, machine as named};

    fn facts_of<'a>(set: &'a MachineSet, machines: &'a [Arc<Machine>], obstacles: &'a [String]) -> Facts<'a> {
        Facts { set, machines, missing_templates: &[], obstacles, now: at(100) }
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
        counters(&facts_of(&set, &machines, &[]), &mut status);
        let counts =
            [status.replicas, status.ready_replicas, status.available_replicas, status.up_to_date_replicas];
        assert_eq!(counts, [Some(3), Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn a_set_says_what_keeps_it_from_growing() {
        let mut set = MachineSet::default();
        set.spec.replicas = Some(2);
        let obstacles = ["the control plane is upgrading".to_owned()];
        let verdict = scaling_up(&facts_of(&set, &[], &obstacles));
        assert_eq!(
            verdict.message,
            "Scaling up from 0 to 2 replicas is blocked because:\n* the control plane is upgrading"
        );
    }
}
