//! Reads what a decision about a MachineHealthCheck depends on, and names what triggers one.

use std::sync::Arc;

use capstan_capi_types::core::{
    Cluster, Machine, MachineHealthCheck, TEMPLATE_SUFFIX, annotation, cluster, label,
};
use capstan_controller::{KindName, ObserveError, View, Watches};
use capstan_object::{Conditions, Key};

use super::observed::{Node, Observed, Target};
use crate::contract::{ContractVersion, Definition, External, Lookup, definition_name};
use crate::paused::concerns_members;
use crate::selector::selects;
use crate::workload::Nodes;

pub async fn observe(
    check: &MachineHealthCheck,
    view: &View,
    nodes: &Nodes,
) -> Result<Observed, ObserveError> {
    let namespace = check.metadata.namespace.as_str();
    let key = Key::new(namespace, check.spec.cluster_name.as_str());
    let Some(cluster) = view.get::<Cluster>(&key)? else { return Ok(Observed::default()) };
    let mut machines = view.labelled::<Machine>(namespace, label::CLUSTER_NAME, &check.spec.cluster_name)?;
    machines.retain(|machine| {
        // An empty selector selects all machines of the cluster, as upstream does.
        let selected =
            check.spec.selector.is_empty() || selects(&check.spec.selector, &machine.metadata.labels);
        selected && !is_left_out(machine)
    });
    let initialized =
        cluster.status.conditions.is_condition_true(cluster::condition::CONTROL_PLANE_INITIALIZED);
    let mut seen = Observed { cluster: Some(cluster), ..Observed::default() };
    if initialized {
        seen.lost_contact = contact(view, &key).await.err();
    }
    let asks = initialized && seen.lost_contact.is_none();
    for machine in machines {
        let mut node = Node::NotYet;
        if asks && !machine.status.node_ref.name.is_empty() {
            let id = machine.spec.provider_id.as_str();
            nodes.wake_on::<MachineHealthCheck>(&key, id, &check.metadata.key(), &view.wake());
            match nodes.by_name(view, &key, &machine.status.node_ref.name).await {
                Ok(Some(found)) => node = Node::There(found.status.conditions.clone()),
                Ok(None) => node = Node::Gone,
                Err(error) => seen.lost_contact = Some(error.to_string()),
            }
        }
        seen.targets.push(Target { machine, node });
    }
    remediation_objects(check, view, &mut seen).await?;
    Ok(seen)
}

/// The machine is paused, or has the skip-remediation annotation.
fn is_left_out(machine: &Machine) -> bool {
    let annotations = &machine.metadata.annotations;
    annotations.contains_key(annotation::PAUSED) || annotations.contains_key(annotation::SKIP_REMEDIATION)
}

/// Checks that the cluster responds. The cached nodes of an unreachable cluster may be stale, and a network partition
/// does not make machines unhealthy.
async fn contact(view: &View, cluster: &Key) -> Result<(), String> {
    let workloads = view.workloads().ok_or("this process reaches no workload clusters")?;
    workloads.client(cluster).await.map_err(|error| error.to_string())?;
    match workloads.health(cluster).failures {
        0 => Ok(()),
        failures => Err(format!("{failures} probes of cluster {cluster} failed")),
    }
}

async fn remediation_objects(
    check: &MachineHealthCheck,
    view: &View,
    seen: &mut Observed,
) -> Result<(), ObserveError> {
    let reference = &check.spec.remediation.template_ref;
    if reference.kind.is_empty() {
        return Ok(());
    }
    let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
    let kind = |kind: &str| {
        let name = definition_name(group, kind);
        let plural = name.split('.').next().unwrap_or_default().to_owned();
        (name, KindName::namespaced(group, version, kind, plural))
    };
    let namespace = check.metadata.namespace.as_str();
    let (definition, template_kind) = kind(&reference.kind);
    seen.remediation_template = Lookup::Missing;
    if view.get::<Definition>(&Key::new("", definition))?.is_none() {
        return Ok(());
    }
    let key = Key::new(namespace, reference.name.as_str());
    if let Some(found) = read(view, &template_kind, &key).await? {
        seen.remediation_template = Lookup::Object(Box::new(found));
    }
    let (definition, request_kind) =
        kind(reference.kind.strip_suffix(TEMPLATE_SUFFIX).unwrap_or(&reference.kind));
    if view.get::<Definition>(&Key::new("", definition))?.is_none() {
        return Ok(());
    }
    for target in &seen.targets {
        let name = target.machine.metadata.name.clone();
        if let Some(request) = read(view, &request_kind, &Key::new(namespace, name.as_str())).await? {
            seen.requests.insert(name, request);
        }
    }
    Ok(())
}

async fn read(view: &View, kind: &KindName, key: &Key) -> Result<Option<External>, ObserveError> {
    let Some(object) = view.external(kind, key).await? else { return Ok(None) };
    let value = object.value().map_err(|error| ObserveError::Unreadable {
        kind: kind.to_string(),
        key: key.clone(),
        why: error.to_string(),
    })?;
    Ok(Some(External::new(kind.clone(), ContractVersion::V1Beta2, value)))
}

/// Watches the machines of its cluster, and the cluster.
pub fn watches(watches: &mut Watches<MachineHealthCheck>) {
    watches
        .related::<Machine>(|change, caches| {
            let matters = |machine: &Arc<Machine>| {
                (
                    machine.status.node_ref.name.clone(),
                    machine.metadata.labels.clone(),
                    machine.metadata.annotations.clone(),
                    machine.status.conditions.clone(),
                    machine.metadata.is_deleting(),
                )
            };
            if change.old.as_ref().map(matters) == change.new.as_ref().map(matters) {
                return Vec::new();
            }
            let cluster =
                change.latest().map(|machine| machine.spec.cluster_name.clone()).unwrap_or_default();
            of_cluster(caches, &change.key.namespace, &cluster)
        })
        .related::<Cluster>(|change, caches| {
            let relevant = |cluster: &Arc<Cluster>| cluster.status.conditions.clone();
            if !concerns_members(change)
                && change.old.as_ref().map(relevant) == change.new.as_ref().map(relevant)
            {
                return Vec::new();
            }
            of_cluster(caches, &change.key.namespace, &change.key.name)
        })
        .index_label::<Machine>(label::CLUSTER_NAME)
        .read::<Definition>();
}

fn of_cluster(caches: &capstan_controller::Caches, namespace: &str, cluster: &str) -> Vec<Key> {
    let checks =
        caches.of::<MachineHealthCheck>().and_then(|cache| cache.list(namespace)).unwrap_or_default();
    let of_cluster = checks.iter().filter(|check| check.spec.cluster_name == cluster);
    of_cluster.map(|check| check.metadata.key()).collect()
}
