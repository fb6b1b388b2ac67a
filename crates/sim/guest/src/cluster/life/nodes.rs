//! The node controller: it calls kubelets that are silent unreachable, and taints Nodes by their conditions.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::conditions::{self, Says};
use super::decision::Decision;
use super::picture::{Picture, name, node_name, time};

const ACTOR: &str = "kube-controller-manager";
/// How long a kubelet may be silent.
const PATIENCE: SignedDuration = SignedDuration::from_secs(40);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

pub(super) fn decide(picture: &Picture, out: &mut Decision) {
    for node in picture.all("Node") {
        let mut ready =
            conditions::find(node, "Ready").and_then(|ready| ready["status"].as_str()).unwrap_or("Unknown");
        if let Some(since) = silent_since(picture, node) {
            let lost = since + PATIENCE;
            if picture.now < lost {
                out.look_at(lost);
            } else {
                ready = "Unknown";
                give_up(picture, node, out);
            }
        }
        taint(picture, node, ready, out);
    }
}

/// Since when the kubelet of a Node has not been heard; `None` if it is heard.
fn silent_since(picture: &Picture, node: &Value) -> Option<Timestamp> {
    match picture.machine_of(name(node)) {
        Some(machine) => machine.silent_since,
        // Its machine is gone, or there never was one.
        None => {
            let orphaned = picture.orphans.get(name(node)).copied();
            orphaned.or_else(|| time(&node["metadata"]["creationTimestamp"]))
        }
    }
}

fn give_up(picture: &Picture, node: &Value, out: &mut Decision) {
    let unknown = |of| Says {
        of,
        status: "Unknown",
        reason: "NodeStatusUnknown",
        message: "Kubelet stopped posting node status.",
    };
    let says = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(unknown);
    let conditions = conditions::with(node, &says, &picture.stamp());
    out.status(ACTOR, "Node", node, json!({"conditions": conditions}));
    // Nobody can tell whether its Pods still work.
    for pod in picture.all("Pod").filter(|pod| node_name(pod) == Some(name(node))) {
        if conditions::is_true(pod, "Ready") {
            let not =
                Says { of: "Ready", status: "False", reason: "NodeNotReady", message: "Node is not ready" };
            out.status(
                ACTOR,
                "Pod",
                pod,
                json!({"conditions": conditions::with(pod, &[not], &picture.stamp())}),
            );
        }
    }
}

/// Puts the taints on a Node that follow from what is known of it, and takes others of the kind away.
fn taint(picture: &Picture, node: &Value, ready: &str, out: &mut Decision) {
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
    let says = |taint: &Value, key: &str, effect: &str| taint["key"] == key && taint["effect"] == effect;
    let ours = |taint: &Value| [NOT_READY, UNREACHABLE, UNSCHEDULABLE].iter().any(|key| taint["key"] == *key);
    let mut taints: Vec<Value> = held
        .iter()
        .filter(|taint| !ours(taint) || wanted.iter().any(|(key, effect)| says(taint, key, effect)))
        .cloned()
        .collect();
    for (key, effect) in wanted {
        if !held.iter().any(|taint| says(taint, key, effect)) {
            taints.push(json!({"key": key, "effect": effect, "timeAdded": picture.stamp()}));
        }
    }
    if taints != held {
        out.patch(ACTOR, "Node", node, json!({"spec": {"taints": taints}}));
    }
}
