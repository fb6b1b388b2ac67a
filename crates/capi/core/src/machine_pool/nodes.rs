//! The Nodes of a pool: references, counts, annotations, and the end of those that are no longer part of it.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::{Deprecated, MachinePool, annotation};
use capstan_capi_types::kubernetes::ObjectReference;
use capstan_controller::{Effect, Note, Wait};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::decide::{Decided, Looked};
use super::observed::ObservedNodes;
use crate::contract::{External, InfrastructureMachine};
use crate::machine::{MachineCall, UNINITIALIZED};
use crate::workload::Node;

/// Requeue interval while the workload cluster is unreachable; reconnecting triggers a reconcile earlier in most cases.
const NOT_CONNECTED_AGAIN: Duration = Duration::from_secs(20);

/// The Node of an infrastructure machine.
pub(super) fn of_machine<'a>(look: &'a Looked, machine: &External) -> Option<&'a Node> {
    let ObservedNodes::Known { by_id, .. } = &look.seen.nodes else { return None };
    let id = InfrastructureMachine(machine).provider_id().ok().flatten()?;
    by_id.get(&id).map(|node| &**node)
}

/// Sets `nodeRefs` and the counts that derive from Nodes, deletes retired Nodes and annotates the others.
pub(super) fn follow(look: &Looked, decision: &mut Decided) {
    let ids = decision.object.spec.provider_id_list.clone();
    let (by_id, referenced) = match &look.seen.nodes {
        ObservedNodes::Known { by_id, referenced } => (by_id, referenced),
        ObservedNodes::NotAsked => {
            if ids.is_empty() && decision.object.spec.replicas == Some(0) {
                decision.object.status.node_refs.clear();
                count(decision, &[], look.now);
            }
            return;
        }
        ObservedNodes::NotConnected(why) => {
            decision.wait(Wait::on("ConnectionDown", why.clone())).again_in(NOT_CONNECTED_AGAIN);
            return;
        }
    };
    if ids.is_empty() && decision.object.spec.replicas != Some(0) {
        return;
    }
    for node in referenced.iter().filter(|node| is_retired(node, &ids)) {
        delete(look, decision, node);
    }
    let found: Vec<Arc<Node>> = ids.iter().filter_map(|id| by_id.get(id)).cloned().collect();
    // Ids without any Node are of machines that still boot; the references to earlier Nodes stay until then.
    if !found.is_empty() || ids.is_empty() {
        let references: Vec<ObjectReference> = found.iter().map(|node| reference(node)).collect();
        if references != decision.object.status.node_refs {
            let names: Vec<&str> = references.iter().map(|node| node.name.as_str()).collect();
            let message = crate::conditions::shortened(&names, 5);
            decision.note(Note::normal("SuccessfulSetNodeRefs", "SetNodeRefs", message));
            decision.object.status.node_refs = references;
        }
    }
    count(decision, &found, look.now);
    for node in &found {
        annotate(look, decision, node);
    }
}

fn reference(node: &Node) -> ObjectReference {
    ObjectReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: node.metadata.name.clone(),
        uid: node.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The provider removed the machine from its pool.
fn is_retired(node: &Node, ids: &[String]) -> bool {
    let id = &node.spec.provider_id;
    !id.is_empty() && !ids.contains(id) && !node.metadata.is_deleting()
}

/// Deletes a Node, unless a Machine does.
pub(super) fn delete(look: &Looked, decision: &mut Decided, node: &Node) {
    if has_machine(look, node) {
        return;
    }
    let call = MachineCall::DeleteNode { node: node.metadata.name.clone() };
    // The cache may not have our last deletion yet.
    if look.result_of(&call).is_none() {
        decision.best_effort(Effect::Call(call));
    }
}

/// A Machine of the pool syncs, drains and deletes the Node.
fn has_machine(look: &Looked, node: &Node) -> bool {
    look.seen.machines.iter().any(|machine| {
        machine.spec.provider_id == node.spec.provider_id
            || machine.status.node_ref.name == node.metadata.name
    })
}

fn is_ready(node: &Node) -> bool {
    node.condition("Ready").is_some_and(|ready| ready.status == "True")
}

/// When a ready Node has been so for `seconds`.
fn available_at(node: &Node, seconds: i32) -> Option<Timestamp> {
    let since = node.condition("Ready")?.last_transition_time?.timestamp();
    since.checked_add(SignedDuration::from_secs(seconds.into())).ok()
}

fn count(decision: &mut Decided, nodes: &[Arc<Node>], now: Timestamp) {
    let seconds = decision.object.spec.template.spec.min_ready_seconds.unwrap_or(0);
    let ready: Vec<&Arc<Node>> = nodes.iter().filter(|node| is_ready(node)).collect();
    let mut available = 0;
    for node in &ready {
        match available_at(node, seconds) {
            Some(moment) if moment > now => {
                decision.again_at(now, moment);
            }
            _ => available += 1,
        }
    }
    let replicas = decision.object.status.replicas.unwrap_or(0);
    let deprecated = decision.object.status.deprecated.get_or_insert_with(Deprecated::default);
    let old = deprecated.v1beta1.get_or_insert_default();
    old.ready_replicas = i32::try_from(ready.len()).unwrap_or(i32::MAX);
    old.available_replicas = available;
    old.unavailable_replicas = (replicas - available).max(0);
}

/// Annotates a Node that has no Machine and removes the taint that kept pods away until then.
fn annotate(look: &Looked, decision: &mut Decided, node: &Node) {
    if node.metadata.is_deleting() || has_machine(look, node) {
        return;
    }
    // With Machines, those annotate the Node: it is about to get one.
    if look.seen.infrastructure_machines.is_some() {
        return;
    }
    let Some(change) = change(&decision.object, node) else { return };
    let call = MachineCall::PatchNode { node: node.metadata.name.clone(), change };
    if look.result_of(&call).is_none() {
        decision.best_effort(Effect::Call(call));
    }
}

/// The merge patch of a Node, guarded by resourceVersion; `None` if nothing changes.
fn change(pool: &MachinePool, node: &Node) -> Option<Value> {
    let wanted = [
        (annotation::CLUSTER_NAME, pool.spec.cluster_name.as_str()),
        (annotation::CLUSTER_NAMESPACE, pool.metadata.namespace.as_str()),
        (annotation::OWNER_KIND, "MachinePool"),
        (annotation::OWNER_NAME, pool.metadata.name.as_str()),
    ];
    let missing = wanted
        .into_iter()
        .filter(|(key, value)| node.metadata.annotations.get(*key).is_none_or(|found| found != value));
    let annotations: Map<String, Value> =
        missing.map(|(key, value)| (key.to_owned(), value.into())).collect();
    let mut taints = node.spec.taints.clone();
    taints.retain(|taint| (taint.key.as_str(), taint.effect.as_str()) != UNINITIALIZED);
    let tainted = taints.len() != node.spec.taints.len();
    if annotations.is_empty() && !tainted {
        return None;
    }
    let mut change = json!({"metadata": {"resourceVersion": node.metadata.resource_version}});
    if !annotations.is_empty() {
        change["metadata"]["annotations"] = annotations.into();
    }
    if tainted {
        change["spec"]["taints"] = json!(taints);
    }
    Some(change)
}
