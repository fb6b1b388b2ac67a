//! The record of a remediation, stored in annotations.

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use capstan_object::Time;
use serde::{Deserialize, Serialize};

use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

/// A remediation, stored in an annotation of the control plane while it is in progress and of the replacement
/// afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRecord {
    /// The machine that was replaced.
    pub machine: String,
    pub timestamp: Time,
    pub retry_count: i32,
}

/// The machine of the recorded remediation, if it still exists.
pub fn recorded(plane: &ControlPlaneState) -> Option<&ControlPlaneMachine> {
    let text = plane.control_plane.metadata.annotations.get(annotation::REMEDIATION_IN_PROGRESS)?;
    let record = serde_json::from_str::<RemediationRecord>(text).ok()?;
    plane.machines.iter().find(|member| member.machine.metadata.name == record.machine)
}
