//! What the machines of a control plane should look like.

use capstan_capi_core::clone;
use capstan_capi_core::contract::External;
use capstan_capi_core::names::{from_template, joined, label_value};
use capstan_capi_core::propagate::Propagated;
use capstan_capi_types::bootstrap::{
    ExternalEtcd, InitConfiguration, JoinConfiguration, JoinControlPlane, KubeadmConfig, KubeadmConfigSpec,
};
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, condition};
use capstan_capi_types::core::{
    ContractVersionedObjectReference, Machine, MachineReadinessGate, MachineSpec, label, machine,
};
use capstan_object::{Object, ObjectMeta, OwnerReference};

use crate::config::kubernetes_version;

/// What admission writes where a machine does not say how long its node may take to go.
const DEFAULT_NODE_DELETION_TIMEOUT: i32 = 10;

/// kubeadm's gate that has a kubelet talk to the API server beside it. Needed from 1.31 on, whose kubelets ask
/// what an older API server elsewhere cannot answer; gone in 1.36, where it is always so.
pub(super) const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";

/// The conditions without which a machine of a control plane is not ready.
const GATES: [&str; 4] = [
    condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET,
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
];

/// The same where etcd runs beside the API server.
const ETCD_GATES: [&str; 2] = [condition::MACHINE_ETCD_POD_HEALTHY, condition::MACHINE_ETCD_MEMBER_HEALTHY];

/// The name of a machine; its configuration and infrastructure machine have the same.
pub(super) fn name(control_plane: &KubeadmControlPlane, cluster: &str, suffix: &str) -> String {
    let own = control_plane.metadata.name.as_str();
    match control_plane.spec.machine_naming.template.as_str() {
        "" => joined(own, suffix),
        template => {
            from_template(template, &[(".cluster.name", cluster), (".kubeadmControlPlane.name", own)], suffix)
        }
    }
}

/// Labels and annotations of machines and of what is made for them.
pub(super) fn propagated(control_plane: &KubeadmControlPlane, cluster: &str) -> Propagated {
    let template = &control_plane.spec.machine_template.metadata;
    let mut labels = template.labels.clone();
    labels.insert(label::CLUSTER_NAME.to_owned(), cluster.to_owned());
    labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
    labels.insert(label::CONTROL_PLANE_NAME.to_owned(), label_value(&control_plane.metadata.name));
    Propagated { labels, annotations: template.annotations.clone() }
}

/// The same for machines, which are held until their member of etcd is gone.
pub(super) fn propagated_to_machine(control_plane: &KubeadmControlPlane, cluster: &str) -> Propagated {
    let mut propagated = propagated(control_plane, cluster);
    propagated.annotations.insert(annotation::PRE_TERMINATE_HOOK_CLEANUP.to_owned(), String::new());
    propagated
}

/// A machine's spec with everything that follows the control plane as long as the machine lives.
pub(super) fn followed(control_plane: &KubeadmControlPlane, spec: &MachineSpec) -> MachineSpec {
    let template = &control_plane.spec.machine_template.spec;
    let mut deletion = template.deletion.clone();
    deletion.node_deletion_timeout_seconds =
        deletion.node_deletion_timeout_seconds.or(Some(DEFAULT_NODE_DELETION_TIMEOUT));
    let etcd = &control_plane.spec.kubeadm_config_spec.cluster_configuration.etcd;
    let etcd_gates: &[&str] = if etcd.external == ExternalEtcd::default() { &ETCD_GATES } else { &[] };
    let mandatory = GATES.iter().chain(etcd_gates).map(|kind| MachineReadinessGate {
        condition_type: (*kind).to_owned(),
        ..MachineReadinessGate::default()
    });
    let mut readiness_gates: Vec<MachineReadinessGate> = mandatory.collect();
    for gate in &template.readiness_gates {
        if !readiness_gates.iter().any(|known| known.condition_type == gate.condition_type) {
            readiness_gates.push(gate.clone());
        }
    }
    MachineSpec { readiness_gates, deletion, taints: template.taints.clone(), ..spec.clone() }
}

/// Metadata of what is made for a new machine, before the machine is there to own it.
pub(super) fn part(control_plane: &KubeadmControlPlane, cluster: &str, name: &str) -> ObjectMeta {
    let mut meta = ObjectMeta::named(control_plane.metadata.namespace.clone(), name);
    propagated(control_plane, cluster).write(&mut meta);
    meta.owner_references = vec![OwnerReference::to(control_plane)];
    meta
}

/// The configuration that a new machine boots from: as the first one, or as one that joins.
pub(super) fn config(
    control_plane: &KubeadmControlPlane,
    cluster: &str,
    name: &str,
    joins: bool,
) -> KubeadmConfig {
    let wanted = with_gates(control_plane.spec.kubeadm_config_spec.clone(), &control_plane.spec.version);
    let spec = if joins { joined_spec(wanted) } else { first_spec(wanted) };
    KubeadmConfig { metadata: part(control_plane, cluster, name), spec, ..KubeadmConfig::default() }
}

/// What a machine that joins is told: nothing of the first one, and that it is one of the control plane.
pub(super) fn joined_spec(mut spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    spec.init_configuration = InitConfiguration::default();
    spec.join_configuration.control_plane.get_or_insert_with(JoinControlPlane::default);
    spec
}

/// What the first machine is told: nothing of joining.
pub(super) fn first_spec(spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    KubeadmConfigSpec { join_configuration: JoinConfiguration::default(), ..spec }
}

/// The feature gates that a version of Kubernetes needs, unless they are set otherwise.
pub(super) fn with_gates(mut spec: KubeadmConfigSpec, version: &str) -> KubeadmConfigSpec {
    let minor = kubernetes_version(version).map(|version| (version.major, version.minor));
    if minor.is_ok_and(|minor| ((1, 31)..(1, 36)).contains(&minor)) {
        spec.cluster_configuration.feature_gates.entry(LOCAL_MODE.to_owned()).or_insert(true);
    }
    spec
}

/// A new machine, made of an infrastructure machine and a configuration of the same name.
pub(super) fn machine(
    control_plane: &KubeadmControlPlane,
    cluster: &str,
    name: &str,
    failure_domain: &str,
    template: &External,
) -> Machine {
    let mut metadata = ObjectMeta::named(control_plane.metadata.namespace.clone(), name);
    propagated_to_machine(control_plane, cluster).write(&mut metadata);
    metadata.owner_references = vec![OwnerReference::controlled_by(control_plane)];
    metadata.finalizers = vec![machine::FINALIZER.to_owned()];
    if let Some(record) = control_plane.metadata.annotations.get(annotation::REMEDIATION_IN_PROGRESS) {
        metadata.annotations.insert(annotation::REMEDIATION_FOR.to_owned(), record.clone());
    }
    let mut spec = followed(control_plane, &MachineSpec::default());
    spec.cluster_name = cluster.to_owned();
    spec.version = control_plane.spec.version.clone();
    spec.failure_domain = failure_domain.to_owned();
    spec.infrastructure_ref = clone::reference(template, name);
    spec.bootstrap.config_ref = ContractVersionedObjectReference {
        kind: KubeadmConfig::KIND.kind.to_owned(),
        name: name.to_owned(),
        api_group: KubeadmConfig::KIND.group.to_owned(),
    };
    Machine { metadata, spec, ..Machine::default() }
}
