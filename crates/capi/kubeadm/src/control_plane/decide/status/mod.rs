//! Status of a KubeadmControlPlane.

mod availability;
mod scaling;
mod unfinished;

use std::sync::Arc;

use capstan_capi_core::conditions::{self, ConditionState};
use capstan_capi_core::machine_deployment::status::{
    blocked, in_up_to_date_grace, machines_ready, machines_up_to_date, remediating, rolling_out,
};
use capstan_capi_core::machines::versions;
use capstan_capi_types::controlplane::KubeadmControlPlaneStatus;
use capstan_capi_types::controlplane::LastRemediationStatus;
use capstan_capi_types::controlplane::kubeadm_control_plane::{
    annotation, condition as own, reason as own_reason,
};
use capstan_capi_types::core::{Deprecated, Machine, condition, label, machine, reason};
use capstan_object::kstatus::condition::RECONCILING;
use capstan_object::{ConditionStatus, Conditions};
use jiff::SignedDuration;

use self::availability::available;
use self::scaling::{scaling_down, scaling_up};
use self::unfinished::still_to_do;
use super::scope::{Decided, Looked};
use crate::control_plane::observed::{ControlPlaneState, InPlace};
use crate::control_plane::rollout::remediation::RemediationRecord;

/// Conditions that this controller owns.
pub(crate) const OWNED: &[&str] = &[
    condition::PAUSED,
    condition::AVAILABLE,
    own::INITIALIZED,
    own::CERTIFICATES_AVAILABLE,
    own::ETCD_CLUSTER_HEALTHY,
    own::CONTROL_PLANE_COMPONENTS_HEALTHY,
    condition::MACHINES_READY,
    condition::MACHINES_UP_TO_DATE,
    condition::ROLLING_OUT,
    condition::SCALING_UP,
    condition::SCALING_DOWN,
    condition::REMEDIATING,
    condition::DELETING,
    RECONCILING,
];

pub(super) fn set(
    decision: &mut Decided,
    look: &Looked,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    set_condition(decision, look, kind, ConditionState::new(status, reason, message));
}

pub(super) fn set_condition(decision: &mut Decided, look: &Looked, kind: &str, state: ConditionState) {
    conditions::set_state(look, &mut decision.object.status.conditions, kind, state, None);
}

pub(super) struct StatusInputs<'a> {
    pub plane: &'a ControlPlaneState,
    /// etcd members match the machines.
    pub matching: bool,
    /// Fields of machines are being changed in place.
    pub propagating: bool,
    /// What blocks scaling.
    pub obstacles: &'a [String],
    /// Kind of the infrastructure template, if it does not exist.
    pub missing_template: Option<&'a str>,
    /// `Deleting`, while the control plane is being deleted.
    pub deleting: Option<ConditionState>,
}

impl StatusInputs<'_> {
    fn machines(&self) -> Vec<Arc<Machine>> {
        self.plane.machines.iter().map(|member| member.machine.clone()).collect()
    }

    fn is_deleting(&self) -> bool {
        self.plane.control_plane.metadata.is_deleting()
    }

    fn wanted(&self) -> usize {
        if self.is_deleting() { 0 } else { self.plane.wanted() }
    }
}

/// Sets counts, versions and the conditions that `decide` did not set before.
pub(super) fn report(decision: &mut Decided, look: &Looked, inputs: &StatusInputs<'_>) {
    let machines = inputs.machines();
    let status = &mut decision.object.status;
    counters(status, inputs, &machines);
    status.observed_generation = look.object.metadata.generation;
    let initialized = status.initialization.control_plane_initialized == Some(true);
    let state = match initialized {
        true => ConditionState::new(ConditionStatus::True, own_reason::INITIALIZED, ""),
        false => ConditionState::new(ConditionStatus::False, own_reason::NOT_INITIALIZED, ""),
    };
    set_condition(decision, look, own::INITIALIZED, state);
    let rolling_out = match &look.seen.in_place {
        InPlace::Failed(failure) => blocked(rolling_out(&machines), &failure.why),
        _ => rolling_out(&machines),
    };
    for (kind, state) in [
        (condition::ROLLING_OUT, rolling_out),
        (condition::SCALING_UP, scaling_up(inputs)),
        (condition::SCALING_DOWN, scaling_down(inputs, &machines)),
        (condition::MACHINES_READY, machines_ready(&machines)),
        (condition::MACHINES_UP_TO_DATE, machines_up_to_date(&machines, look.now)),
        (condition::REMEDIATING, remediating(&machines, "KubeadmControlPlane")),
        (
            condition::DELETING,
            inputs
                .deleting
                .clone()
                .unwrap_or_else(|| ConditionState::new(ConditionStatus::False, reason::NOT_DELETING, "")),
        ),
    ] {
        set_condition(decision, look, kind, state);
    }
    let state = available(inputs, &decision.object.status);
    set_condition(decision, look, condition::AVAILABLE, state);
    let to_do = still_to_do(inputs, &decision.object.status);
    conditions::set_reconciling(look, &mut decision.object.status.conditions, to_do);
    for machine in machines.iter().filter(|machine| in_up_to_date_grace(machine, look.now)) {
        if let Some(created) = machine.metadata.creation_timestamp {
            decision.again_at(look.now, created.timestamp() + SignedDuration::from_secs(11));
        }
    }
}

fn counters(status: &mut KubeadmControlPlaneStatus, inputs: &StatusInputs<'_>, machines: &[Arc<Machine>]) {
    let cluster = &inputs.plane.cluster.metadata.name;
    status.selector = format!("{}={cluster},{}", label::CLUSTER_NAME, label::CONTROL_PLANE);
    status.versions = versions(machines);
    if let Some(lowest) = status.versions.first() {
        status.version = lowest.version.clone();
    }
    let count = |kind: &str| {
        let holds = |machine: &&Arc<Machine>| machine.status.conditions.is_condition_true(kind);
        i32::try_from(machines.iter().filter(holds).count()).ok()
    };
    status.replicas = i32::try_from(machines.len()).ok();
    status.ready_replicas = count(condition::READY);
    status.available_replicas = count(condition::AVAILABLE);
    status.up_to_date_replicas = count(machine::condition::UP_TO_DATE);
    let ready = count(machine::condition::NODE_READY).unwrap_or(0);
    let deprecated = status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_with(Default::default);
    old.updated_replicas = status.up_to_date_replicas.unwrap_or(0);
    old.ready_replicas = ready;
    old.unavailable_replicas = status.replicas.unwrap_or(0) - ready;
    last_remediation(status, inputs, machines);
}

/// The remediation in progress, else the latest one recorded on a machine.
fn last_remediation(
    status: &mut KubeadmControlPlaneStatus,
    inputs: &StatusInputs<'_>,
    machines: &[Arc<Machine>],
) {
    let read = |text: &String| serde_json::from_str::<RemediationRecord>(text).ok();
    let under_way = inputs.plane.control_plane.metadata.annotations.get(annotation::REMEDIATION_IN_PROGRESS);
    let record = under_way.and_then(read).or_else(|| {
        let relevant = machines
            .iter()
            .filter_map(|machine| machine.metadata.annotations.get(annotation::REMEDIATION_FOR));
        relevant.filter_map(read).max_by_key(|record| record.timestamp)
    });
    if let Some(record) = record {
        status.last_remediation = LastRemediationStatus {
            machine: record.machine,
            time: Some(record.timestamp),
            retry_count: Some(record.retry_count),
        };
    }
}
