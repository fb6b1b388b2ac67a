//! What a cluster should consist of: a pure function of its blueprint and of what it consists of now.

mod builtin;
mod control_plane;
mod deployment;
mod health_check;
#[cfg(test)]
mod hook_tests;
pub mod hooks;
pub mod names;
mod object;
pub mod plan;
mod pool;
pub mod rotation;
#[cfg(test)]
mod tests;
pub mod versions;
mod workers;

use std::collections::BTreeMap;

use capstan_capi_core::contract::ContractVersion;
use capstan_capi_types::core::{Cluster, MachineDeployment, MachineHealthCheck, MachinePool, label};
use capstan_capi_types::runtime::hook::HolderReference;
use capstan_controller::KindName;
use capstan_object::Object;
use serde_json::{Map, Value};

use crate::ask::{Answers, Stop};
use crate::blueprint::Blueprint;
use crate::current::Current;
use crate::patches::{self, Holder, Item, Variables, value};
pub use control_plane::{machines_prefix, machines_reference, refer_to_machines};
use hooks::{Calls, Hooks};
pub use object::Intent;
use versions::Upgrade;
pub use workers::{reference, template_prefix};

/// The objects of a cluster as they should be.
#[derive(Debug, Clone)]
pub struct Desired {
    pub infrastructure: Intent,
    pub control_plane_machines: Option<Intent>,
    pub control_plane: Intent,
    pub control_plane_contract: ContractVersion,
    pub control_plane_health_check: Option<MachineHealthCheck>,
    /// By the name in the topology.
    pub deployments: BTreeMap<String, DesiredDeployment>,
    /// By the name in the topology.
    pub pools: BTreeMap<String, DesiredPool>,
    pub upgrade: Upgrade,
    pub hooks: Hooks,
}

#[derive(Debug, Clone)]
pub struct DesiredDeployment {
    pub object: MachineDeployment,
    pub bootstrap: Intent,
    pub infrastructure: Intent,
    pub health_check: Option<MachineHealthCheck>,
}

#[derive(Debug, Clone)]
pub struct DesiredPool {
    pub object: MachinePool,
    pub bootstrap: Intent,
    pub infrastructure: Intent,
}

/// What a cluster should consist of, or why that cannot be said yet.
pub fn compute(blueprint: &Blueprint, current: &Current, answers: &Answers) -> Result<Desired, Stop> {
    let mut calls = Calls::new(&current.cluster, answers);
    if !current.referenced {
        calls.before_create()?;
    }
    let infrastructure = control_plane::infrastructure(blueprint, current)?;
    let control_plane_machines = control_plane::machines(blueprint, current)?;
    let mut upgrade = Upgrade::plan(blueprint, current, answers)?;
    let control_plane =
        control_plane::object(blueprint, current, control_plane_machines.as_ref(), &mut upgrade, &mut calls)?;
    let control_plane_health_check = health_check::of_control_plane(blueprint, current, control_plane.name());
    let mut deployments = BTreeMap::new();
    for topology in &blueprint.topology.workers.machine_deployments {
        let deployment = deployment::deployment(blueprint, current, topology, &mut upgrade)?;
        deployments.insert(topology.name.clone(), deployment);
    }
    let mut pools = BTreeMap::new();
    for topology in &blueprint.topology.workers.machine_pools {
        let pool = pool::pool(blueprint, current, topology, &mut upgrade)?;
        pools.insert(topology.name.clone(), pool);
    }
    let mut desired = Desired {
        infrastructure,
        control_plane_machines,
        control_plane,
        control_plane_contract: blueprint.control_plane.contract,
        control_plane_health_check,
        deployments,
        pools,
        upgrade,
        hooks: Hooks::default(),
    };
    patch(blueprint, current, &mut desired, answers)?;
    desired.infrastructure.without_empty_endpoint();
    desired.control_plane.without_empty_endpoint();
    calls.after(&desired.upgrade)?;
    desired.hooks = calls.hooks;
    Ok(desired)
}

/// Labels and annotations that no patch can change.
const KEPT: [[&str; 3]; 6] = [
    ["metadata", "labels", label::CLUSTER_NAME],
    ["metadata", "labels", label::TOPOLOGY_OWNED],
    ["metadata", "labels", label::TOPOLOGY_DEPLOYMENT_NAME],
    ["metadata", "labels", label::TOPOLOGY_POOL_NAME],
    ["metadata", "annotations", capstan_capi_types::core::annotation::CLONED_FROM_NAME],
    ["metadata", "annotations", capstan_capi_types::core::annotation::CLONED_FROM_GROUP_KIND],
];

/// Fields of a control plane that come from the topology.
const OF_TOPOLOGY: [&[&str]; 16] = [
    &["spec", "machineTemplate", "metadata"],
    &["spec", "machineTemplate", "readinessGates"],
    &["spec", "machineTemplate", "spec", "readinessGates"],
    &["spec", "machineTemplate", "taints"],
    &["spec", "machineTemplate", "spec", "taints"],
    &["spec", "machineTemplate", "infrastructureRef"],
    &["spec", "machineTemplate", "spec", "infrastructureRef"],
    &["spec", "machineTemplate", "nodeDrainTimeout"],
    &["spec", "machineTemplate", "nodeVolumeDetachTimeout"],
    &["spec", "machineTemplate", "nodeDeletionTimeout"],
    &["spec", "machineTemplate", "spec", "deletion", "nodeDrainTimeoutSeconds"],
    &["spec", "machineTemplate", "spec", "deletion", "nodeVolumeDetachTimeoutSeconds"],
    &["spec", "machineTemplate", "spec", "deletion", "nodeDeletionTimeoutSeconds"],
    &["spec", "replicas"],
    &["spec", "version"],
    &["spec", "rollout", "after"],
];

const INTO_TEMPLATE_OF_OBJECT: [(&[&str], &[&str]); 2] = [
    (&["metadata", "labels"], &["spec", "template", "metadata", "labels"]),
    (&["metadata", "annotations"], &["spec", "template", "metadata", "annotations"]),
];
const INTO_TEMPLATE: [(&[&str], &[&str]); 2] = [
    (&["metadata", "labels"], &["metadata", "labels"]),
    (&["metadata", "annotations"], &["metadata", "annotations"]),
];
const INTO_OBJECT: [(&[&str], &[&str]); 3] = [
    (&["spec", "template", "spec"], &["spec"]),
    (&["spec", "template", "metadata", "labels"], &["metadata", "labels"]),
    (&["spec", "template", "metadata", "annotations"], &["metadata", "annotations"]),
];
const OF_TEMPLATE: [(&[&str], &[&str]); 5] = [
    (&["metadata", "labels"], &["metadata", "labels"]),
    (&["metadata", "annotations"], &["metadata", "annotations"]),
    (&["spec", "template", "spec"], &["spec", "template", "spec"]),
    (&["spec", "template", "metadata", "labels"], &["spec", "template", "metadata", "labels"]),
    (&["spec", "template", "metadata", "annotations"], &["spec", "template", "metadata", "annotations"]),
];

/// Runs the templates through the class's patches, and takes over what comes out.
fn patch(
    blueprint: &Blueprint,
    current: &Current,
    desired: &mut Desired,
    answers: &Answers,
) -> Result<(), Stop> {
    let all = &blueprint.class.spec.patches;
    if all.is_empty() {
        return Ok(());
    }
    let topology = &blueprint.topology;
    let variables = Variables {
        values: builtin::values(&topology.variables),
        builtin: builtin::cluster(blueprint, &current.cluster),
        defined: builtin::defined(&blueprint.class),
    };
    let mut items = Vec::new();
    let mut add = |(holder, held_by): (Holder, HolderReference),
                   template: &Value,
                   synced: Value,
                   overrides: Map<String, Value>,
                   builtin: Value| {
        let mut template = template.clone();
        value::copy(&synced, &mut template, fields_into(&holder), &[]);
        items.push(Item { holder, held_by, template, overrides, builtin });
    };
    let cluster = &current.cluster;
    let none = Map::new();
    add(
        (Holder::InfrastructureCluster, held_by(cluster, "spec.infrastructureRef")),
        blueprint.infrastructure.value(),
        desired.infrastructure.body.clone(),
        none,
        Value::Object(Map::new()),
    );
    let of_control_plane = builtin::control_plane(blueprint, desired);
    let overrides = builtin::values(&topology.control_plane.variables.overrides);
    add(
        (Holder::ControlPlane, held_by(cluster, "spec.controlPlaneRef")),
        blueprint.control_plane.value(),
        desired.control_plane.body.clone(),
        overrides.clone(),
        of_control_plane.clone(),
    );
    if let (Some(template), Some(machines)) =
        (&blueprint.control_plane_machines, &desired.control_plane_machines)
    {
        let synced = machines.body.clone();
        let held_by = held_by_control_plane(desired, cluster);
        let holder = (Holder::ControlPlaneMachines, held_by);
        add(holder, template.value(), synced, overrides, of_control_plane);
    }
    for of in &topology.workers.machine_deployments {
        let (Some(deployment), Some((_, templates))) =
            (desired.deployments.get(&of.name), blueprint.deployment_class(&of.class))
        else {
            continue;
        };
        let builtin = builtin::deployment(&of.class, &of.name, deployment);
        let overrides = builtin::values(&of.variables.overrides);
        for (template, intent, field) in [
            (&templates.bootstrap, &deployment.bootstrap, BOOTSTRAP_FIELD),
            (&templates.infrastructure, &deployment.infrastructure, INFRASTRUCTURE_FIELD),
        ] {
            let holder = Holder::Deployment { class: of.class.clone() };
            let holder = (holder, held_by(&deployment.object, field));
            add(holder, template.value(), intent.body.clone(), overrides.clone(), builtin.clone());
        }
    }
    for of in &topology.workers.machine_pools {
        let (Some(pool), Some((_, templates))) =
            (desired.pools.get(&of.name), blueprint.pool_class(&of.class))
        else {
            continue;
        };
        let builtin = builtin::pool(&of.class, &of.name, pool);
        let overrides = builtin::values(&of.variables.overrides);
        for (template, intent, field) in [
            (&templates.bootstrap, &pool.bootstrap, BOOTSTRAP_FIELD),
            (&templates.infrastructure, &pool.infrastructure, INFRASTRUCTURE_FIELD),
        ] {
            let holder = (Holder::Pool { class: of.class.clone() }, held_by(&pool.object, field));
            add(holder, template.value(), intent.body.clone(), overrides.clone(), builtin.clone());
        }
    }
    patches::apply(all, &mut items, &variables, answers)?;
    let kept: Vec<Vec<&str>> = KEPT.iter().map(|path| path.to_vec()).collect();
    let mut items = items.into_iter().map(|item| item.template);
    let mut take = |to: &mut Value, fields: &[(&[&str], &[&str])], preserved: &[Vec<&str>]| {
        if let Some(template) = items.next() {
            value::copy(&template, to, fields, preserved);
        }
    };
    take(&mut desired.infrastructure.body, &INTO_OBJECT, &kept);
    let mut of_topology: Vec<Vec<&str>> = OF_TOPOLOGY.iter().map(|path| path.to_vec()).collect();
    of_topology.extend(kept.iter().cloned());
    take(&mut desired.control_plane.body, &INTO_OBJECT, &of_topology);
    if let Some(machines) = &mut desired.control_plane_machines {
        take(&mut machines.body, &OF_TEMPLATE, &kept);
    }
    for of in &topology.workers.machine_deployments {
        if let Some(deployment) = desired.deployments.get_mut(&of.name) {
            take(&mut deployment.bootstrap.body, &OF_TEMPLATE, &kept);
            take(&mut deployment.infrastructure.body, &OF_TEMPLATE, &kept);
        }
    }
    for of in &topology.workers.machine_pools {
        if let Some(pool) = desired.pools.get_mut(&of.name) {
            take(&mut pool.bootstrap.body, &INTO_OBJECT, &kept);
            take(&mut pool.infrastructure.body, &INTO_OBJECT, &kept);
        }
    }
    Ok(())
}

/// Where workers name their bootstrap template.
const BOOTSTRAP_FIELD: &str = "spec.template.spec.bootstrap.configRef";
/// Where workers name their infrastructure template.
const INFRASTRUCTURE_FIELD: &str = "spec.template.spec.infrastructureRef";

/// The object that uses a template.
fn held_by<T: Object>(object: &T, field: &str) -> HolderReference {
    HolderReference {
        api_version: KindName::of::<T>().api_version(),
        kind: T::KIND.kind.to_owned(),
        namespace: object.metadata().namespace.clone(),
        name: object.metadata().name.clone(),
        field_path: field.to_owned(),
    }
}

fn held_by_control_plane(desired: &Desired, cluster: &Cluster) -> HolderReference {
    let control_plane = &desired.control_plane;
    HolderReference {
        api_version: control_plane.kind.api_version(),
        kind: control_plane.kind.kind.to_string(),
        namespace: cluster.metadata.namespace.clone(),
        name: control_plane.name().to_owned(),
        field_path: control_plane::reference_path(desired.control_plane_contract).join("."),
    }
}

/// Which metadata of a desired object is put into its template for the patches to see.
fn fields_into(holder: &Holder) -> &'static [(&'static [&'static str], &'static [&'static str])] {
    match holder {
        Holder::InfrastructureCluster | Holder::ControlPlane | Holder::Pool { .. } => {
            &INTO_TEMPLATE_OF_OBJECT
        }
        _ => &INTO_TEMPLATE,
    }
}

/// The kind of objects made from a template.
fn kind_of(template: &capstan_capi_core::contract::External) -> KindName {
    capstan_capi_core::clone::kind_of(template)
}
