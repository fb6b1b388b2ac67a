//! Preflight checks before a machine is added or removed.

use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, condition};
use capstan_capi_types::core::Machine;
use capstan_capi_types::core::annotation::TOPOLOGY_UPGRADE_STEP;
use capstan_object::{ConditionStatus, Conditions};

use super::quorum::{Change, components_survive, etcd_survives};
use crate::config::kubernetes_version;
use crate::control_plane::observed::ControlPlaneState;

/// Failed preflight checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocked {
    /// Condition messages.
    pub reasons: Vec<String>,
    /// Whether machines are unhealthy, which is reported as an event as well.
    pub unhealthy: bool,
}

impl Blocked {
    pub fn by(reason: impl Into<String>) -> Self {
        Self { reasons: vec![reason.into()], unhealthy: false }
    }
}

/// Checks whether a machine may be added (`adding`) or removed. The health of `except`, the machine to remove, is
/// ignored.
pub fn check(plane: &ControlPlaneState, adding: bool, except: Option<&str>) -> Result<(), Blocked> {
    if plane.machines.is_empty() {
        return Ok(());
    }
    let blocked = |reason: String| Err(Blocked::by(reason));
    let conditions = &plane.control_plane.status.conditions;
    if adding && !conditions.is_condition_true(condition::CERTIFICATES_AVAILABLE) {
        return blocked("the cluster's certificates are missing".to_owned());
    }
    if let Some(version) = awaited_version(plane) {
        return blocked(format!("version {version} of the cluster's topology has not arrived here yet"));
    }
    if adding && let Some(machine) = too_far_behind(plane) {
        let (name, version) = (&machine.metadata.name, &machine.spec.version);
        let wanted = &plane.control_plane.spec.version;
        return blocked(format!(
            "machine {name} is at {version}: a machine of {wanted}, more than one minor version away, cannot join it"
        ));
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
    Err(Blocked { reasons, unhealthy: true })
}

/// The version that the cluster's topology is about to set, if it differs.
fn awaited_version(plane: &ControlPlaneState) -> Option<&str> {
    let topology = plane.cluster.spec.topology.version.as_str();
    let step = plane.cluster.metadata.annotations.get(TOPOLOGY_UPGRADE_STEP).map(String::as_str);
    let step = step.filter(|step| !step.is_empty());
    let own = plane.control_plane.spec.version.as_str();
    let differs = !topology.is_empty() && topology != own && step != Some(own);
    differs.then(|| step.unwrap_or(topology))
}

/// A machine whose version is more than one minor version away: kubeadm does not support that skew.
fn too_far_behind(plane: &ControlPlaneState) -> Option<&Machine> {
    let wanted = kubernetes_version(&plane.control_plane.spec.version).ok()?;
    plane.machines.iter().map(|member| member.machine.as_ref()).find(|machine| {
        kubernetes_version(&machine.spec.version)
            .is_ok_and(|version| version.major != wanted.major || version.minor.abs_diff(wanted.minor) > 1)
    })
}

fn unhealthy(plane: &ControlPlaneState, except: Option<&str>) -> Vec<String> {
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

/// During remediation a replacement may be added although other machines are unhealthy, if the control plane
/// survives it: otherwise multiple failures would never heal.
fn while_remediating(plane: &ControlPlaneState) -> Result<(), Blocked> {
    let mut reasons = Vec::new();
    if !components_survive(plane, Change::Add) {
        reasons.push("no machine has a healthy set of control plane components".to_owned());
    }
    if plane.manages_etcd() {
        if plane.etcd.is_empty() {
            reasons.push("the members of etcd cannot be reported".to_owned());
        } else if !etcd_survives(plane, Change::Add) {
            reasons.push("etcd might lose its quorum with a further member".to_owned());
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(Blocked { reasons, unhealthy: true }) }
}
