//! The health of one machine: its static pods, and the label and taint that kubeadm sets on its Node.

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::workload::Node;
use capstan_capi_types::controlplane::kubeadm_control_plane::{condition, reason};
use capstan_capi_types::core::{Machine, reason as shared};
use capstan_object::ConditionStatus;

use super::{PODS, fails, is_labelled, unknown};
use crate::control_plane::installed::{COMPONENTS, CONTROL_PLANE_ROLE, pod_name};
use crate::control_plane::observed::{
    ControlPlaneMachine, ControlPlaneState, PodStatus, StaticPod, WorkloadState,
};

pub(super) fn waiting_for_node(machine: &Machine) -> String {
    match machine.spec.provider_id.as_str() {
        "" => format!("Waiting for {} to report spec.providerID", machine.spec.infrastructure_ref.kind),
        id => format!("Waiting for a Node with spec.providerID {id} to exist"),
    }
}

/// Conditions from static pods, and from the label and taint of the Node.
pub(super) fn pods(
    plane: &ControlPlaneState,
    member: &ControlPlaneMachine,
    node: Option<&Node>,
    reached: &WorkloadState,
) -> Vec<(&'static str, ConditionState)> {
    let machine = &member.machine;
    let kinds = if plane.manages_etcd() { &PODS[..] } else { &PODS[..3] };
    let labels = condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET;
    let all = |state: ConditionState, labels_and_taints: ConditionState| {
        let pods = kinds.iter().map(|kind| (*kind, state.clone()));
        pods.chain([(labels, labels_and_taints)]).collect::<Vec<_>>()
    };
    if machine.metadata.is_deleting() {
        let going = fails(shared::DELETING, "Machine is deleting");
        let labels_and_taints = node.map_or_else(|| going.clone(), |node| labels_and_taints(member, node));
        return all(going, labels_and_taints);
    }
    let name = &machine.status.node_ref.name;
    let doubt = |message: String| all(unknown(message.clone()), unknown(message));
    if name.is_empty() {
        return doubt(waiting_for_node(machine));
    }
    let Some(node) = node else { return doubt(format!("Node {name} does not exist")) };
    let unreachable = |taint: &capstan_capi_types::kubernetes::Taint| {
        taint.key == "node.kubernetes.io/unreachable" && taint.effect == "NoExecute"
    };
    if node.spec.taints.iter().any(unreachable) {
        return doubt(format!("Node {name} is unreachable"));
    }
    let mut lines: Vec<(&'static str, ConditionState)> = kinds
        .iter()
        .zip(COMPONENTS)
        .map(|(kind, component)| {
            let state = if node.is_unreachable() {
                // Without kubelet heartbeats the pod status may be stale.
                unknown("Node Ready condition is Unknown, Pod data might be stale")
            } else {
                pod(reached.pods.get(&pod_name(component, name)))
            };
            (*kind, state)
        })
        .collect();
    lines.push((labels, labels_and_taints(member, node)));
    lines
}

fn pod(found: Option<&Result<StaticPod, String>>) -> ConditionState {
    match found {
        None => fails(reason::POD_DOES_NOT_EXIST, "Pod does not exist"),
        Some(Err(why)) => unknown(format!("Failed to get Pod: {why}")),
        Some(Ok(pod)) => phase(&pod.status),
    }
}

fn phase(status: &PodStatus) -> ConditionState {
    let provisioning = |message: &str| fails(reason::POD_PROVISIONING, message);
    match status.phase.as_str() {
        "Pending" if !status.is("PodScheduled") => provisioning("Waiting to be scheduled"),
        "Pending" if !status.is("Initialized") => provisioning("Running init containers"),
        "Pending" => provisioning(""),
        "Running" if status.is("Ready") => {
            ConditionState::new(ConditionStatus::True, reason::POD_RUNNING, "")
        }
        "Running" => {
            let containers = &status.container_statuses;
            let crashed = containers
                .iter()
                .any(|status| status.last_state.terminated.as_ref().is_some_and(|end| end.exit_code != 0));
            let waiting: Vec<&str> = containers
                .iter()
                .filter_map(|status| status.state.waiting.as_ref().map(|event| event.reason.as_str()))
                .collect();
            let ended: Vec<&str> = containers
                .iter()
                .filter_map(|status| status.state.terminated.as_ref().map(|event| event.reason.as_str()))
                .collect();
            match (waiting.is_empty(), ended.is_empty()) {
                (false, _) if crashed => fails(reason::POD_FAILED, waiting.join(", ")),
                (false, _) => provisioning(&waiting.join(", ")),
                (true, false) => fails(reason::POD_FAILED, ended.join(", ")),
                (true, true) => provisioning("Waiting for startup or readiness probes"),
            }
        }
        "Succeeded" | "Failed" => fails(reason::POD_FAILED, "All the containers have been terminated"),
        _ => unknown("Pod is reporting Unknown status"),
    }
}

/// `NodeKubeadmLabelsAndTaintsSet`: the control plane label, and the taint unless it is disabled in the
/// configuration.
fn labels_and_taints(member: &ControlPlaneMachine, node: &Node) -> ConditionState {
    let name = &node.metadata.name;
    let is_default = |key: &str, effect: &str| key == CONTROL_PLANE_ROLE && effect == "NoSchedule";
    let registered = member.config.as_ref().map(|config| match config.join_configuration.control_plane {
        Some(_) => &config.join_configuration.node_registration.taints,
        None => &config.init_configuration.node_registration.taints,
    });
    let tainted = member
        .machine
        .spec
        .taints
        .iter()
        .any(|taint| is_default(&taint.key, taint.effect.map_or("", |effect| effect.as_str())))
        || registered.is_some_and(|taints| match taints {
            // kubeadm's default.
            None => true,
            Some(taints) => taints.iter().any(|taint| is_default(&taint.key, &taint.effect)),
        });
    let has_taint = node.spec.taints.iter().any(|taint| is_default(&taint.key, &taint.effect));
    let taint = format!("{CONTROL_PLANE_ROLE}:NoSchedule");
    let message = match (is_labelled(node), !tainted || has_taint) {
        (true, true) => {
            return ConditionState::new(ConditionStatus::True, reason::LABELS_AND_TAINTS_SET, "");
        }
        (false, true) => format!("Node {name} does not have the {CONTROL_PLANE_ROLE} label"),
        (true, false) => format!("Node {name} does not have the {taint} taint"),
        (false, false) => {
            format!("Node {name} does not have the {CONTROL_PLANE_ROLE} label and the {taint} taint")
        }
    };
    fails(reason::LABELS_AND_TAINTS_NOT_SET, message)
}
