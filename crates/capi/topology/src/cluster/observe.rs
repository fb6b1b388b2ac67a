//! Reads what a decision about a topology depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use capstan_capi_core::contract::External;
use capstan_capi_core::paused;
use capstan_capi_types::admission;
use capstan_capi_types::core::{
    Cluster, ClusterClass, ContractVersionedObjectReference, MachineSet, cluster_class, label,
};
use capstan_controller::{KindName, ObjectRef, ObserveError, View};
use capstan_object::{Condition, ConditionStatus, Key, Object};

use super::asking;
use super::current::{blueprint, created, current, object};
use super::observed::{Difference, Observed, Topology};
use super::{ClusterTopologies, class_of};
use crate::current::Current;
use crate::desired::{self, Desired, rotation};

pub(super) async fn observe(
    controller: &ClusterTopologies,
    cluster: &Arc<Cluster>,
    view: &View,
) -> Result<Observed, ObserveError> {
    if paused::why(Some(cluster), &cluster.metadata, Cluster::KIND.kind).is_some() {
        // Nothing is asked of extensions meanwhile.
        return Ok(Observed::NotManaged);
    }
    if cluster.metadata.is_deleting() && cluster.has_topology() {
        return asking::deletion(controller, view, cluster).await;
    }
    let Some(class) = class_of(cluster).filter(|_| !cluster.metadata.is_deleting()) else {
        return Ok(Observed::NotManaged);
    };
    let Some(class) = view.get::<ClusterClass>(&class)? else {
        return Ok(Observed::NoClass(format!("ClusterClass {class} does not exist")));
    };
    if class.status.conditions.iter().any(is_failed_discovery) {
        return Ok(Observed::Failed(format!(
            "ClusterClass {} is not successfully reconciled: status of its VariablesReady condition must be True",
            class.metadata.key()
        )));
    }
    if class.metadata.generation != class.status.observed_generation {
        return Ok(Observed::ClassNotReconciled);
    }
    let mut topology = cluster.spec.topology.clone();
    if let Err(errors) = admission::default_variables(&mut topology, &class) {
        return Ok(Observed::Failed(joined(&errors)));
    }
    let mut defaulted = Cluster::clone(cluster);
    defaulted.spec.topology = topology.clone();
    let errors = admission::validate_with_class(&defaulted, None, &class);
    if !errors.is_empty() {
        return Ok(Observed::Failed(joined(&errors)));
    }
    let blueprint = match blueprint(view, &class, topology).await? {
        Ok(blueprint) => blueprint,
        Err(why) => return Ok(Observed::Failed(why)),
    };
    let mut current = match current(view, cluster, &blueprint).await? {
        Ok(current) => current,
        Err(why) => return Ok(Observed::Failed(why)),
    };
    let mut desired = match asking::desired(controller, view, &blueprint, &current).await? {
        Ok(desired) => desired,
        Err(stopped) => return Ok(stopped),
    };
    let mut differences = BTreeMap::new();
    if current.referenced {
        differences = compare(controller, view, &current, &mut desired).await?;
    } else {
        created(view, &mut current, &desired).await?;
    }
    let orphans = orphans(view, &current, &desired).await?;
    let extended = class.spec.patches.iter().any(|patch| patch.external.is_some());
    Ok(Observed::Topology(Box::new(Topology { current, desired, differences, orphans, extended })))
}

fn is_failed_discovery(condition: &Condition) -> bool {
    condition.kind == cluster_class::condition::VARIABLES_READY && condition.status == ConditionStatus::False
}

fn joined(errors: &[admission::FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Where things differ from what is desired. Templates that differ are replaced.
async fn compare(
    controller: &ClusterTopologies,
    view: &View,
    current: &Current,
    desired: &mut Desired,
) -> Result<BTreeMap<ObjectRef, Difference>, ObserveError> {
    let cluster = current.cluster.key();
    let mut found = BTreeMap::new();
    let mut note = |target: ObjectRef, difference: Option<Difference>| {
        found.extend(difference.map(|difference| (target, difference)));
    };
    if let Some(running) = &current.infrastructure {
        let difference = controller.difference(view, &cluster, &desired.infrastructure, running).await?;
        note(desired.infrastructure.reference(), difference);
    }
    if let Some(check) = &desired.control_plane_health_check
        && let Some(running) = current.health_checks.get(&check.metadata.name)
    {
        note(ObjectRef::to(check), controller.difference_of(view, &cluster, check, running).await?);
    }
    if !desired.upgrade.control_plane_pending {
        if let (Some(machines), Some(running)) =
            (&desired.control_plane_machines, &current.control_plane_machines)
        {
            let difference = controller.difference(view, &cluster, machines, running).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_control_plane_machines(desired, &current.cluster);
            } else {
                note(machines.reference(), difference);
            }
        }
        if let Some(running) = &current.control_plane {
            let difference = controller.difference(view, &cluster, &desired.control_plane, running).await?;
            note(desired.control_plane.reference(), difference);
        }
    }
    for (name, deployment) in &mut desired.deployments {
        let Some(running) = current.deployments.get(name) else { continue };
        if let Some(check) = &deployment.health_check
            && let Some(running) = current.health_checks.get(&check.metadata.name)
        {
            note(ObjectRef::to(check), controller.difference_of(view, &cluster, check, running).await?);
        }
        let held = desired.upgrade.deployments.pending.contains(&running.object.metadata.name);
        if held || running.object.metadata.is_deleting() {
            continue;
        }
        if let Some(template) = &running.infrastructure {
            let difference =
                controller.difference(view, &cluster, &deployment.infrastructure, template).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_infrastructure(deployment, &current.cluster, name);
            } else {
                note(deployment.infrastructure.reference(), difference);
            }
        }
        if let Some(template) = &running.bootstrap {
            let difference = controller.difference(view, &cluster, &deployment.bootstrap, template).await?;
            if difference == Some(Difference::Spec) {
                rotation::rotate_bootstrap(deployment, &current.cluster, name);
            } else {
                note(deployment.bootstrap.reference(), difference);
            }
        }
        let difference =
            controller.difference_of(view, &cluster, &deployment.object, &running.object).await?;
        note(ObjectRef::to(&deployment.object), difference);
    }
    for (name, pool) in &desired.pools {
        let Some(running) = current.pools.get(name) else { continue };
        let held = desired.upgrade.pools.pending.contains(&running.object.metadata.name);
        if held || running.object.metadata.is_deleting() {
            continue;
        }
        for (intent, found) in
            [(&pool.infrastructure, &running.infrastructure), (&pool.bootstrap, &running.bootstrap)]
        {
            if let Some(found) = found {
                note(intent.reference(), controller.difference(view, &cluster, intent, found).await?);
            }
        }
        let difference = controller.difference_of(view, &cluster, &pool.object, &running.object).await?;
        note(ObjectRef::to(&pool.object), difference);
    }
    Ok(found)
}

/// Templates made for the cluster that neither it nor a MachineSet uses.
async fn orphans(view: &View, current: &Current, desired: &Desired) -> Result<Vec<External>, ObserveError> {
    let cluster = &current.cluster.metadata;
    let namespace = cluster.namespace.as_str();
    let mut kinds: BTreeSet<KindName> = BTreeSet::new();
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    let mut uses = |kind: &str, name: &str| {
        used.insert((kind.to_owned(), name.to_owned()));
    };
    let wanted = desired.control_plane_machines.iter();
    let of_deployments = desired.deployments.values().flat_map(|it| [&it.bootstrap, &it.infrastructure]);
    for intent in wanted.chain(of_deployments) {
        kinds.insert(intent.kind.clone());
        uses(&intent.kind.kind, intent.name());
    }
    if let Some(running) = &current.control_plane
        && let (Some(name), Some(machines)) =
            (desired::machines_reference(running), &desired.control_plane_machines)
    {
        uses(&machines.kind.kind, &name);
    }
    let mut refers = |reference: &ContractVersionedObjectReference| uses(&reference.kind, &reference.name);
    for running in current.deployments.values() {
        let spec = &running.object.spec.template.spec;
        refers(&spec.bootstrap.config_ref);
        refers(&spec.infrastructure_ref);
    }
    for set in view.labelled::<MachineSet>(namespace, label::CLUSTER_NAME, &cluster.name)? {
        refers(&set.spec.template.spec.bootstrap.config_ref);
        refers(&set.spec.template.spec.infrastructure_ref);
    }
    let mut orphans = Vec::new();
    for kind in kinds {
        let templates = view.external_labelled(&kind, namespace, label::CLUSTER_NAME, &cluster.name).await?;
        for template in templates {
            let meta = template.metadata();
            let is_used = used.contains(&(kind.kind.to_string(), meta.name.clone()));
            let owned = meta.labels.contains_key(label::TOPOLOGY_OWNED)
                && meta.owner_references.iter().any(|owner| owner.uid == cluster.uid);
            if is_used || !owned || meta.is_deleting() {
                continue;
            }
            let key = Key::new(namespace, meta.name.as_str());
            let contract = desired.control_plane_contract;
            orphans.extend(object(view, &kind, contract, &key.namespace, &key.name).await?);
        }
    }
    Ok(orphans)
}
