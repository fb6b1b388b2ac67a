//! What must hold before a machine is added or removed.

use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, condition};
use capstan_object::{ConditionStatus, Conditions};

use super::Plane;
use super::quorum::{Change, components_survive, etcd_survives};

/// Why nothing may be added or removed now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocked {
    /// What is in the way, for people.
    pub reasons: Vec<String>,
}

/// Whether a machine may be added (`adding`) or removed. `except` is not looked at: it is the one that goes.
pub fn check(plane: &Plane, adding: bool, except: Option<&str>) -> Result<(), Blocked> {
    if plane.machines.is_empty() {
        return Ok(());
    }
    let blocked = |reason: String| Err(Blocked { reasons: vec![reason] });
    let conditions = &plane.control_plane.status.conditions;
    if adding && !conditions.is_condition_true(condition::CERTIFICATES_AVAILABLE) {
        return blocked("the cluster's certificates are missing".to_owned());
    }
    let deleting: Vec<&str> = plane
        .machines
        .iter()
        .filter(|member| member.machine.metadata.is_deleting())
        .map(|member| member.machine.metadata.name.as_str())
        .collect();
    if !deleting.is_empty() {
        return blocked(format!("machine {} is being deleted", deleting.join(", ")));
    }
    let reasons = unhealthy(plane, except);
    if reasons.is_empty() {
        return Ok(());
    }
    let remediating =
        plane.control_plane.metadata.annotations.contains_key(annotation::REMEDIATION_IN_PROGRESS);
    if adding && remediating {
        return while_remediating(plane);
    }
    Err(Blocked { reasons })
}

fn unhealthy(plane: &Plane, except: Option<&str>) -> Vec<String> {
    let mut reasons = Vec::new();
    for member in &plane.machines {
        let machine = &member.machine;
        let name = &machine.metadata.name;
        if Some(name.as_str()) == except {
            continue;
        }
        if machine.status.node_ref.name.is_empty() {
            reasons.push(format!("machine {name} has no node yet"));
            continue;
        }
        for kind in plane.health_conditions() {
            match machine.status.conditions.condition(kind) {
                Some(found) if found.status == ConditionStatus::True => {}
                Some(found) => {
                    reasons.push(format!("machine {name}: {kind} is {:?} ({})", found.status, found.message))
                }
                None => reasons.push(format!("machine {name}: {kind} is not reported yet")),
            }
        }
    }
    reasons
}

/// After a broken machine was deleted its replacement may come although others are broken too, if the control
/// plane survives it: else several failures would never heal.
fn while_remediating(plane: &Plane) -> Result<(), Blocked> {
    let mut reasons = Vec::new();
    if !components_survive(plane, Change::Add) {
        reasons.push("no machine has a healthy set of control plane components".to_owned());
    }
    if plane.manages_etcd() {
        if plane.etcd.is_empty() {
            reasons.push("the members of etcd cannot be told".to_owned());
        } else if !etcd_survives(plane, Change::Add) {
            reasons.push("etcd might lose its quorum with a further member".to_owned());
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Blocked { reasons }) }
}
