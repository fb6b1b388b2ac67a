//! Moves machines out of a failure domain that its cluster names no longer: one Machine at a time, and the next only when
//! all others run.

use std::sync::Arc;

use capstan_capi_types::core::{Machine, MachinePhase, label};

/// Control planes that a cluster needs so that one can be replaced without losing etcd.
const REPLACEABLE: usize = 3;

/// A machine in the failure domain.
#[derive(Debug, Clone, Default)]
pub struct Occupant {
    /// Name of the CloudStackMachine.
    pub name: String,
    pub machine: Option<Arc<Machine>>,
    /// The MachineSet whose template names the failure domain: it would put the replacement there again.
    pub pinned_by: Option<String>,
}

fn is_running(machine: &Machine) -> bool {
    machine.status.phase == Some(MachinePhase::Running)
}

fn is_control_plane(machine: &Machine) -> bool {
    machine.metadata.labels.contains_key(label::CONTROL_PLANE)
}

/// The Machine to delete next, or why none is deleted now. `members` are all Machines of the cluster.
pub(super) fn next<'a>(
    occupants: &'a [Occupant],
    members: &[Arc<Machine>],
) -> Result<&'a Arc<Machine>, String> {
    if let Some(going) = members.iter().find(|machine| machine.metadata.is_deleting()) {
        return Err(format!("Machine {} is being replaced", going.metadata.name));
    }
    let is_here = |machine: &Machine| {
        let here = occupants.iter().filter_map(|occupant| occupant.machine.as_ref());
        here.into_iter().any(|other| other.metadata.uid == machine.metadata.uid)
    };
    let unwell = members.iter().find(|machine| !is_here(machine) && !is_running(machine));
    if let Some(machine) = unwell {
        return Err(format!("Machine {} is not Running yet", machine.metadata.name));
    }
    let mut refused = None;
    let mut candidates = Vec::new();
    let control_planes = members.iter().filter(|machine| is_control_plane(machine)).count();
    for occupant in occupants {
        let Some(machine) = &occupant.machine else { continue };
        let owned = machine.metadata.owner_references.iter().any(|owner| owner.controller == Some(true));
        let why = match () {
            () if !owned => {
                Some("no controller replaces it: delete it when it is no longer needed".to_owned())
            }
            () if is_control_plane(machine) && control_planes < REPLACEABLE => Some(format!(
                "it is one of {control_planes} control planes: scale the control plane to {REPLACEABLE} first"
            )),
            () => occupant.pinned_by.as_ref().map(|set| {
                format!("the template of MachineSet {set} names this failure domain: change it there")
            }),
        };
        match why {
            Some(why) => refused = Some(format!("Machine {}: {why}", machine.metadata.name)),
            None => candidates.push(machine),
        }
    }
    // Those that do not run first, control planes last.
    candidates.sort_by_key(|machine| {
        (is_running(machine), is_control_plane(machine), machine.metadata.name.clone())
    });
    let none = || refused.unwrap_or_else(|| "delete or replace their Machines".to_owned());
    candidates.first().copied().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use capstan_object::{ObjectMeta, OwnerReference};
    use capstan_provider_kit::testing::now;

    use super::*;

    fn machine(name: &str, control_plane: bool, phase: MachinePhase) -> Arc<Machine> {
        let mut machine = Machine { metadata: ObjectMeta::named("ns", name), ..Machine::default() };
        machine.metadata.uid = name.to_owned();
        if control_plane {
            machine.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
        }
        let owner = Machine { metadata: ObjectMeta::named("ns", "owner"), ..Machine::default() };
        machine.metadata.owner_references.push(OwnerReference::controlled_by(&owner));
        machine.status.phase = Some(phase);
        Arc::new(machine)
    }

    fn here(machines: &[&Arc<Machine>]) -> Vec<Occupant> {
        let occupant = |machine: &&Arc<Machine>| Occupant {
            name: machine.metadata.name.clone(),
            machine: Some((*machine).clone()),
            pinned_by: None,
        };
        machines.iter().map(occupant).collect()
    }

    fn chosen(occupants: &[Occupant], members: &[Arc<Machine>]) -> String {
        next(occupants, members).map_or_else(|why| why, |machine| machine.metadata.name.clone())
    }

    #[test]
    fn machines_leave_one_by_one_workers_first() {
        use MachinePhase::{Provisioning, Running};
        let (a, b, c) =
            (machine("a", true, Running), machine("b", true, Running), machine("c", true, Running));
        let (w, x) = (machine("w", false, Running), machine("x", false, Running));
        let all = vec![a.clone(), b.clone(), c.clone(), w.clone(), x.clone()];
        assert_eq!(chosen(&here(&[&a, &w]), &all), "w");
        assert_eq!(chosen(&here(&[&a]), &all), "a");
        let broken = machine("y", false, Provisioning);
        let with_broken = [all.clone(), vec![broken.clone()]].concat();
        assert_eq!(chosen(&here(&[&w, &broken]), &with_broken), "y");
        assert_eq!(chosen(&here(&[&w]), &with_broken), "Machine y is not Running yet");
        let mut going = (*x).clone();
        going.metadata.deletion_timestamp = Some(now().into());
        let replacing = vec![a.clone(), w.clone(), Arc::new(going)];
        assert_eq!(chosen(&here(&[&w]), &replacing), "Machine x is being replaced");
        assert!(chosen(&here(&[&a]), &[a.clone(), w.clone()]).contains("scale the control plane to 3"));
        let mut pinned = here(&[&w]);
        pinned[0].pinned_by = Some("set".to_owned());
        assert!(chosen(&pinned, &all).contains("MachineSet set"));
        let mut alone = (*w).clone();
        alone.metadata.owner_references.clear();
        assert!(chosen(&here(&[&Arc::new(alone)]), &all).contains("no controller replaces it"));
    }
}
