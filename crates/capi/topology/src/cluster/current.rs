//! Reads the templates of a class, and what a cluster consists of.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::clone;
use capstan_capi_core::contract::{ContractVersion, Definition, External, definition_name, kind_name};
use capstan_capi_types::core::cluster_class::ClusterClassTemplateReference;
use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{
    Cluster, ClusterClass, ContractVersionedObjectReference, Machine, MachineDeployment, MachineHealthCheck,
    MachinePool, label,
};
use capstan_controller::{KindName, ObserveError, View};
use capstan_object::Key;

use crate::blueprint::{Blueprint, WorkerTemplates};
use crate::current::{Current, CurrentDeployment, CurrentPool};
use crate::desired::{Desired, machines_reference};

/// A reading, or what is wrong with what was read.
type Reading<T> = Result<Result<T, String>, ObserveError>;

/// Passes on what is wrong.
macro_rules! read {
    ($reading:expr) => {
        match $reading {
            Ok(found) => found,
            Err(why) => return Ok(Err(why)),
        }
    };
}

/// The contract that a version of a kind follows.
fn contract_of(definition: &Definition, version: &str) -> Option<ContractVersion> {
    [ContractVersion::V1Beta2, ContractVersion::V1Beta1].into_iter().find(|contract| {
        let versions = definition.metadata.labels.get(contract.label());
        versions.is_some_and(|versions| versions.split('_').any(|known| known == version))
    })
}

/// Reads a template that a class names.
pub(crate) async fn template(
    view: &View,
    reference: &ClusterClassTemplateReference,
    namespace: &str,
) -> Reading<External> {
    let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
    let name = definition_name(group, &reference.kind);
    let Some(definition) = view.get::<Definition>(&Key::new("", name.as_str()))? else {
        return Ok(Err(format!("{name} is not installed, which the ClusterClass refers to")));
    };
    let Some(contract) = contract_of(&definition, version) else {
        return Ok(Err(format!("{name} has no version {version} that follows a contract of Cluster API")));
    };
    let kind = kind_name(group, version, &reference.kind);
    match object(view, &kind, contract, namespace, &reference.name).await? {
        Some(template) => Ok(Ok(template)),
        None => Ok(Err(format!("{} {namespace}/{} does not exist", reference.kind, reference.name))),
    }
}

/// An object of a provider; `None` if it is not there.
pub(super) async fn object(
    view: &View,
    kind: &KindName,
    contract: ContractVersion,
    namespace: &str,
    name: &str,
) -> Result<Option<External>, ObserveError> {
    let key = Key::new(namespace, name);
    let Some(found) = view.external(kind, &key).await? else { return Ok(None) };
    let mut value = found.value().map_err(|error| ObserveError::Unreadable {
        kind: kind.kind.to_string(),
        key,
        why: error.to_string(),
    })?;
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.as_ref().into();
    Ok(Some(External::new(kind.clone(), contract, value)))
}

pub(super) async fn blueprint(
    view: &View,
    class: &Arc<ClusterClass>,
    topology: Topology,
) -> Reading<Blueprint> {
    let namespace = class.metadata.namespace.as_str();
    let spec = &class.spec;
    let infrastructure = read!(template(view, &spec.infrastructure.template_ref, namespace).await?);
    let control_plane = read!(template(view, &spec.control_plane.template_ref, namespace).await?);
    let machines = &spec.control_plane.machine_infrastructure.template_ref;
    let control_plane_machines = match machines.is_defined() {
        true => Some(read!(template(view, machines, namespace).await?)),
        false => None,
    };
    let mut deployments = BTreeMap::new();
    for class in &spec.workers.machine_deployments {
        // Only what the cluster uses.
        if !topology.workers.machine_deployments.iter().any(|of| of.class == class.class) {
            continue;
        }
        let templates = WorkerTemplates {
            bootstrap: read!(template(view, &class.bootstrap.template_ref, namespace).await?),
            infrastructure: read!(template(view, &class.infrastructure.template_ref, namespace).await?),
        };
        deployments.insert(class.class.clone(), templates);
    }
    let mut pools = BTreeMap::new();
    for class in &spec.workers.machine_pools {
        if !topology.workers.machine_pools.iter().any(|of| of.class == class.class) {
            continue;
        }
        let templates = WorkerTemplates {
            bootstrap: read!(template(view, &class.bootstrap.template_ref, namespace).await?),
            infrastructure: read!(template(view, &class.infrastructure.template_ref, namespace).await?),
        };
        pools.insert(class.class.clone(), templates);
    }
    Ok(Ok(Blueprint {
        class: class.clone(),
        topology,
        infrastructure,
        control_plane,
        control_plane_machines,
        deployments,
        pools,
    }))
}

/// What a reference names, in the version of the class's template.
async fn referenced(
    view: &View,
    reference: &ContractVersionedObjectReference,
    kind: &KindName,
    contract: ContractVersion,
    namespace: &str,
    field: &str,
) -> Reading<External> {
    if (reference.api_group.as_str(), reference.kind.as_str()) != (&*kind.group, &*kind.kind) {
        return Ok(Err(format!(
            "{field} is a {}.{} and the ClusterClass has {}.{}: kinds cannot be changed, go back to the class before",
            reference.kind, reference.api_group, kind.kind, kind.group
        )));
    }
    let found = object(view, kind, contract, namespace, &reference.name).await?;
    let Some(found) = found else {
        return Ok(Err(format!("{} {namespace}/{} does not exist", reference.kind, reference.name)));
    };
    match found.metadata.labels.contains_key(label::TOPOLOGY_OWNED) {
        true => Ok(Ok(found)),
        false => Ok(Err(format!("{} {namespace}/{} is not topology owned", reference.kind, reference.name))),
    }
}

pub(super) async fn current(view: &View, cluster: &Arc<Cluster>, blueprint: &Blueprint) -> Reading<Current> {
    let namespace = cluster.metadata.namespace.as_str();
    let name = cluster.metadata.name.as_str();
    let mut current = Current {
        cluster: Cluster::clone(cluster),
        referenced: cluster.spec.infrastructure_ref.is_defined()
            && cluster.spec.control_plane_ref.is_defined(),
        ..Current::default()
    };
    if current.referenced {
        let (kind, contract) = (clone::kind_of(&blueprint.infrastructure), blueprint.infrastructure.contract);
        let reference = &cluster.spec.infrastructure_ref;
        let found = referenced(view, reference, &kind, contract, namespace, "spec.infrastructureRef").await?;
        current.infrastructure = Some(read!(found));
        let (kind, contract) = (clone::kind_of(&blueprint.control_plane), blueprint.control_plane.contract);
        let reference = &cluster.spec.control_plane_ref;
        let found = referenced(view, reference, &kind, contract, namespace, "spec.controlPlaneRef").await?;
        current.control_plane = Some(read!(found));
        if let (Some(template), Some(name)) =
            (&blueprint.control_plane_machines, current.control_plane.as_ref().and_then(machines_reference))
        {
            current.control_plane_machines =
                object(view, &template.kind, template.contract, namespace, &name).await?;
        }
    }
    for check in view.labelled::<MachineHealthCheck>(namespace, label::CLUSTER_NAME, name)? {
        if check.metadata.labels.contains_key(label::TOPOLOGY_OWNED) {
            current.health_checks.insert(check.metadata.name.clone(), check);
        }
    }
    let machines = view.labelled::<Machine>(namespace, label::CLUSTER_NAME, name)?;
    for deployment in view.labelled::<MachineDeployment>(namespace, label::CLUSTER_NAME, name)? {
        let labels = &deployment.metadata.labels;
        let (true, Some(topology)) =
            (labels.contains_key(label::TOPOLOGY_OWNED), labels.get(label::TOPOLOGY_DEPLOYMENT_NAME))
        else {
            continue;
        };
        let topology = topology.clone();
        if current.deployments.contains_key(&topology) {
            return Ok(Err(format!(
                "several MachineDeployments have the label {}={topology}: delete all but one",
                label::TOPOLOGY_DEPLOYMENT_NAME
            )));
        }
        let version = &deployment.spec.template.spec.version;
        let upgrading = machines.iter().any(|machine| {
            machine.metadata.labels.get(label::TOPOLOGY_DEPLOYMENT_NAME) == Some(&topology)
                && !machine.metadata.labels.contains_key(label::CONTROL_PLANE)
                && machine.spec.version != *version
        });
        let of = blueprint.topology.workers.machine_deployments.iter().find(|of| of.name == topology);
        let templates = of.and_then(|of| blueprint.deployments.get(&of.class));
        let (mut bootstrap, mut infrastructure) = (None, None);
        if let (Some(templates), false) = (templates, deployment.metadata.is_deleting()) {
            let spec = &deployment.spec.template.spec;
            let (kind, contract) = (&templates.bootstrap.kind, templates.bootstrap.contract);
            bootstrap = object(view, kind, contract, namespace, &spec.bootstrap.config_ref.name).await?;
            let template = &templates.infrastructure;
            let field = format!("infrastructureRef of MachineDeployment {}", deployment.metadata.name);
            let found = referenced(
                view,
                &spec.infrastructure_ref,
                &template.kind,
                template.contract,
                namespace,
                &field,
            );
            infrastructure = Some(read!(found.await?));
        }
        current
            .deployments
            .insert(topology, CurrentDeployment { object: deployment, bootstrap, infrastructure, upgrading });
    }
    for pool in view.labelled::<MachinePool>(namespace, label::CLUSTER_NAME, name)? {
        let labels = &pool.metadata.labels;
        let (true, Some(topology)) =
            (labels.contains_key(label::TOPOLOGY_OWNED), labels.get(label::TOPOLOGY_POOL_NAME))
        else {
            continue;
        };
        let topology = topology.clone();
        if current.pools.contains_key(&topology) {
            return Ok(Err(format!(
                "several MachinePools have the label {}={topology}: delete all but one",
                label::TOPOLOGY_POOL_NAME
            )));
        }
        let found = read!(self::pool(view, pool, blueprint, &topology).await?);
        current.pools.insert(topology, found);
    }
    Ok(Ok(current))
}

/// A MachinePool with its objects, in the versions of the class's templates.
async fn pool(
    view: &View,
    pool: Arc<MachinePool>,
    blueprint: &Blueprint,
    topology: &str,
) -> Reading<CurrentPool> {
    let of = blueprint.topology.workers.machine_pools.iter().find(|of| of.name == topology);
    let templates = of.and_then(|of| blueprint.pools.get(&of.class));
    let (mut bootstrap, mut infrastructure) = (None, None);
    if let (Some(templates), false) = (templates, pool.metadata.is_deleting()) {
        let namespace = pool.metadata.namespace.as_str();
        let spec = &pool.spec.template.spec;
        for (template, reference, found, field) in [
            (&templates.bootstrap, &spec.bootstrap.config_ref, &mut bootstrap, "bootstrap.configRef"),
            (&templates.infrastructure, &spec.infrastructure_ref, &mut infrastructure, "infrastructureRef"),
        ] {
            let field = format!("{field} of MachinePool {}", pool.metadata.name);
            let kind = clone::kind_of(template);
            let read = referenced(view, reference, &kind, template.contract, namespace, &field);
            *found = Some(read!(read.await?));
        }
    }
    let upgrading = CurrentPool::is_upgrading(&pool);
    Ok(Ok(CurrentPool { object: pool, bootstrap, infrastructure, upgrading }))
}

/// Objects that were created before the cluster named them.
pub(super) async fn created(
    view: &View,
    current: &mut Current,
    desired: &Desired,
) -> Result<(), ObserveError> {
    let namespace = current.cluster.metadata.namespace.clone();
    let contract = desired.control_plane_contract;
    let find = async |intent: &crate::desired::Intent| {
        object(view, &intent.kind, contract, &namespace, intent.name()).await
    };
    current.infrastructure = find(&desired.infrastructure).await?;
    current.control_plane = find(&desired.control_plane).await?;
    if let Some(machines) = &desired.control_plane_machines {
        current.control_plane_machines = find(machines).await?;
    }
    Ok(())
}
