//! MachineDeployments of a topology.

use capstan_capi_types::core::topology::{
    MachineDeploymentTopology, MachineDeploymentTopologyMachineDeletionSpec,
};
use capstan_capi_types::core::{MachineDeletionSpec, MachineDeployment, MachineDeploymentRolloutSpec};

use super::object;
use super::versions::{Upgrade, WorkersKind};
use super::workers::{Group, Machines, own_or_class};
use super::{DesiredDeployment, health_check};
use crate::blueprint::Blueprint;
use crate::current::Current;

pub(super) fn deployment(
    blueprint: &Blueprint,
    current: &Current,
    topology: &MachineDeploymentTopology,
    upgrade: &mut Upgrade,
) -> Result<DesiredDeployment, String> {
    let cluster = &current.cluster;
    let (class, templates) = blueprint.deployment_class(&topology.class).ok_or_else(|| {
        let class = blueprint.class.metadata.key();
        format!("MachineDeployment class {} not found in ClusterClass {class}", topology.class)
    })?;
    let group = Group { cluster, kind: WorkersKind::Deployments, topology: &topology.name };
    let running = current.deployments.get(&topology.name).map(|running| &running.object);
    let spec = running.map(|running| &running.spec.template.spec);
    let own_label = group.own_label();
    let name = group.name_of("bootstrap", spec.map(|spec| spec.bootstrap.config_ref.name.as_str()));
    let bootstrap = object::copy_of_template(&templates.bootstrap, cluster, &name, &own_label);
    let name = group.name_of("infrastructure", spec.map(|spec| spec.infrastructure_ref.name.as_str()));
    let infrastructure = object::copy_of_template(&templates.infrastructure, cluster, &name, &own_label);

    let found = running.map(|object| object.metadata.name.as_str());
    let version = found.zip(spec.map(|spec| spec.version.as_str()));
    let version = upgrade.workers_version(&blueprint.topology, group.kind, &topology.name, version)?;
    let name = group.name(found, &class.naming.template)?;
    let texts = group.texts(&topology.metadata, &class.metadata);
    let mut object =
        MachineDeployment { metadata: group.metadata(&name, &texts), ..MachineDeployment::default() };
    let spec = &mut object.spec;
    spec.cluster_name.clone_from(&cluster.metadata.name);
    spec.replicas = topology.replicas;
    spec.selector.match_labels = group.selector();
    spec.rollout = match topology.rollout != MachineDeploymentRolloutSpec::default() {
        true => topology.rollout.clone(),
        false => MachineDeploymentRolloutSpec { after: None, strategy: class.rollout.strategy.clone() },
    };
    let remediation = &topology.health_check.remediation.max_in_flight;
    spec.remediation.max_in_flight =
        remediation.clone().or_else(|| class.health_check.remediation.max_in_flight.clone());
    spec.deletion.order = topology.deletion.order.or(class.deletion.order);
    spec.template.metadata = texts;
    let machines = Machines {
        deletion: [of_machines(&topology.deletion), of_machines(&class.deletion)],
        taints: [&topology.taints, &class.taints],
        min_ready_seconds: [topology.min_ready_seconds, class.min_ready_seconds],
    };
    spec.template.spec = group.machine(version, &bootstrap, &infrastructure, &machines);
    let machine = &mut spec.template.spec;
    let domain = &topology.failure_domain;
    machine.failure_domain = if domain.is_empty() { &class.failure_domain } else { domain }.clone();
    machine.readiness_gates = own_or_class([&topology.readiness_gates, &class.readiness_gates]).to_vec();
    let health_check = health_check::of_deployment(current, class, topology, &object.metadata.name);
    Ok(DesiredDeployment { object, bootstrap, infrastructure, health_check })
}

/// The part that is about single machines.
fn of_machines(deletion: &MachineDeploymentTopologyMachineDeletionSpec) -> MachineDeletionSpec {
    MachineDeletionSpec {
        node_drain_timeout_seconds: deletion.node_drain_timeout_seconds,
        node_volume_detach_timeout_seconds: deletion.node_volume_detach_timeout_seconds,
        node_deletion_timeout_seconds: deletion.node_deletion_timeout_seconds,
    }
}
