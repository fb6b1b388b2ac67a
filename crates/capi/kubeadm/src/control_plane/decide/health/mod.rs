//! Health of control plane machines, as observed in the workload cluster.
//!
//! ```text
//! nodes, static pods, etcd ─▶ conditions of each Machine ─▶ EtcdClusterHealthy, ControlPlaneComponentsHealthy
//! ```

mod etcd;
mod machine;
mod summary;

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::workload::Node;
use capstan_capi_types::controlplane::kubeadm_control_plane::condition;
use capstan_capi_types::core::{Machine, reason as shared};
use capstan_object::{ConditionStatus, Conditions};
use jiff::{SignedDuration, Timestamp};

use self::etcd::{matching, member_health};
use self::machine::pods;
use crate::control_plane::installed::CONTROL_PLANE_ROLE;
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState, Workload, WorkloadState};

/// Health conditions of a control plane and its machines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Health {
    pub machines: BTreeMap<String, Vec<(&'static str, ConditionState)>>,
    /// `EtcdClusterHealthy`; `None` keeps the current condition.
    pub etcd: Option<ConditionState>,
    /// `ControlPlaneComponentsHealthy`; `None` keeps the current condition.
    pub components: Option<ConditionState>,
    /// etcd members match the machines, as far as can be expected now.
    pub matching: bool,
}

/// Pod conditions of a machine, in the order of [`COMPONENTS`](crate::control_plane::installed::COMPONENTS).
const PODS: [&str; 4] = [
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
    condition::MACHINE_ETCD_POD_HEALTHY,
];

fn unknown(message: impl Into<String>) -> ConditionState {
    ConditionState::new(ConditionStatus::Unknown, shared::INSPECTION_FAILED, message)
}

fn fails(reason: &str, message: impl Into<String>) -> ConditionState {
    ConditionState::new(ConditionStatus::False, reason, message)
}

impl Health {
    /// `grace` is how long the last known state of an unreachable cluster is kept.
    pub fn of(
        plane: &ControlPlaneState,
        workload: &Workload,
        answered: &capstan_controller::Health,
        grace: SignedDuration,
    ) -> Self {
        let own = &plane.control_plane;
        let initialized = own.status.conditions.condition(condition::INITIALIZED);
        if !plane.is_initialized() {
            return Self::all(plane, &unknown("Waiting for Cluster control plane to be initialized"));
        }
        match workload {
            Workload::Reached(reached) => Self::seen(plane, reached),
            Workload::NotAsked => Self::kept(plane),
            Workload::Unreachable(why) => {
                let since = initialized.map(|condition| condition.last_transition_time.timestamp());
                let last = answered.last_success.max(since);
                let down = |message: String| {
                    ConditionState::new(ConditionStatus::Unknown, shared::CONNECTION_DOWN, message)
                };
                let known = own.status.conditions.condition(condition::ETCD_CLUSTER_HEALTHY).is_some()
                    && own.status.conditions.condition(condition::CONTROL_PLANE_COMPONENTS_HEALTHY).is_some();
                let silent = last.is_none_or(|last| plane.now.duration_since(last) > grace);
                if silent {
                    let heard = last_heard(answered);
                    return Self::all(plane, &down(if heard.is_empty() { why.clone() } else { heard }));
                }
                // Keep the last known state while the connection may come back.
                if known { Self::kept(plane) } else { Self::all(plane, &down(why.clone())) }
            }
        }
    }

    /// Keeps all conditions.
    fn kept(plane: &ControlPlaneState) -> Self {
        Self { matching: plane.etcd.is_empty(), ..Self::default() }
    }

    /// Sets all conditions to the same state.
    fn all(plane: &ControlPlaneState, state: &ConditionState) -> Self {
        let kinds = plane.health_conditions();
        let of = |_: &ControlPlaneMachine| {
            let labels = (condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET, state.clone());
            kinds.iter().map(|kind| (*kind, state.clone())).chain([labels]).collect()
        };
        Self {
            machines: each(plane, of),
            etcd: plane.manages_etcd().then(|| state.clone()),
            components: Some(state.clone()),
            matching: false,
        }
    }

    fn seen(plane: &ControlPlaneState, reached: &WorkloadState) -> Self {
        let machines = each(plane, |member| {
            let node = reached.nodes.get(&member.machine.status.node_ref.name).map(AsRef::as_ref);
            let mut lines = pods(plane, member, node, reached);
            if plane.manages_etcd() {
                lines.push((condition::MACHINE_ETCD_MEMBER_HEALTHY, member_health(member, &reached.etcd)));
            }
            lines
        });
        let mut health = Self { machines, etcd: None, components: None, matching: true };
        let names: BTreeSet<&str> =
            named(plane).map(|machine| machine.status.node_ref.name.as_str()).collect();
        let provisioning = names.len() < plane.machines.len();
        let mut unmatched = Vec::new();
        if !provisioning {
            let labelled = reached.nodes.values().filter(|node| is_labelled(node));
            for node in labelled.filter(|node| !names.contains(node.metadata.name.as_str())) {
                let name = &node.metadata.name;
                unmatched.push(format!("Control plane Node {name} does not have a corresponding Machine"));
            }
        }
        let kinds = if plane.manages_etcd() { &PODS[..] } else { &PODS[..3] };
        health.components = Some(health.summary(plane, kinds, &unmatched, "control plane"));
        if plane.manages_etcd() {
            let mut unmatched = Vec::new();
            for member in reached.etcd.members().iter().filter(|member| !names.contains(member.name.as_str()))
            {
                let name = match member.name.as_str() {
                    "" => format!("{} (Name not yet assigned)", member.id),
                    name => name.to_owned(),
                };
                unmatched.push(format!("Etcd member {name} does not have a corresponding Machine"));
            }
            health.matching = matching(plane, reached, provisioning || unmatched.is_empty());
            let kinds = [condition::MACHINE_ETCD_MEMBER_HEALTHY];
            health.etcd = Some(health.summary(plane, &kinds, &unmatched, "etcd member"));
        }
        health
    }
}

fn each(
    plane: &ControlPlaneState,
    of: impl Fn(&ControlPlaneMachine) -> Vec<(&'static str, ConditionState)>,
) -> BTreeMap<String, Vec<(&'static str, ConditionState)>> {
    plane.machines.iter().map(|member| (member.machine.metadata.name.clone(), of(member))).collect()
}

fn named(plane: &ControlPlaneState) -> impl Iterator<Item = &Machine> {
    let machines = plane.machines.iter().map(|member| member.machine.as_ref());
    machines.filter(|machine| !machine.status.node_ref.name.is_empty())
}

fn is_labelled(node: &Node) -> bool {
    node.metadata.labels.contains_key(CONTROL_PLANE_ROLE)
}

/// When the cluster last responded, for condition messages.
fn last_heard(health: &capstan_controller::Health) -> String {
    match health.last_success {
        Some(at) => format!("Last successful probe at {}", capstan_object::Time::new(at)),
        None => String::new(),
    }
}

/// Whether one of the conditions has been other than True for more than 10 seconds, so that blips are not reported.
pub(super) fn is_lasting(machine: &Machine, kinds: &[&str], now: Timestamp) -> bool {
    let since = kinds
        .iter()
        .filter_map(|kind| machine.status.conditions.condition(kind))
        .filter(|condition| condition.status != ConditionStatus::True)
        .map(|condition| condition.last_transition_time.timestamp())
        .min();
    since.is_some_and(|since| now.duration_since(since) > SignedDuration::from_secs(10))
}
