//! Which unhealthy machine is replaced, and whether that is safe now.

mod record;
#[cfg(test)]
mod tests;

use capstan_capi_types::controlplane::kubeadm_control_plane::{
    DEFAULT_MIN_HEALTHY_PERIOD_SECONDS, annotation, condition, reason,
};
use capstan_capi_types::core::annotation::REMEDIATE_MACHINE;
use capstan_capi_types::core::machine::condition::{HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED};
use capstan_object::{ConditionStatus, Conditions, Time};
use jiff::SignedDuration;

use super::quorum::{Change, components_survive, etcd_survives};
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

pub use record::{RemediationRecord, recorded};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remediation {
    /// No machine is unhealthy, or its replacement is in progress.
    NotNeeded,
    /// A machine is unhealthy but cannot be replaced now.
    Held {
        machine: String,
        /// Reason of the machine's `OwnerRemediated` condition.
        reason: &'static str,
        /// Condition message.
        message: String,
    },
    /// The machine is deleted.
    Delete {
        machine: String,
        /// Stored in the control plane's annotation.
        record: RemediationRecord,
    },
}

/// One machine at a time, the most broken first.
pub fn remediate(plane: &ControlPlaneState) -> Remediation {
    let broken: Vec<&ControlPlaneMachine> = plane.machines.iter().filter(|member| is_ours(member)).collect();
    let under_way =
        plane.control_plane.metadata.annotations.contains_key(annotation::REMEDIATION_IN_PROGRESS);
    // A recorded remediation that has not started continues first.
    let worst = match (under_way, recorded(plane)) {
        (false, _) => broken.into_iter().min_by_key(|member| rank(plane, member)),
        (true, Some(member)) if is_ours(member) => Some(member),
        (true, _) => None,
    };
    let Some(worst) = worst.filter(|worst| !worst.machine.metadata.is_deleting()) else {
        return Remediation::NotNeeded;
    };
    let name = &worst.machine.metadata.name;
    let held = |reason, message: String| Remediation::Held { machine: name.clone(), reason, message };
    let record = match retry(plane, worst) {
        Ok(record) => record,
        Err((reason, message)) => return held(reason, message),
    };
    if plane.is_initialized() {
        if plane.machines.len() <= 1 {
            return held(reason::CANNOT_BE_REMEDIATED, "the only machine is not replaced".to_owned());
        }
        if plane.machines.iter().any(is_healthy_and_provisioning) {
            return held(
                reason::REMEDIATION_DEFERRED,
                "another machine is still being provisioned".to_owned(),
            );
        }
        if plane.has_deleting_machine() {
            return held(reason::REMEDIATION_DEFERRED, "another machine is still being deleted".to_owned());
        }
        if plane.manages_etcd() && plane.etcd.is_empty() {
            return held(reason::REMEDIATION_DEFERRED, "the members of etcd cannot be reported".to_owned());
        }
        let member = match plane.member_of(worst) {
            Ok(member) => member.map_or("", |member| &member.name),
            Err(why) => return held(reason::REMEDIATION_DEFERRED, why),
        };
        let change = Change::Remove { machine: name, member };
        // A machine that never joined etcd has no member that etcd could miss.
        let etcd = !plane.manages_etcd() || member.is_empty() || etcd_survives(plane, change);
        if !components_survive(plane, change) || !etcd {
            let message = "without this machine the control plane or etcd's quorum would be lost".to_owned();
            return held(reason::CANNOT_BE_REMEDIATED, message);
        }
    }
    Remediation::Delete { machine: name.clone(), record }
}

/// A health check failed and the owner must remediate.
fn is_ours(member: &ControlPlaneMachine) -> bool {
    let status = |kind| member.machine.status.conditions.condition(kind).map(|condition| condition.status);
    status(HEALTH_CHECK_SUCCEEDED) == Some(ConditionStatus::False)
        && status(OWNER_REMEDIATED) == Some(ConditionStatus::False)
}

fn is_healthy_and_provisioning(member: &ControlPlaneMachine) -> bool {
    !is_ours(member) && member.machine.status.node_ref.name.is_empty()
}

/// Sort key: marked by the user, no node, unhealthy etcd, unhealthy control plane components; then the oldest.
fn rank(plane: &ControlPlaneState, member: &ControlPlaneMachine) -> impl Ord + use<> {
    let machine = &member.machine;
    let fine = |kind: &str| machine.status.conditions.is_condition_true(kind);
    let etcd = plane.manages_etcd();
    let mut order = vec![
        !machine.metadata.annotations.contains_key(REMEDIATE_MACHINE),
        !machine.status.node_ref.name.is_empty(),
    ];
    for kind in [condition::MACHINE_ETCD_MEMBER_HEALTHY, condition::MACHINE_ETCD_POD_HEALTHY] {
        order.push(!etcd || fine(kind));
    }
    for kind in [
        condition::MACHINE_API_SERVER_POD_HEALTHY,
        condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
        condition::MACHINE_SCHEDULER_POD_HEALTHY,
        condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET,
    ] {
        order.push(fine(kind));
    }
    (order, machine.metadata.creation_timestamp, machine.metadata.name.clone())
}

/// The record of the next attempt, or why it must wait. A machine that fails soon after it replaced another one is
/// a retry of that replacement.
fn retry(
    plane: &ControlPlaneState,
    member: &ControlPlaneMachine,
) -> Result<RemediationRecord, (&'static str, String)> {
    let settings = &plane.control_plane.spec.remediation;
    let mut record = RemediationRecord {
        machine: member.machine.metadata.name.clone(),
        timestamp: Time::new(plane.now),
        retry_count: 0,
    };
    let kept = member.machine.metadata.annotations.get(annotation::REMEDIATION_FOR);
    let Some(last) = kept.and_then(|kept| serde_json::from_str::<RemediationRecord>(kept).ok()) else {
        return Ok(record);
    };
    let seconds = |seconds: i32| SignedDuration::from_secs(seconds.into());
    let healthy = seconds(settings.min_healthy_period_seconds.unwrap_or(DEFAULT_MIN_HEALTHY_PERIOD_SECONDS));
    let since = plane.now.duration_since(last.timestamp.timestamp());
    if since >= healthy {
        return Ok(record);
    }
    let period = seconds(settings.retry_period_seconds.unwrap_or(0));
    if since < period {
        let message =
            format!("the replacement failed less than {} s ago (retryPeriodSeconds)", period.as_secs());
        return Err((reason::REMEDIATION_DEFERRED, message));
    }
    if let Some(most) = settings.max_retry
        && last.retry_count >= most
    {
        return Err((
            reason::CANNOT_BE_REMEDIATED,
            format!("the replacement failed {most} times (maxRetry)"),
        ));
    }
    record.retry_count = last.retry_count + 1;
    Ok(record)
}
