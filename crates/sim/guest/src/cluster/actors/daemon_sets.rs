//! DaemonSets: one Pod on every matching Node.

use serde_json::{Value, json};

use super::conditions;
use super::decision::Decision;
use super::schedule::{is_selected, is_tolerated, refusal};
use super::snapshot::{Snapshot, has_ended, is_deleting, name, node_name};
use super::template;

const ACTOR: &str = "kube-controller-manager";
const REVISION: &str = "controller-revision-hash";

/// Tolerations that all Pods of DaemonSets get.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for set in snapshot.all("DaemonSet").filter(|set| !is_deleting(set)) {
        keep(snapshot, set, out);
    }
}

fn keep(snapshot: &Snapshot, set: &Value, out: &mut Decision) {
    let revision = template::hash(&set["spec"]["template"]);
    let model = model(set, &revision);
    let pods: Vec<&Value> = snapshot.controlled("Pod", set).collect();
    let (mut desired, mut current, mut ready, mut updated, mut misscheduled) = (0, 0, 0, 0, 0);
    let mut unavailable = 0;
    let mut outdated = Vec::new();
    for node in snapshot.all("Node") {
        let here: Vec<&Value> =
            pods.iter().filter(|pod| meant_for(pod) == Some(name(node))).copied().collect();
        let alive: Vec<&Value> = here.iter().filter(|pod| !is_deleting(pod)).copied().collect();
        if !belongs(&model, node) {
            misscheduled += i64::from(!alive.is_empty());
            // A Pod that could not be scheduled any more stays, unless the Node evicts it.
            let stays = is_selected(&model, node) && !drives_out(&model, node);
            alive.iter().filter(|_| !stays).for_each(|pod| out.delete(ACTOR, "Pod", pod, None));
            continue;
        }
        desired += 1;
        let Some((first, rest)) = alive.split_first() else {
            unavailable += 1;
            if here.is_empty() {
                out.create(ACTOR, on_node(model.clone(), name(node)));
            }
            continue;
        };
        rest.iter().for_each(|pod| out.delete(ACTOR, "Pod", pod, None));
        current += 1;
        let is_ready = conditions::is_true(first, "Ready");
        ready += i64::from(is_ready);
        unavailable += i64::from(!is_ready);
        if has_ended(first) {
            out.delete(ACTOR, "Pod", first, None);
        } else if first["metadata"]["labels"][REVISION] == revision.as_str() {
            updated += 1;
        } else {
            outdated.push((is_ready, *first));
        }
    }
    for pod in
        pods.iter().filter(|pod| meant_for(pod).is_none_or(|node| snapshot.get("Node", node).is_none()))
    {
        if !is_deleting(pod) {
            out.delete(ACTOR, "Pod", pod, None);
        }
    }
    replace(set, outdated, desired, unavailable, out);
    out.status(
        ACTOR,
        "DaemonSet",
        set,
        json!({
            "observedGeneration": set["metadata"]["generation"], "desiredNumberScheduled": desired,
            "currentNumberScheduled": current, "numberReady": ready, "numberMisscheduled": misscheduled,
            "updatedNumberScheduled": present(updated), "numberAvailable": present(ready),
            "numberUnavailable": present(desired - ready),
        }),
    );
}

/// Deletes Pods of an older template: unavailable ones at once, others a few at a time.
fn replace(set: &Value, outdated: Vec<(bool, &Value)>, desired: i64, unavailable: i64, out: &mut Decision) {
    let strategy = &set["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return;
    }
    let most = template::share(&strategy["rollingUpdate"]["maxUnavailable"], desired, &json!(1), true).max(1);
    let mut left = most - unavailable;
    for (is_ready, pod) in outdated {
        if is_ready {
            left -= 1;
            if left < 0 {
                continue;
            }
        }
        out.delete(ACTOR, "Pod", pod, None);
    }
}

/// Zero is absent in these fields.
fn present(count: i64) -> Value {
    if count == 0 { Value::Null } else { count.into() }
}

fn model(set: &Value, revision: &str) -> Value {
    let mut pod = template::pod("apps/v1", "DaemonSet", set, &[(REVISION, revision)]);
    let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    tolerations
        .extend(TOLERATED.map(|(key, effect)| json!({"key": key, "effect": effect, "operator": "Exists"})));
    if pod["spec"]["hostNetwork"] == true {
        let key = "node.kubernetes.io/network-unavailable";
        tolerations.push(json!({"key": key, "effect": "NoSchedule", "operator": "Exists"}));
    }
    pod["spec"]["tolerations"] = tolerations.into();
    pod
}

/// A Pod of the set for exactly one Node: the scheduler binds it.
fn on_node(mut pod: Value, node: &str) -> Value {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
    pod
}

/// The Node that a Pod of a set is bound to or targets.
fn meant_for(pod: &Value) -> Option<&str> {
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = &required["nodeSelectorTerms"][0]["matchFields"][0];
    node_name(pod).or_else(|| fields["values"][0].as_str())
}

fn belongs(model: &Value, node: &Value) -> bool {
    refusal(model, node).is_none()
}

fn drives_out(model: &Value, node: &Value) -> bool {
    let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.any(|taint| taint["effect"] == "NoExecute" && !is_tolerated(model, taint))
}
