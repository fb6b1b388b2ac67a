//! Rules about clusters that need their class, and about classes that need their clusters.

use std::time::Duration;

use capstan_apiserver::status::Status;
use capstan_capi_types::admission::{self, FieldError};
use capstan_capi_types::core::cluster_class::condition::VARIABLES_READY;
use capstan_capi_types::core::topology::Topology;
use capstan_capi_types::core::{Cluster, ClusterClass, annotation};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::PendingHooks;
use capstan_controller::KindName;
use capstan_object::{ConditionStatus, Conditions, Key, Object};
use serde::Deserialize;
use serde_json::Value;

use crate::arrival;
use crate::rules::{RelatedObjects, Subject};

const CLASS: &str = "spec.topology.class";
const VERSION: &str = "spec.topology.version";

/// How long a new cluster waits for its class to be reconciled, as upstream.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Most users of a class that a message names.
const MOST_SHOWN: usize = 3;

/// The class of a cluster. None of a cluster without topology, and none of one that goes: it must lose its finalizers
/// whatever its class says.
fn class_of(cluster: &Cluster, namespace: &str) -> Option<Key> {
    if !cluster.has_topology() || cluster.metadata.is_deleting() {
        return None;
    }
    cluster.spec.topology.class_ref.key(namespace)
}

async fn read_class(key: &Key, others: &dyn RelatedObjects) -> Result<Option<ClusterClass>, Status> {
    let class = others.get(&ClusterClass::KIND, key).await?;
    let class = class.map(ClusterClass::deserialize).transpose();
    class.map_err(|error| Status::internal(format!("ClusterClass {key} cannot be read: {error}")))
}

/// The variables in the status of the class are those of its spec.
fn is_reconciled(class: &ClusterClass) -> bool {
    let ready = class.status.conditions.condition(VARIABLES_READY);
    class.metadata.generation == class.status.observed_generation
        && ready.is_some_and(|condition| condition.status != ConditionStatus::False)
}

/// The class, if its variables are known. A cluster is often created right after its class, so that is waited for.
async fn reconciled_class(
    key: &Key,
    is_new: bool,
    others: &dyn RelatedObjects,
) -> Result<Option<ClusterClass>, Status> {
    let mut waited = Duration::ZERO;
    loop {
        let Some(class) = read_class(key, others).await? else { return Ok(None) };
        if is_reconciled(&class) {
            return Ok(Some(class));
        }
        if !is_new || waited >= PATIENCE {
            return Ok(None);
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        waited += BETWEEN_LOOKS;
    }
}

/// Adds the defaults of the class's variables to a cluster, and validates variables with the same class. Returns whether
/// anything was added.
pub(crate) async fn default_variables(
    subject: Subject<'_>,
    object: &mut Value,
    old: Option<&Value>,
    others: &dyn RelatedObjects,
) -> Result<bool, Status> {
    let Ok(cluster) = Cluster::deserialize(&*object) else { return Ok(false) };
    let Some(key) = class_of(&cluster, subject.namespace) else { return Ok(false) };
    let Some(class) = reconciled_class(&key, old.is_none(), others).await? else { return Ok(false) };
    let old = old.and_then(|old| Cluster::deserialize(old).ok());
    let mut topology = cluster.spec.topology.clone();
    let mut errors = admission::default_variables(&mut topology, &class).err().unwrap_or_default();
    let before = old.as_ref().map(|old| &old.spec.topology);
    errors.extend(admission::validate_variables(&topology, before, &class));
    if !errors.is_empty() {
        return Err(Status::invalid(subject.group, subject.kind, subject.name, errors.as_slice()));
    }
    write_variables(object, &cluster.spec.topology, &topology)
        .map_err(|error| Status::internal(format!("defaults of variables cannot be written: {error}")))
}

/// Writes the variables that differ, and nothing else: a typed value omits empty fields of the user's object.
fn write_variables(object: &mut Value, given: &Topology, defaulted: &Topology) -> serde_json::Result<bool> {
    if given == defaulted {
        return Ok(false);
    }
    let topology = &mut object["spec"]["topology"];
    if given.variables != defaulted.variables {
        topology["variables"] = serde_json::to_value(&defaulted.variables)?;
    }
    if given.control_plane != defaulted.control_plane {
        let overrides = &defaulted.control_plane.variables.overrides;
        topology["controlPlane"]["variables"]["overrides"] = serde_json::to_value(overrides)?;
    }
    if given.workers == defaulted.workers {
        return Ok(true);
    }
    let workers = &mut topology["workers"];
    let deployments = given.workers.machine_deployments.iter().zip(&defaulted.workers.machine_deployments);
    for (at, (given, defaulted)) in deployments.enumerate() {
        if given != defaulted {
            let overrides = serde_json::to_value(&defaulted.variables.overrides)?;
            workers["machineDeployments"][at]["variables"]["overrides"] = overrides;
        }
    }
    let pools = given.workers.machine_pools.iter().zip(&defaulted.workers.machine_pools);
    for (at, (given, defaulted)) in pools.enumerate() {
        if given != defaulted {
            let overrides = serde_json::to_value(&defaulted.variables.overrides)?;
            workers["machinePools"][at]["variables"]["overrides"] = overrides;
        }
    }
    Ok(true)
}

/// What the class of a cluster says about it, or about the change from `old`. A class that does not exist yet says
/// nothing about a new cluster: the controller reports later what does not fit.
pub(crate) async fn validate_cluster(
    subject: Subject<'_>,
    object: &Value,
    old: Option<&Value>,
    others: &dyn RelatedObjects,
    warnings: &mut Vec<String>,
) -> Result<Vec<FieldError>, Status> {
    let Ok(cluster) = Cluster::deserialize(object) else { return Ok(Vec::new()) };
    let Some(key) = class_of(&cluster, subject.namespace) else { return Ok(Vec::new()) };
    let old = old.and_then(|old| Cluster::deserialize(old).ok());
    let Some(class) = read_class(&key, others).await? else {
        warnings.push(format!(
            "Cluster refers to ClusterClass {key}, but this ClusterClass does not exist. Cluster topology has not been \
             fully validated. The ClusterClass must be created to reconcile the Cluster"
        ));
        // Whatever else is written, such as labels, does not depend on the class.
        let changed = old.is_some_and(|old| old.spec.topology != cluster.spec.topology);
        let missing = || FieldError::internal(CLASS, format!("ClusterClass {key} not found"));
        return Ok(changed.then(missing).into_iter().collect());
    };
    if !is_reconciled(&class) {
        warnings.push(format!(
            "Cluster refers to ClusterClass {key}, but this ClusterClass hasn't been successfully reconciled. Cluster \
             topology has not been fully validated. Please take a look at the ClusterClass status"
        ));
    }
    let mut errors = admission::validate_with_class(&cluster, old.as_ref(), &class);
    errors.extend(admission::scaled_by_class(&cluster, &class));
    let Some(old) = old else { return Ok(errors) };
    let Some(before) = class_of(&old, subject.namespace) else { return Ok(errors) };
    if cluster.metadata.annotations.contains_key(annotation::TOPOLOGY_UNSAFE_UPDATE_VERSION) {
        warnings.push(format!(
            "Skipping version validation for Cluster because annotation {:?} is set.",
            annotation::TOPOLOGY_UNSAFE_UPDATE_VERSION
        ));
    }
    if let Some(version) = admission::version_to_arrive(&cluster, &old, &class) {
        errors.extend(not_arrived(subject, &cluster, &old, &version, others).await?);
    }
    if before != key {
        match read_class(&before, others).await? {
            Some(before) => errors.extend(admission::incompatibilities(&before, &class)),
            None => {
                let message = format!(
                    "valid ClusterClass with name \"{before}\" could not be retrieved, change from class \"{before}\" to \
                     class \"{key}\" cannot be validated: it does not exist"
                );
                errors.push(FieldError::forbidden(CLASS, message));
            }
        }
    }
    Ok(errors)
}

/// Why the version cannot be changed now: the whole cluster must have the one before.
async fn not_arrived(
    subject: Subject<'_>,
    cluster: &Cluster,
    old: &Cluster,
    version: &str,
    others: &dyn RelatedObjects,
) -> Result<Option<FieldError>, Status> {
    let text = cluster.spec.topology.version.as_str();
    let problems = arrival::problems(subject.namespace, old, version, others).await?;
    let message = match problems.as_slice() {
        // Upstream checks this first. It is due in every upgrade here, so that the rest would never be reported.
        [] if PendingHooks::of(&cluster.metadata.annotations).contains(Hook::AfterClusterUpgrade) => {
            format!(
                "version cannot be changed when the \"{}\" hook is still blocking",
                Hook::AfterClusterUpgrade
            )
        }
        [] => return Ok(None),
        [only] => format!("version cannot be changed: {only}"),
        several => format!("version cannot be changed: [{}]", several.join(", ")),
    };
    Ok(Some(FieldError::invalid(VERSION, text, message)))
}

/// The clusters of a class, in all namespaces.
async fn clusters_of(class: &Key, others: &dyn RelatedObjects) -> Result<Vec<Cluster>, Status> {
    let clusters = others.list(&KindName::of::<Cluster>(), "", &[]).await?;
    let clusters = clusters.iter().filter_map(|cluster| Cluster::deserialize(cluster).ok());
    let uses = |cluster: &Cluster| {
        cluster.spec.topology.class_ref.key(&cluster.metadata.namespace).as_ref() == Some(class)
    };
    Ok(clusters.filter(uses).collect())
}

/// What clusters of a class need and a change of it would take away.
pub(crate) async fn validate_class(
    subject: Subject<'_>,
    object: &Value,
    old: &Value,
    others: &dyn RelatedObjects,
) -> Result<Vec<FieldError>, Status> {
    let (Ok(new), Ok(old)) = (ClusterClass::deserialize(object), ClusterClass::deserialize(old)) else {
        return Ok(Vec::new());
    };
    if new.spec == old.spec {
        return Ok(Vec::new());
    }
    let clusters = clusters_of(&Key::new(subject.namespace, subject.name), others).await?;
    Ok(admission::validate_class_in_use(&old, &new, &clusters))
}

/// A class that clusters use cannot be deleted.
pub(crate) async fn validate_deletion(
    subject: Subject<'_>,
    others: &dyn RelatedObjects,
) -> Result<(), Status> {
    let clusters = clusters_of(&Key::new(subject.namespace, subject.name), others).await?;
    if clusters.is_empty() {
        return Ok(());
    }
    let mut users: Vec<String> =
        clusters.iter().take(MOST_SHOWN).map(|cluster| cluster.key().to_string()).collect();
    if clusters.len() > MOST_SHOWN {
        users.push(format!("... ({} more)", clusters.len() - MOST_SHOWN));
    }
    let why =
        format!("ClusterClass cannot be deleted because it is used by Cluster(s): {}", users.join(", "));
    Err(Status::forbidden(subject.group, subject.kind, subject.name, why))
}

#[cfg(test)]
mod tests {
    use capstan_capi_types::core::topology::ClusterVariable;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_variables_are_written() {
        let mut object = json!({"spec": {"topology": {
            "classRef": {"name": "k"},
            "controlPlane": {"metadata": {}},
            "workers": {"machineDeployments": [
                {"class": "a", "name": "one", "metadata": {}},
                {"class": "a", "name": "two", "variables": {"overrides": [{"name": "p", "value": {}}]}},
            ]},
        }}});
        let given = Cluster::deserialize(&object).expect("a cluster").spec.topology;
        assert!(!write_variables(&mut object.clone(), &given, &given).expect("JSON"));
        let mut defaulted = given.clone();
        let variable = |value: Value| vec![ClusterVariable { name: "p".to_owned(), value }];
        defaulted.variables = variable(json!(1));
        defaulted.workers.machine_deployments[1].variables.overrides = variable(json!({"port": 80}));
        assert!(write_variables(&mut object, &given, &defaulted).expect("JSON"));
        assert_eq!(
            object,
            json!({"spec": {"topology": {
                "classRef": {"name": "k"},
                "controlPlane": {"metadata": {}},
                "variables": [{"name": "p", "value": 1}],
                "workers": {"machineDeployments": [
                    {"class": "a", "name": "one", "metadata": {}},
                    {"class": "a", "name": "two", "variables": {"overrides": [{"name": "p", "value": {"port": 80}}]}},
                ]},
            }}})
        );
    }
}
