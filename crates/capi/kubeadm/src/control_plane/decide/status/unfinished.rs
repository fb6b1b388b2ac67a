//! What a control plane still has to do to be as its spec says.

use capstan_capi_core::conditions::{ConditionState, Counts, unfinished};
use capstan_capi_types::controlplane::KubeadmControlPlaneStatus;
use capstan_capi_types::core::{condition, reason};
use capstan_object::Conditions;

use super::StatusInputs;
use crate::control_plane::decide::up_to_date::outdated_machines;

/// Machines are compared with the spec here, since their `UpToDate` conditions may be about an earlier one.
pub(super) fn still_to_do(
    inputs: &StatusInputs<'_>,
    status: &KubeadmControlPlaneStatus,
) -> Option<ConditionState> {
    let plane = inputs.plane;
    let outdated = outdated_machines(plane).len();
    if outdated > 0 {
        let message = format!("Rolling out {outdated} not up-to-date replicas");
        return Some(unfinished(reason::ROLLING_OUT, message));
    }
    if inputs.propagating {
        return Some(unfinished(reason::ROLLING_OUT, "Machines are being changed in place"));
    }
    let counts = Counts {
        wanted: i32::try_from(plane.wanted()).unwrap_or(i32::MAX),
        existing: status.replicas.unwrap_or(0),
        ready: status.ready_replicas.unwrap_or(0),
        available: status.available_replicas.unwrap_or(0),
    };
    counts.unfinished().or_else(|| {
        let available = status.conditions.condition(condition::AVAILABLE)?;
        (!available.is_true()).then(|| unfinished(&available.reason, available.message.clone()))
    })
}
