//! Whether a machine is up to date.

#[cfg(test)]
mod tests;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::in_place::is_updating;
use capstan_capi_types::bootstrap::{JoinConfiguration, JoinControlPlane, KubeadmConfigSpec};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::machine::reason as machine_reason;
use capstan_capi_types::core::{Machine, reason};
use capstan_object::ConditionStatus;
use jiff::SignedDuration;

use crate::control_plane::desired_machine as desired;
use crate::control_plane::observed::{ControlPlaneMachine, ControlPlaneState};

/// Names of the machines to replace.
pub fn outdated_machines(plane: &ControlPlaneState) -> Vec<String> {
    let outdated = |member: &&ControlPlaneMachine| !reasons_to_replace(plane, member).is_empty();
    plane.machines.iter().filter(outdated).map(|member| member.machine.metadata.name.clone()).collect()
}

/// Why a machine must be replaced; empty if it is up to date. Fields that are changed in place (labels,
/// annotations, deletion timeouts) are no reason.
pub fn reasons_to_replace(plane: &ControlPlaneState, member: &ControlPlaneMachine) -> Vec<String> {
    let spec = &plane.control_plane.spec;
    let machine = &member.machine;
    let mut reasons = reasons_for_a_new_machine(plane, member);
    if machine.spec.version != spec.version {
        reasons.push(format!("Version {}, {} required", machine.spec.version, spec.version));
    }
    // An unreadable KubeadmConfig is no reason: an API server error must not replace machines.
    if let Some(current) = &member.config
        && !matches_config(&plane.control_plane, current)
    {
        reasons.push("KubeadmConfig is not up-to-date".to_owned());
    }
    let template = &spec.machine_template.spec.infrastructure_ref;
    if let Some(origin) = &member.origin {
        let group_kind = format!("{}.{}", template.kind, template.api_group);
        if origin.name != template.name || origin.group_kind != group_kind {
            reasons.push(format!("{} is not up-to-date", machine.spec.infrastructure_ref.kind));
        }
    }
    reasons
}

/// Of these, those that no change of the machine mends.
pub fn reasons_for_a_new_machine(plane: &ControlPlaneState, member: &ControlPlaneMachine) -> Vec<String> {
    let spec = &plane.control_plane.spec;
    let machine = &member.machine;
    let mut reasons = Vec::new();
    let days = spec.rollout.before.certificates_expiry_days;
    if let (1.., Some(expiry)) = (days, machine.status.certificates_expiry_date)
        && plane.now + SignedDuration::from_hours(24) * days > expiry.timestamp()
    {
        reasons.push("Certificates will expire soon".to_owned());
    }
    if let (Some(after), Some(made)) = (spec.rollout.after, machine.metadata.creation_timestamp)
        && made < after
        && after.timestamp() < plane.now
    {
        reasons.push("KubeadmControlPlane spec.rollout.after expired".to_owned());
    }
    reasons
}

/// Whether the configuration is the one a machine would get today: by its join configuration or, for the first
/// machine, its init configuration.
fn matches_config(control_plane: &KubeadmControlPlane, current: &KubeadmConfigSpec) -> bool {
    let version = &control_plane.spec.version;
    let wanted = &desired::with_gates(control_plane.spec.kubeadm_config_spec.clone(), version);
    let is_first = current.join_configuration.control_plane.is_none();
    let as_join = comparable(desired::joined_spec(wanted.clone()), wanted);
    let seen = if is_first { first_as_join(current.clone(), &as_join) } else { current.clone() };
    if comparable(seen, wanted) == as_join {
        return true;
    }
    let as_first = desired::first_spec(wanted.clone());
    let seen = desired::first_spec(current.clone());
    is_first && comparable(seen, wanted) == comparable(as_first, wanted)
}

/// The configuration of a machine and the one it would get if it joined today, as far as they are compared.
pub fn compared(
    control_plane: &KubeadmControlPlane,
    current: &KubeadmConfigSpec,
) -> (KubeadmConfigSpec, KubeadmConfigSpec) {
    let version = &control_plane.spec.version;
    let wanted = &desired::with_gates(control_plane.spec.kubeadm_config_spec.clone(), version);
    let as_join = comparable(desired::joined_spec(wanted.clone()), wanted);
    let is_first = current.join_configuration.control_plane.is_none();
    let seen = if is_first { first_as_join(current.clone(), &as_join) } else { current.clone() };
    (comparable(seen, wanted), as_join)
}

/// Converts the init configuration of the first machine to the equivalent join configuration.
fn first_as_join(mut spec: KubeadmConfigSpec, wanted: &KubeadmConfigSpec) -> KubeadmConfigSpec {
    let init = std::mem::take(&mut spec.init_configuration);
    spec.join_configuration = JoinConfiguration {
        node_registration: init.node_registration,
        skip_phases: init.skip_phases,
        patches: init.patches,
        timeouts: init.timeouts,
        control_plane: Some(JoinControlPlane { local_api_endpoint: init.local_api_endpoint }),
        // These two exist only in join configurations.
        ca_cert_path: wanted.join_configuration.ca_cert_path.clone(),
        discovery: Default::default(),
    };
    spec
}

/// Clears fields that are set later, changed in place, or used only while joining.
fn comparable(mut spec: KubeadmConfigSpec, wanted: &KubeadmConfigSpec) -> KubeadmConfigSpec {
    let cluster = &mut spec.cluster_configuration;
    cluster.control_plane_endpoint = wanted.cluster_configuration.control_plane_endpoint.clone();
    cluster.dns = wanted.cluster_configuration.dns.clone();
    let components = [
        &mut cluster.api_server.extra_envs,
        &mut cluster.controller_manager.extra_envs,
        &mut cluster.scheduler.extra_envs,
        &mut cluster.etcd.local.extra_envs,
    ];
    for variables in components {
        // kubeadm treats null and an empty list the same.
        if variables.as_ref().is_some_and(Vec::is_empty) {
            *variables = None;
        }
    }
    spec.join_configuration.discovery = Default::default();
    spec.init_configuration.timeouts.control_plane_component_health_check_seconds = None;
    spec.join_configuration.timeouts.control_plane_component_health_check_seconds = None;
    spec.set_earlier_defaults();
    spec
}

/// Whether a machine is up to date.
pub fn condition(plane: &ControlPlaneState, member: &ControlPlaneMachine) -> ConditionState {
    let machine: &Machine = &member.machine;
    let reasons = reasons_to_replace(plane, member);
    let not = |reason: &str, message: String| ConditionState::new(ConditionStatus::False, reason, message);
    if !reasons.is_empty() {
        let lines: Vec<String> = reasons.iter().map(|reason| format!("* {reason}")).collect();
        return not(reason::NOT_UP_TO_DATE, lines.join("\n"));
    }
    if is_updating(machine) {
        return not(machine_reason::UPDATING, "* In-place update in progress".to_owned());
    }
    let kubelet = machine.status.node_info.as_ref().map(|info| info.kubelet_version.as_str());
    if let Some(kubelet) = kubelet.filter(|version| !version.is_empty() && *version != machine.spec.version) {
        let wanted = &machine.spec.version;
        let message = format!("* Node.status.nodeInfo.kubeletVersion {kubelet}, {wanted} required");
        return not(machine_reason::UPDATING, message);
    }
    ConditionState::new(ConditionStatus::True, reason::UP_TO_DATE, "")
}
