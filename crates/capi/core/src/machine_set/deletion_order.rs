//! Which machines a set deletes first.

use std::cmp::Reverse;
use std::sync::Arc;

use capstan_capi_types::core::machine::condition;
use capstan_capi_types::core::{Machine, MachineSetDeletionOrder, annotation};
use capstan_object::ConditionStatus;

use crate::in_place::is_updating;
use crate::machines::{condition_is, is_unhealthy};

/// Deletion priority, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// Already being deleted: it counts, so that no further one is deleted.
    Going,
    /// It has the delete-machine annotation.
    Asked,
    /// It is being updated in place.
    Updating,
    Unhealthy,
    /// No preference: the set's deletion order decides.
    None,
}

fn claim(machine: &Machine) -> Claim {
    if machine.metadata.is_deleting() {
        Claim::Going
    } else if machine.metadata.annotations.contains_key(annotation::DELETE_MACHINE) {
        Claim::Asked
    } else if is_updating(machine) {
        Claim::Updating
    } else if !is_healthy(machine) {
        Claim::Unhealthy
    } else {
        Claim::None
    }
}

/// It has a node, and neither the node nor a health check reports a problem.
fn is_healthy(machine: &Machine) -> bool {
    !machine.status.node_ref.name.is_empty()
        && !condition_is(machine, condition::NODE_HEALTHY, ConditionStatus::False)
        && !is_unhealthy(machine)
}

/// All machines in deletion order. Ties are broken by name, so the order is deterministic; `Random` means no more than
/// that, as upstream.
///
/// Upstream maps ages to a bounded range, where very old machines tie and are sorted by name; here ages are compared
/// exactly.
pub fn in_order(machines: &[Arc<Machine>], order: Option<MachineSetDeletionOrder>) -> Vec<Arc<Machine>> {
    let mut machines = machines.to_vec();
    machines.sort_by_key(|machine| {
        let created = machine.metadata.creation_timestamp;
        let claim = claim(machine);
        let by_age = claim == Claim::None;
        let oldest = created.filter(|_| by_age && order == Some(MachineSetDeletionOrder::Oldest));
        let newest = created.filter(|_| by_age && order == Some(MachineSetDeletionOrder::Newest));
        (claim, oldest, Reverse(newest), machine.metadata.name.clone())
    });
    machines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, condition as reported, machine};

    fn healthy(name: &str, created: i64) -> Machine {
        let mut machine = machine(name);
        machine.metadata.creation_timestamp = Some(at(created).into());
        machine.status.node_ref.name = format!("node-{name}");
        machine
    }

    fn with(mut machine: Machine, change: impl Fn(&mut Machine)) -> Machine {
        change(&mut machine);
        machine
    }

    #[test]
    fn priority_precedes_age_and_age_precedes_name() {
        let machines: Vec<_> = [
            healthy("a-middle", 20),
            healthy("b-old", 10),
            healthy("c-new", 30),
            with(healthy("d-unhealthy", 20), |m| {
                m.status.conditions.push(reported(condition::HEALTH_CHECK_SUCCEEDED, "False", "R", ""));
            }),
            with(healthy("e-no-node", 20), |m| m.status.node_ref.name.clear()),
            with(healthy("f-node-bad", 20), |m| {
                m.status.conditions.push(reported(condition::NODE_HEALTHY, "False", "R", ""));
            }),
            with(healthy("g-node-unknown", 25), |m| {
                m.status.conditions.push(reported(condition::NODE_HEALTHY, "Unknown", "R", ""));
            }),
            with(healthy("h-updating", 20), |m| {
                m.metadata.annotations.insert(annotation::UPDATE_IN_PROGRESS.to_owned(), String::new());
            }),
            with(healthy("i-asked", 20), |m| {
                m.metadata.annotations.insert(annotation::DELETE_MACHINE.to_owned(), "yes".to_owned());
            }),
            with(healthy("j-going", 20), |m| m.metadata.deletion_timestamp = Some(at(40).into())),
        ]
        .into_iter()
        .map(Arc::new)
        .collect();
        let claims = "j-going i-asked h-updating d-unhealthy e-no-node f-node-bad";
        for (order, rest) in [
            (None, "a-middle b-old c-new g-node-unknown"),
            (Some(MachineSetDeletionOrder::Random), "a-middle b-old c-new g-node-unknown"),
            (Some(MachineSetDeletionOrder::Oldest), "b-old a-middle g-node-unknown c-new"),
            (Some(MachineSetDeletionOrder::Newest), "c-new g-node-unknown a-middle b-old"),
        ] {
            let names: Vec<_> = in_order(&machines, order).iter().map(|m| m.metadata.name.clone()).collect();
            assert_eq!(names.join(" "), format!("{claims} {rest}"), "{order:?}");
        }
    }
}
