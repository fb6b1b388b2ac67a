//! MachineDeployments of a topology.

use capstan_capi_types::core::topology::MachineDeploymentTopology;
use capstan_capi_types::core::{
    ContractVersionedObjectReference, MachineDeployment, MachineDeploymentRolloutSpec, annotation, label,
};
use capstan_object::ObjectMeta;

use super::control_plane::merged;
use super::object::{self, Intent, Texts};
use super::versions::{Upgrade, WorkersKind};
use super::{DesiredDeployment, health_check, names};
use crate::blueprint::Blueprint;
use crate::current::Current;

/// Name of a MachineDeployment if the class has no template for it.
const NAME: &str = "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}";

/// Prefix of the names of templates for a group of workers.
pub fn template_prefix(cluster: &str, topology: &str) -> String {
    format!("{cluster}-{topology}-")
}

/// A reference to an object that is to be.
pub fn reference(intent: &Intent) -> ContractVersionedObjectReference {
    ContractVersionedObjectReference {
        kind: intent.kind.kind.to_string(),
        name: intent.name().to_owned(),
        api_group: intent.kind.group.to_string(),
    }
}

pub(super) fn deployment(
    blueprint: &Blueprint,
    current: &Current,
    topology: &MachineDeploymentTopology,
    upgrade: &mut Upgrade,
) -> Result<DesiredDeployment, String> {
    let cluster = &current.cluster;
    let (class, templates) = blueprint.deployment_class(&topology.class).ok_or_else(|| {
        format!(
            "MachineDeployment class {} not found in ClusterClass {}",
            topology.class,
            blueprint.class.metadata.key()
        )
    })?;
    let running = current.deployments.get(&topology.name);
    let own_label = Texts::from([(label::TOPOLOGY_DEPLOYMENT_NAME.to_owned(), topology.name.clone())]);
    let prefix = template_prefix(&cluster.metadata.name, &topology.name);
    let template_name = |known: Option<&str>, role: &str| match known.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => names::joined(&prefix, &names::suffix(cluster, &[role, &topology.name])),
    };
    let spec = running.map(|running| &running.object.spec.template.spec);
    let known = spec.map(|spec| spec.bootstrap.config_ref.name.as_str());
    let name = template_name(known, "bootstrap");
    let bootstrap = object::copy_of_template(&templates.bootstrap, cluster, &name, &own_label);
    let known = spec.map(|spec| spec.infrastructure_ref.name.as_str());
    let name = template_name(known, "infrastructure");
    let infrastructure = object::copy_of_template(&templates.infrastructure, cluster, &name, &own_label);

    let found = running.map(|running| {
        let object = &running.object;
        (object.metadata.name.as_str(), object.spec.template.spec.version.as_str())
    });
    let version =
        upgrade.workers_version(&blueprint.topology, WorkersKind::Deployments, &topology.name, found)?;
    let name = match running {
        Some(running) => running.object.metadata.name.clone(),
        None => {
            let naming = if class.naming.template.is_empty() { NAME } else { &class.naming.template };
            let suffix = names::suffix(cluster, &["machine-deployment", &topology.name]);
            names::from_template(naming, cluster, Some(("machineDeployment", &topology.name)), &suffix)?
        }
    };
    let mut labels = merged(&topology.metadata.labels, &class.metadata.labels);
    let selector = Texts::from([
        (label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone()),
        (label::TOPOLOGY_OWNED.to_owned(), String::new()),
        (label::TOPOLOGY_DEPLOYMENT_NAME.to_owned(), topology.name.clone()),
    ]);
    labels.extend(selector.clone());
    let mut annotations = merged(&topology.metadata.annotations, &class.metadata.annotations);
    for name in [annotation::TOPOLOGY_HOLD_UPGRADE_SEQUENCE, annotation::TOPOLOGY_DEFER_UPGRADE] {
        annotations.remove(name);
    }
    let mut object = MachineDeployment {
        metadata: ObjectMeta::named(cluster.metadata.namespace.as_str(), name.as_str()),
        ..MachineDeployment::default()
    };
    object.metadata.labels.clone_from(&labels);
    object.metadata.annotations.clone_from(&annotations);
    let spec = &mut object.spec;
    spec.cluster_name.clone_from(&cluster.metadata.name);
    spec.replicas = topology.replicas;
    spec.selector.match_labels = selector;
    spec.rollout = match topology.rollout != MachineDeploymentRolloutSpec::default() {
        true => topology.rollout.clone(),
        false => MachineDeploymentRolloutSpec { after: None, strategy: class.rollout.strategy.clone() },
    };
    let remediation = &topology.health_check.remediation.max_in_flight;
    spec.remediation.max_in_flight =
        remediation.clone().or_else(|| class.health_check.remediation.max_in_flight.clone());
    spec.deletion.order = topology.deletion.order.or(class.deletion.order);
    let template = &mut spec.template;
    template.metadata.labels = labels;
    template.metadata.annotations = annotations;
    let machine = &mut template.spec;
    machine.cluster_name.clone_from(&cluster.metadata.name);
    machine.version = version;
    machine.bootstrap.config_ref = reference(&bootstrap);
    machine.infrastructure_ref = reference(&infrastructure);
    let domain = &topology.failure_domain;
    machine.failure_domain = if domain.is_empty() { &class.failure_domain } else { domain }.clone();
    let (own, of_class) = (&topology.deletion, &class.deletion);
    machine.deletion.node_drain_timeout_seconds =
        own.node_drain_timeout_seconds.or(of_class.node_drain_timeout_seconds);
    machine.deletion.node_volume_detach_timeout_seconds =
        own.node_volume_detach_timeout_seconds.or(of_class.node_volume_detach_timeout_seconds);
    machine.deletion.node_deletion_timeout_seconds =
        own.node_deletion_timeout_seconds.or(of_class.node_deletion_timeout_seconds);
    let gates = &topology.readiness_gates;
    machine.readiness_gates = if gates.is_empty() { &class.readiness_gates } else { gates }.clone();
    let taints = &topology.taints;
    machine.taints = if taints.is_empty() { &class.taints } else { taints }.clone();
    machine.min_ready_seconds = topology.min_ready_seconds.or(class.min_ready_seconds);
    let health_check = health_check::of_deployment(current, class, topology, &object.metadata.name);
    Ok(DesiredDeployment { object, bootstrap, infrastructure, health_check })
}
