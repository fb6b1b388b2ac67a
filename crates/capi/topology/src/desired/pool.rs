//! MachinePools of a topology.

use capstan_capi_types::core::topology::MachinePoolTopology;
use capstan_capi_types::core::{MachinePool, annotation, label};
use capstan_object::ObjectMeta;

use super::control_plane::merged;
use super::deployment::{reference, template_prefix};
use super::object::{self, Texts};
use super::versions::{Upgrade, WorkersKind};
use super::{DesiredPool, names};
use crate::blueprint::Blueprint;
use crate::current::Current;

/// Name of a MachinePool if the class has no template for it.
const NAME: &str = "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}";

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
    let running = current.pools.get(&topology.name);
    let own_label = Texts::from([(label::TOPOLOGY_POOL_NAME.to_owned(), topology.name.clone())]);
    let prefix = template_prefix(&cluster.metadata.name, &topology.name);
    let name_of = |known: Option<&str>, role: &str| match known.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => names::joined(&prefix, &names::suffix(cluster, &[role, &topology.name])),
    };
    let spec = running.map(|running| &running.object.spec.template.spec);
    let name = name_of(spec.map(|spec| spec.bootstrap.config_ref.name.as_str()), "pool-bootstrap");
    let bootstrap = object::of_pool(&templates.bootstrap, cluster, &name, &own_label);
    let name = name_of(spec.map(|spec| spec.infrastructure_ref.name.as_str()), "pool-infrastructure");
    let infrastructure = object::of_pool(&templates.infrastructure, cluster, &name, &own_label);

    let found = running.map(|running| {
        let object = &running.object;
        (object.metadata.name.as_str(), object.spec.template.spec.version.as_str())
    });
    let version = upgrade.workers_version(&blueprint.topology, WorkersKind::Pools, &topology.name, found)?;
    let name = match running {
        Some(running) => running.object.metadata.name.clone(),
        None => {
            let naming = if class.naming.template.is_empty() { NAME } else { &class.naming.template };
            let suffix = names::suffix(cluster, &["machine-pool", &topology.name]);
            names::from_template(naming, cluster, Some(("machinePool", &topology.name)), &suffix)?
        }
    };
    let mut labels = merged(&topology.metadata.labels, &class.metadata.labels);
    labels.extend([
        (label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone()),
        (label::TOPOLOGY_OWNED.to_owned(), String::new()),
        (label::TOPOLOGY_POOL_NAME.to_owned(), topology.name.clone()),
    ]);
    let mut annotations = merged(&topology.metadata.annotations, &class.metadata.annotations);
    for name in [annotation::TOPOLOGY_HOLD_UPGRADE_SEQUENCE, annotation::TOPOLOGY_DEFER_UPGRADE] {
        annotations.remove(name);
    }
    let mut object = MachinePool {
        metadata: ObjectMeta::named(cluster.metadata.namespace.as_str(), name.as_str()),
        ..MachinePool::default()
    };
    object.metadata.labels.clone_from(&labels);
    object.metadata.annotations.clone_from(&annotations);
    let spec = &mut object.spec;
    spec.cluster_name.clone_from(&cluster.metadata.name);
    spec.replicas = topology.replicas;
    let domains = &topology.failure_domains;
    spec.failure_domains = if domains.is_empty() { &class.failure_domains } else { domains }.clone();
    spec.template.metadata.labels = labels;
    spec.template.metadata.annotations = annotations;
    let machine = &mut spec.template.spec;
    machine.cluster_name.clone_from(&cluster.metadata.name);
    machine.version = version;
    machine.bootstrap.config_ref = reference(&bootstrap);
    machine.infrastructure_ref = reference(&infrastructure);
    let (own, of_class) = (&topology.deletion, &class.deletion);
    machine.deletion.node_drain_timeout_seconds =
        own.node_drain_timeout_seconds.or(of_class.node_drain_timeout_seconds);
    machine.deletion.node_volume_detach_timeout_seconds =
        own.node_volume_detach_timeout_seconds.or(of_class.node_volume_detach_timeout_seconds);
    machine.deletion.node_deletion_timeout_seconds =
        own.node_deletion_timeout_seconds.or(of_class.node_deletion_timeout_seconds);
    let taints = &topology.taints;
    machine.taints = if taints.is_empty() { &class.taints } else { taints }.clone();
    machine.min_ready_seconds = topology.min_ready_seconds.or(class.min_ready_seconds);
    Ok(DesiredPool { object, bootstrap, infrastructure })
}
