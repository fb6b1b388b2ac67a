//! The scheduler: binds Pods to matching Nodes with room, the least loaded first. It does not preempt Pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::fit::{Requests, Room};
use super::pods::tolerates;
use super::snapshot::{Snapshot, has_ended, is_deleting, name, node_name};

const ACTOR: &str = "kube-scheduler";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    let mut pending: Vec<&Value> = snapshot.all("Pod").filter(|pod| is_pending(pod)).collect();
    if pending.is_empty() {
        return;
    }
    pending.sort_by_key(|pod| {
        let created = pod["metadata"]["creationTimestamp"].as_str();
        (Reverse(pod["spec"]["priority"].as_i64().unwrap_or(0)), created)
    });
    let mut nodes: Vec<Candidate<'_>> =
        snapshot.all("Node").map(|node| Candidate { node, room: Room::of(node) }).collect();
    for pod in snapshot.all("Pod").filter(|pod| !has_ended(pod)) {
        let bound = node_name(pod).and_then(|on| nodes.iter_mut().find(|place| name(place.node) == on));
        if let Some(place) = bound {
            place.room.take(&Requests::of(pod));
        }
    }
    for pod in pending {
        let requests = Requests::of(pod);
        let fitting = nodes.iter_mut().filter(|place| place.refusals(pod, &requests).is_empty());
        match fitting.min_by_key(|place| place.room.pods()) {
            Some(place) => {
                place.room.take(&requests);
                out.bind(pod, name(place.node));
            }
            None => unschedulable(snapshot, pod, &requests, &nodes, out),
        }
    }
}

/// Whether a Pod waits for the scheduler.
fn is_pending(pod: &Value) -> bool {
    let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    let ours = pod["spec"]["schedulerName"].as_str().is_none_or(|name| name == "default-scheduler");
    node_name(pod).is_none() && !is_deleting(pod) && !has_ended(pod) && !gated && ours
}

/// A Node and what is free on it.
struct Candidate<'a> {
    node: &'a Value,
    room: Room,
}

/// Why a Node does not take a Pod.
struct Refusal {
    reason: String,
    /// It would not help to remove other Pods.
    unresolvable: bool,
}

impl Candidate<'_> {
    /// Why it does not take the Pod: of the first check that fails.
    fn refusals(&self, pod: &Value, requests: &Requests) -> Vec<Refusal> {
        if let Some(reason) = refusal(pod, self.node) {
            return vec![Refusal { reason: reason.to_owned(), unresolvable: true }];
        }
        let short = self.room.short_of(requests).into_iter();
        short.map(|short| Refusal { reason: short.reason(), unresolvable: short.never_enough }).collect()
    }
}

fn unschedulable(
    snapshot: &Snapshot,
    pod: &Value,
    requests: &Requests,
    nodes: &[Candidate<'_>],
    out: &mut Decision,
) {
    let message = message(pod, requests, nodes);
    let updates =
        ConditionUpdate { of: "PodScheduled", status: "False", reason: "Unschedulable", message: &message };
    out.status(
        ACTOR,
        "Pod",
        pod,
        json!({"conditions": conditions::with(pod, &[updates], &snapshot.stamp())}),
    );
}

/// Number of Nodes by what is said of them.
type Counts = BTreeMap<String, usize>;

/// What kube-scheduler says of a Pod that fits nowhere.
fn message(pod: &Value, requests: &Requests, nodes: &[Candidate<'_>]) -> String {
    if nodes.is_empty() {
        return "no nodes available to schedule pods".to_owned();
    }
    let (mut reasons, mut victims): (Counts, Counts) = (BTreeMap::new(), BTreeMap::new());
    for place in nodes {
        let refusals = place.refusals(pod, requests);
        let helpless = refusals.iter().any(|refusal| refusal.unresolvable);
        let preemption = if helpless {
            "Preemption is not helpful for scheduling"
        } else {
            "No preemption victims found for incoming pod"
        };
        *victims.entry(preemption.to_owned()).or_default() += 1;
        for refusal in refusals {
            *reasons.entry(refusal.reason).or_default() += 1;
        }
    }
    let all = nodes.len();
    let (reasons, victims) = (listed(&reasons), listed(&victims));
    format!("0/{all} nodes are available: {reasons}. preemption: 0/{all} nodes are available: {victims}.")
}

/// Reasons with their numbers, in the order of their text.
fn listed(counts: &Counts) -> String {
    let mut all: Vec<String> = counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    all.sort();
    all.join(", ")
}

/// Why a Node does not match a Pod, whatever else runs there.
pub(super) fn refusal(pod: &Value, node: &Value) -> Option<&'static str> {
    let cordoned = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    if node["spec"]["unschedulable"] == true && !is_tolerated(pod, &cordoned) {
        return Some("node(s) were unschedulable");
    }
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let forbidding = taints.filter(|taint| taint["effect"] != "PreferNoSchedule");
    if forbidding.into_iter().any(|taint| !is_tolerated(pod, taint)) {
        return Some("node(s) had untolerated taint(s)");
    }
    if !is_selected(pod, node) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    None
}

pub(super) fn is_tolerated(pod: &Value, taint: &Value) -> bool {
    let mut tolerations = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    tolerations.any(|toleration| tolerates(toleration, taint))
}

/// Whether the node selector and the required affinity of a Pod match a Node.
pub(super) fn is_selected(pod: &Value, node: &Value) -> bool {
    let label = |key: &str| node["metadata"]["labels"][key].as_str();
    let selector = pod["spec"]["nodeSelector"].as_object();
    let by_selector = selector
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| label(key).is_some_and(|held| value == held)));
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let by_affinity = required["nodeSelectorTerms"].as_array().is_none_or(|terms| {
        terms.iter().any(|term| {
            let expressions = term["matchExpressions"].as_array().into_iter().flatten();
            let fields = term["matchFields"].as_array().into_iter().flatten();
            let by_labels = expressions
                .into_iter()
                .all(|expression| holds(expression, label(expression["key"].as_str().unwrap_or_default())));
            by_labels && fields.into_iter().all(|field| holds(field, Some(name(node))))
        })
    });
    by_selector && by_affinity
}

fn holds(expression: &Value, held: Option<&str>) -> bool {
    let values = || expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    match expression["operator"].as_str() {
        Some("In") => held.is_some_and(|held| values().any(|value| value == held)),
        Some("NotIn") => held.is_none_or(|held| values().all(|value| value != held)),
        Some("Exists") => held.is_some(),
        Some("DoesNotExist") => held.is_none(),
        Some("Gt") => number(held) > number(values().next()) && number(held).is_some(),
        Some("Lt") => number(held) < number(values().next()) && number(held).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_fits_pods_that_select_it_and_tolerate_its_taints() {
        let node = json!({
            "metadata": {"name": "n", "labels": {"zone": "a", "size": "5"}},
            "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
        });
        let tolerated = json!([{"key": "dedicated", "value": "db"}]);
        let affinity = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        for (spec, taken) in [
            (json!({}), false),
            (json!({"tolerations": tolerated}), true),
            (json!({"tolerations": [{"operator": "Exists"}]}), true),
            (json!({"tolerations": [{"key": "dedicated", "value": "web"}]}), false),
            (json!({"tolerations": tolerated, "nodeSelector": {"zone": "a"}}), true),
            (json!({"tolerations": tolerated, "nodeSelector": {"zone": "b"}}), false),
            (
                json!({"tolerations": tolerated, "affinity": affinity(json!([
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]))}),
                true,
            ),
            (
                json!({"tolerations": tolerated, "affinity": affinity(json!([
                    {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["7"]}]},
                ]))}),
                false,
            ),
        ] {
            assert_eq!(refusal(&json!({"spec": spec}), &node).is_none(), taken, "{spec}");
        }
    }

    #[test]
    fn a_pod_that_fits_nowhere_is_told_why_of_every_node() {
        let node = |name: &str, cpu: &str, more: Value| {
            let mut node = json!({
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "110"}},
            });
            node["spec"] = more;
            node
        };
        let all = [
            node("a", "2", json!({"taints": [{"key": "x", "effect": "NoSchedule"}]})),
            node("b", "2", json!({})),
            node("c", "1", json!({})),
            node("d", "2", json!({"unschedulable": true})),
        ];
        let pod = |cpu: &str| json!({"spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}});
        let mut nodes: Vec<Candidate<'_>> =
            all.iter().map(|node| Candidate { node, room: Room::of(node) }).collect();
        assert!(nodes[1].refusals(&pod("1500m"), &Requests::of(&pod("1500m"))).is_empty());
        nodes[1].room.take(&Requests::of(&pod("1")));
        assert_eq!(
            message(&pod("1500m"), &Requests::of(&pod("1500m")), &nodes),
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, \
             2 Insufficient cpu. preemption: 0/4 nodes are available: \
             1 No preemption victims found for incoming pod, 3 Preemption is not helpful for scheduling."
        );
        assert_eq!(message(&pod("1"), &Requests::default(), &[]), "no nodes available to schedule pods");
    }
}
