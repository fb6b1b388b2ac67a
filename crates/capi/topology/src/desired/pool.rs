//! MachinePools of a topology.

use capstan_capi_types::core::MachinePool;
use capstan_capi_types::core::topology::MachinePoolTopology;

use super::DesiredPool;
use super::object;
use super::versions::{Upgrade, WorkersKind};
use super::workers::{Group, Machines, own_or_class};
use crate::blueprint::Blueprint;
use crate::current::Current;

/// A MachinePool with its bootstrap config and the provider's pool: objects, not templates, and updated in place.
pub(super) fn pool(
    blueprint: &Blueprint,
    current: &Current,
    topology: &MachinePoolTopology,
    upgrade: &mut Upgrade,
) -> Result<DesiredPool, String> {
    let cluster = &current.cluster;
    let (class, templates) = blueprint.pool_class(&topology.class).ok_or_else(|| {
        let class = blueprint.class.metadata.key();
        format!("MachinePool class {} not found in ClusterClass {class}", topology.class)
    })?;
    let group = Group { cluster, kind: WorkersKind::Pools, topology: &topology.name };
    let running = current.pools.get(&topology.name).map(|running| &running.object);
    let spec = running.map(|running| &running.spec.template.spec);
    let own_label = group.own_label();
    let name = group.name_of("pool-bootstrap", spec.map(|spec| spec.bootstrap.config_ref.name.as_str()));
    let bootstrap = object::of_pool(&templates.bootstrap, cluster, &name, &own_label);
    let name = group.name_of("pool-infrastructure", spec.map(|spec| spec.infrastructure_ref.name.as_str()));
    let infrastructure = object::of_pool(&templates.infrastructure, cluster, &name, &own_label);

    let found = running.map(|object| object.metadata.name.as_str());
    let version = found.zip(spec.map(|spec| spec.version.as_str()));
    let version = upgrade.workers_version(&blueprint.topology, group.kind, &topology.name, version)?;
    let name = group.name(found, &class.naming.template)?;
    let texts = group.texts(&topology.metadata, &class.metadata);
    let mut object = MachinePool { metadata: group.metadata(&name, &texts), ..MachinePool::default() };
    let spec = &mut object.spec;
    spec.cluster_name.clone_from(&cluster.metadata.name);
    spec.replicas = topology.replicas;
    spec.failure_domains = own_or_class([&topology.failure_domains, &class.failure_domains]).to_vec();
    spec.template.metadata = texts;
    let machines = Machines {
        deletion: [topology.deletion.clone(), class.deletion.clone()],
        taints: [&topology.taints, &class.taints],
        min_ready_seconds: [topology.min_ready_seconds, class.min_ready_seconds],
    };
    spec.template.spec = group.machine(version, &bootstrap, &infrastructure, &machines);
    Ok(DesiredPool { object, bootstrap, infrastructure })
}
