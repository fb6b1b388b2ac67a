//! Desired machines of a control plane, with their KubeadmConfigs.

use capstan_capi_core::clone;
use capstan_capi_core::contract::External;
use capstan_capi_core::names::{from_template, joined};
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

/// Default of `nodeDeletionTimeoutSeconds`, as admission sets it, in seconds.
const DEFAULT_NODE_DELETION_TIMEOUT: i32 = 10;

/// kubeadm's feature gate that points a kubelet at the local API server. Needed from 1.31 on, whose kubelets use
/// APIs that an older API server elsewhere lacks; removed in 1.36, where it is always on.
pub const LOCAL_MODE: &str = "ControlPlaneKubeletLocalMode";

/// Readiness gates of control plane machines.
const GATES: [&str; 4] = [
    condition::MACHINE_NODE_KUBEADM_LABELS_AND_TAINTS_SET,
    condition::MACHINE_API_SERVER_POD_HEALTHY,
    condition::MACHINE_CONTROLLER_MANAGER_POD_HEALTHY,
    condition::MACHINE_SCHEDULER_POD_HEALTHY,
];

/// Additional gates with stacked etcd.
const ETCD_GATES: [&str; 2] = [condition::MACHINE_ETCD_POD_HEALTHY, condition::MACHINE_ETCD_MEMBER_HEALTHY];

/// Name of a machine, its KubeadmConfig and its infrastructure machine.
pub fn name(control_plane: &KubeadmControlPlane, cluster: &str, suffix: &str) -> String {
    let own = control_plane.metadata.name.as_str();
    match control_plane.spec.machine_naming.template.as_str() {
        "" => joined(own, suffix),
        template => {
            from_template(template, &[(".cluster.name", cluster), (".kubeadmControlPlane.name", own)], suffix)
        }
    }
}

/// Labels and annotations of machines and the objects created for them.
pub fn propagated(control_plane: &KubeadmControlPlane, cluster: &str) -> Propagated {
    let template = &control_plane.spec.machine_template.metadata;
    let mut labels = template.labels.clone();
    labels.insert(label::CLUSTER_NAME.to_owned(), cluster.to_owned());
    labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
    labels.insert(label::CONTROL_PLANE_NAME.to_owned(), label::value(&control_plane.metadata.name));
    Propagated { labels, annotations: template.annotations.clone() }
}

/// The same for Machines, plus the pre-terminate hook that keeps them until their etcd member is removed.
pub fn propagated_to_machine(control_plane: &KubeadmControlPlane, cluster: &str) -> Propagated {
    let mut propagated = propagated(control_plane, cluster);
    propagated.annotations.insert(annotation::PRE_TERMINATE_HOOK_CLEANUP.to_owned(), String::new());
    propagated
}

/// A machine's spec with all fields that are updated in place.
pub fn followed(control_plane: &KubeadmControlPlane, spec: &MachineSpec) -> MachineSpec {
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

/// Metadata of objects created for a new machine; the control plane owns them until the machine does.
pub fn part(control_plane: &KubeadmControlPlane, cluster: &str, name: &str) -> ObjectMeta {
    let mut meta = ObjectMeta::named(control_plane.metadata.namespace.clone(), name);
    propagated(control_plane, cluster).write(&mut meta);
    meta.owner_references = vec![OwnerReference::to(control_plane)];
    meta
}

/// The KubeadmConfig of a new machine: init, or join if `joins`.
pub fn config(control_plane: &KubeadmControlPlane, cluster: &str, name: &str, joins: bool) -> KubeadmConfig {
    let wanted = with_gates(control_plane.spec.kubeadm_config_spec.clone(), &control_plane.spec.version);
    let spec = if joins { joined_spec(wanted) } else { first_spec(wanted) };
    KubeadmConfig { metadata: part(control_plane, cluster, name), spec, ..KubeadmConfig::default() }
}

/// The spec of a joining machine: no init configuration, joins as control plane.
pub fn joined_spec(mut spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    spec.init_configuration = InitConfiguration::default();
    spec.join_configuration.control_plane.get_or_insert_with(JoinControlPlane::default);
    spec
}

/// The spec that an existing machine gets in place: that of a joining one, with what was set since it was created.
pub fn updated_spec(control_plane: &KubeadmControlPlane, current: &KubeadmConfigSpec) -> KubeadmConfigSpec {
    let wanted = with_gates(control_plane.spec.kubeadm_config_spec.clone(), &control_plane.spec.version);
    let mut spec = joined_spec(wanted);
    if spec.join_configuration.discovery == Default::default() {
        spec.join_configuration.discovery = current.join_configuration.discovery.clone();
    }
    let endpoint = &mut spec.cluster_configuration.control_plane_endpoint;
    if endpoint.is_empty() {
        endpoint.clone_from(&current.cluster_configuration.control_plane_endpoint);
    }
    spec
}

/// The spec of the first machine: no join configuration.
pub fn first_spec(spec: KubeadmConfigSpec) -> KubeadmConfigSpec {
    KubeadmConfigSpec { join_configuration: JoinConfiguration::default(), ..spec }
}

/// Adds the feature gates that a Kubernetes version needs, unless they are set.
pub fn with_gates(mut spec: KubeadmConfigSpec, version: &str) -> KubeadmConfigSpec {
    let minor = kubernetes_version(version).map(|version| (version.major, version.minor));
    if minor.is_ok_and(|minor| ((1, 31)..(1, 36)).contains(&minor)) {
        spec.cluster_configuration.feature_gates.entry(LOCAL_MODE.to_owned()).or_insert(true);
    }
    spec
}

/// A new Machine that refers to an infrastructure machine and a KubeadmConfig of the same name.
pub fn machine(
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
