//! The record of a replacement, kept in annotations.

use capstan_capi_types::controlplane::kubeadm_control_plane::annotation;
use capstan_object::Time;
use serde::{Deserialize, Serialize};

use crate::control_plane::observed::{Member, Plane};

/// What is kept about a replacement in annotations: on the control plane while it is under way, on the
/// replacement afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemediationRecord {
    /// The machine that was broken.
    pub machine: String,
    /// When it was deleted.
    pub timestamp: Time,
    /// Which retry it was.
    pub retry_count: i32,
}

/// The machine whose replacement is on record as under way, if it is still there.
pub(super) fn recorded(plane: &Plane) -> Option<&Member> {
    let text = plane.control_plane.metadata.annotations.get(annotation::REMEDIATION_IN_PROGRESS)?;
    let record = serde_json::from_str::<RemediationRecord>(text).ok()?;
    plane.machines.iter().find(|member| member.machine.metadata.name == record.machine)
}
