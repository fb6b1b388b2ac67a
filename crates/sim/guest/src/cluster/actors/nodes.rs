//! The node controller: marks Nodes without heartbeats as unreachable, and taints Nodes by their conditions.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::snapshot::{Snapshot, name, node_name, time};

const ACTOR: &str = "kube-controller-manager";
/// Grace period without a heartbeat.
const PATIENCE: SignedDuration = SignedDuration::from_secs(40);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for node in snapshot.all("Node") {
        let mut ready =
            conditions::find(node, "Ready").and_then(|ready| ready["status"].as_str()).unwrap_or("Unknown");
        if let Some(since) = silent_since(snapshot, node) {
            let lost = since + PATIENCE;
            if snapshot.now < lost {
                out.requeue_at(lost);
            } else {
                ready = "Unknown";
                give_up(snapshot, node, out);
            }
        }
        taint(snapshot, node, ready, out);
    }
}

/// Since when the kubelet of a Node sends no heartbeats; `None` if it sends them.
fn silent_since(snapshot: &Snapshot, node: &Value) -> Option<Timestamp> {
    match snapshot.machine_of(name(node)) {
        Some(machine) => machine.silent_since,
        // Its machine is gone, or never existed.
        None => {
            let orphaned = snapshot.orphans.get(name(node)).copied();
            orphaned.or_else(|| time(&node["metadata"]["creationTimestamp"]))
        }
    }
}

fn give_up(snapshot: &Snapshot, node: &Value, out: &mut Decision) {
    let unknown = |of| ConditionUpdate {
        of,
        status: "Unknown",
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
    };
    let updates = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(unknown);
    let conditions = conditions::with(node, &updates, &snapshot.stamp());
    out.status(ACTOR, "Node", node, json!({"conditions": conditions}));
    // The state of its Pods is unknown.
    for pod in snapshot.all("Pod").filter(|pod| node_name(pod) == Some(name(node))) {
        if conditions::is_true(pod, "Ready") {
            let not = ConditionUpdate {
                of: "Ready",
                status: "False",
                reason: "NodeNotReady",
                message: "Node is not ready",
            };
            out.status(
                ACTOR,
                "Pod",
                pod,
                json!({"conditions": conditions::with(pod, &[not], &snapshot.stamp())}),
            );
        }
    }
}

/// Sets the taints that follow from a Node's state and removes others of this controller.
fn taint(snapshot: &Snapshot, node: &Value, ready: &str, out: &mut Decision) {
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    match ready {
        "True" => {}
        "False" => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        _ => wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    }
    if node["spec"]["unschedulable"] == true {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    let held = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let is = |taint: &Value, key: &str, effect: &str| taint["key"] == key && taint["effect"] == effect;
    let ours = |taint: &Value| [NOT_READY, UNREACHABLE, UNSCHEDULABLE].iter().any(|key| taint["key"] == *key);
    let mut taints: Vec<Value> = held
        .iter()
        .filter(|taint| !ours(taint) || wanted.iter().any(|(key, effect)| is(taint, key, effect)))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !held.iter().any(|taint| is(taint, key, effect)) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": snapshot.stamp()}));
        }
    }
    if taints != held {
        out.patch(ACTOR, "Node", node, json!({"spec": {"taints": taints}}));
    }
}
