//! Which machine is deleted, and which failure domain a new one gets.

use std::collections::BTreeMap;

use capstan_capi_types::core::annotation;

use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

/// Failure domains for control plane machines, sorted by name.
fn domains(plane: &ControlPlaneState) -> Vec<&str> {
    let mut names: Vec<&str> = plane
        .cluster
        .status
        .failure_domains
        .iter()
        .filter(|domain| domain.control_plane == Some(true))
        .map(|domain| domain.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

/// Machines per failure domain: those that match `counting`, and all.
fn counts<'a>(
    domains: &[&'a str],
    all: &[ControlPlaneMachine],
    counting: impl Fn(&ControlPlaneMachine) -> bool,
) -> BTreeMap<&'a str, (usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = domains.iter().map(|name| (*name, (0, 0))).collect();
    for member in all {
        if let Some((first, total)) = counts.get_mut(member.machine.spec.failure_domain.as_str()) {
            *first += usize::from(counting(member));
            *total += 1;
        }
    }
    counts
}

/// The failure domain with the fewest up-to-date machines, then with the fewest machines; empty if there are no
/// failure domains.
pub fn failure_domain_for_new_machine(plane: &ControlPlaneState, outdated: &[String]) -> String {
    let counts = counts(&domains(plane), &plane.machines, |member| {
        !outdated.contains(&member.machine.metadata.name) && !member.machine.metadata.is_deleting()
    });
    let fewest = counts.iter().min_by_key(|(name, count)| (**count, **name));
    fewest.map(|(name, _)| (*name).to_owned()).unwrap_or_default()
}

/// The machine to delete next: marked by the user, then outdated and unhealthy, then outdated, then any; of these
/// the one in the fullest failure domain, and of those the oldest. Machines that are already being deleted do not
/// count.
pub fn next_machine_to_delete<'a>(
    plane: &'a ControlPlaneState,
    outdated: &[String],
) -> Option<&'a ControlPlaneMachine> {
    let is_outdated = |member: &ControlPlaneMachine| outdated.contains(&member.machine.metadata.name);
    let is_marked = |member: &ControlPlaneMachine| {
        member.machine.metadata.annotations.contains_key(annotation::DELETE_MACHINE)
    };
    let choices: [&dyn Fn(&ControlPlaneMachine) -> bool; 5] = [
        &|member| is_outdated(member) && is_marked(member),
        &is_marked,
        &|member| is_outdated(member) && !plane.components_healthy(&member.machine),
        &is_outdated,
        &|_| true,
    ];
    let standing = |member: &&ControlPlaneMachine| !member.machine.metadata.is_deleting();
    let eligible = choices.iter().find(|choice| plane.machines.iter().filter(standing).any(choice))?;
    let domains = domains(plane);
    let candidates: Vec<&ControlPlaneMachine> =
        plane.machines.iter().filter(standing).filter(|m| eligible(m)).collect();

    let homeless: Vec<&ControlPlaneMachine> = candidates
        .iter()
        .copied()
        .filter(|member| !domains.contains(&member.machine.spec.failure_domain.as_str()))
        .collect();
    let pool = if domains.is_empty() || !homeless.is_empty() {
        // A machine in a failure domain that no longer exists is deleted first.
        if homeless.is_empty() { candidates } else { homeless }
    } else {
        let counts = counts(&domains, &plane.machines, |member| eligible(member));
        let fullest = counts
            .iter()
            .filter(|(_, (first, _))| *first > 0)
            .max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name)))
            .map(|(name, _)| *name)?;
        candidates.into_iter().filter(|member| member.machine.spec.failure_domain == fullest).collect()
    };
    pool.into_iter().min_by_key(|member| {
        let meta = &member.machine.metadata;
        (meta.creation_timestamp, meta.name.clone())
    })
}
