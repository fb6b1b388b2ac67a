//! Reads what a decision about a Machine depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineDrainRule, MachineSet, annotation, label};
use capstan_controller::{ApiError, Client, ListOptions, ObserveError, View, Wake};
use capstan_object::{Key, Object};

use super::drain::Plan;
use super::observed::{Observed, ObservedNode};
use super::{cluster_of, deletion_stage, volumes};
use crate::contract::{InfrastructureMachine, look_up};
use crate::workload::{DaemonSet, Namespace, Node, NodeError, Nodes, Pod};

pub(super) async fn observe(
    machine: &Arc<Machine>,
    view: &View,
    nodes: &Nodes,
    wake: Option<&Wake>,
) -> Result<Observed, ObserveError> {
    let namespace = &machine.metadata.namespace;
    let cluster_key = cluster_of(machine);
    let Some(cluster) = view.get::<Cluster>(&cluster_key)? else { return Ok(Observed::default()) };
    let mut seen = Observed {
        set: owning_set(machine, view)?,
        bootstrap: look_up(view, &machine.spec.bootstrap.config_ref, namespace).await?,
        infrastructure: look_up(view, &machine.spec.infrastructure_ref, namespace).await?,
        health: view.workloads().map(|workloads| workloads.health(&cluster_key)).unwrap_or_default(),
        cluster: Some(cluster.clone()),
        ..Observed::default()
    };
    if let Some(name) = seen.set.as_ref().and_then(|set| set.metadata.labels.get(label::DEPLOYMENT_NAME)) {
        seen.deployment = view.get(&Key::new(namespace.as_str(), name.as_str()))?;
    }
    let infrastructure = seen.infrastructure.object();
    let offered =
        infrastructure.and_then(|object| InfrastructureMachine(object).provider_id().ok().flatten());
    let id = if machine.spec.provider_id.is_empty() {
        offered.unwrap_or_default()
    } else {
        machine.spec.provider_id.clone()
    };
    if !id.is_empty() {
        if let Some(wake) = wake {
            nodes.wake_on::<Machine>(&cluster_key, &id, &machine.key(), wake);
        }
        seen.node = match nodes.by_provider_id(view, &cluster_key, &id).await {
            Ok(Some(node)) => ObservedNode::Found(node),
            Ok(None) if machine.metadata.is_deleting() => {
                by_reference(machine, &cluster_key, view, nodes).await
            }
            Ok(None) => ObservedNode::Missing,
            Err(NodeError::Workload(error)) => ObservedNode::NotConnected(error.to_string()),
            Err(error) => ObservedNode::Unusable(error.to_string()),
        };
    }
    if machine.metadata.is_deleting() {
        going(machine, &cluster, view, &mut seen).await?;
    }
    Ok(seen)
}

/// The Node that `status.nodeRef` names, for a deletion: a Node whose providerID was never set, or changed, must not
/// stay behind. A reference to the Node of another machine does not count.
async fn by_reference(machine: &Machine, cluster: &Key, view: &View, nodes: &Nodes) -> ObservedNode {
    let name = &machine.status.node_ref.name;
    if name.is_empty() {
        return ObservedNode::Missing;
    }
    match nodes.by_name(view, cluster, name).await {
        Ok(Some(node)) if is_node_of(&node, machine) => ObservedNode::Found(node),
        Ok(_) => ObservedNode::Missing,
        Err(error) => ObservedNode::NotConnected(error.to_string()),
    }
}

fn is_node_of(node: &Node, machine: &Machine) -> bool {
    match node.metadata.annotations.get(annotation::MACHINE) {
        Some(name) => *name == machine.metadata.name,
        None => node.spec.provider_id.is_empty(),
    }
}

fn owning_set(machine: &Machine, view: &View) -> Result<Option<Arc<MachineSet>>, ObserveError> {
    let owner = machine
        .metadata
        .owner_references
        .iter()
        .find(|owner| owner.kind == MachineSet::KIND.kind && owner.group() == MachineSet::KIND.group);
    match owner {
        Some(owner) => view.get(&Key::new(machine.metadata.namespace.as_str(), owner.name.as_str())),
        None => Ok(None),
    }
}

/// State that only a deletion needs, by stage: these are API requests.
async fn going(
    machine: &Machine,
    cluster: &Cluster,
    view: &View,
    seen: &mut Observed,
) -> Result<(), ObserveError> {
    let namespace = &machine.metadata.namespace;
    seen.control_plane = look_up(view, &cluster.spec.control_plane_ref, namespace).await?;
    let machines = view.labelled::<Machine>(namespace, label::CLUSTER_NAME, &cluster.metadata.name)?;
    let stays = |other: &&Arc<Machine>| {
        !other.metadata.is_deleting() && other.metadata.labels.contains_key(label::CONTROL_PLANE)
    };
    seen.control_plane_machines = machines.iter().filter(stays).count();
    let Some(node) = deletion_stage::node_to_empty(machine, seen, view.now()) else { return Ok(()) };
    let rules = view.list::<MachineDrainRule>(namespace)?;
    let read = async {
        let Some(workloads) = view.workloads() else {
            return Err("this plane reaches no workload clusters".to_owned());
        };
        let client = workloads.client(&cluster.key()).await.map_err(|error| error.to_string())?;
        let found = client.get::<Node>(&Key::new("", node.as_str())).await.map_err(error_chain)?;
        let Some(found) = found else { return Ok((client, Plan::default(), None)) };
        let pods = pods(&client, &node).await.map_err(error_chain)?;
        let plan = if pods.is_empty() {
            Plan::default()
        } else {
            let namespaces = labels_of_namespaces(&client).await.map_err(error_chain)?;
            let sets = daemon_sets(&client, &pods).await.map_err(error_chain)?;
            Plan::new(
                &pods,
                &namespaces,
                &sets,
                &rules,
                machine,
                cluster,
                found.is_unreachable(),
                view.now(),
            )?
        };
        Ok((client, plan, Some(found)))
    };
    let (client, plan, node) = match read.await {
        Ok(read) => read,
        Err(why) => {
            seen.pods = Some(Err(why));
            return Ok(());
        }
    };
    let drained = plan.is_done() || !deletion_stage::drains(machine, seen, view.now());
    if drained && deletion_stage::awaits_volumes(machine, seen, view.now()) {
        seen.volumes = Some(match &node {
            Some(node) if !node.is_unreachable() => {
                volumes::attached(&client, node, &plan).await.map_err(error_chain)
            }
            // A node that is gone or unreachable never reports that it detached a volume.
            _ => Ok(volumes::Attached::default()),
        });
    }
    seen.pods = Some(Ok(plan));
    Ok(())
}

fn error_chain(error: ApiError) -> String {
    let cause = std::error::Error::source(&error);
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

async fn pods(client: &Client, node: &str) -> Result<Vec<Pod>, ApiError> {
    let options =
        ListOptions { fields: format!("spec.nodeName={node}"), limit: Some(100), ..ListOptions::default() };
    client.list_all::<Pod>("", &options).await
}

async fn labels_of_namespaces(
    client: &Client,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, ApiError> {
    let namespaces = client.list_all::<Namespace>("", &ListOptions::default()).await?;
    Ok(namespaces.into_iter().map(|namespace| (namespace.metadata.name, namespace.metadata.labels)).collect())
}

/// Which of the DaemonSets that the pods name exist.
async fn daemon_sets(client: &Client, pods: &[Pod]) -> Result<Vec<Key>, ApiError> {
    let mut named: Vec<Key> = pods
        .iter()
        .filter_map(|pod| Some((pod, pod.metadata.controller()?)))
        .filter(|(_, owner)| owner.kind == DaemonSet::KIND.kind)
        .map(|(pod, owner)| Key::new(pod.metadata.namespace.as_str(), owner.name.as_str()))
        .collect();
    named.sort();
    named.dedup();
    let mut found = Vec::new();
    for key in named {
        if client.get::<DaemonSet>(&key).await?.is_some() {
            found.push(key);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reference_counts_unless_the_node_is_of_another_machine() {
        let mut machine = Machine::default();
        machine.metadata.name = "m".to_owned();
        for (of, provider_id, expected) in [
            (Some("m"), "sim://1", true),
            (Some("m"), "", true),
            (Some("other"), "sim://2", false),
            (None, "", true),
            (None, "sim://2", false),
        ] {
            let mut node = Node::default();
            let of = of.map(|of| (annotation::MACHINE.to_owned(), of.to_owned()));
            node.metadata.annotations.extend(of);
            node.spec.provider_id = provider_id.to_owned();
            assert_eq!(
                is_node_of(&node, &machine),
                expected,
                "{:?} {provider_id}",
                node.metadata.annotations
            );
        }
    }
}
