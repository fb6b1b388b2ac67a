//! The scheduler: binds Pods to matching Nodes, the least loaded first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::pods::tolerates;
use super::snapshot::{Snapshot, has_ended, is_deleting, name, node_name};

const ACTOR: &str = "kube-scheduler";
/// Maximum Pods per Node.
const MOST: usize = 110;

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    let mut load: BTreeMap<&str, usize> = snapshot.all("Node").map(|node| (name(node), 0)).collect();
    for pod in snapshot.all("Pod").filter(|pod| !has_ended(pod)) {
        if let Some(count) = node_name(pod).and_then(|node| load.get_mut(node)) {
            *count += 1;
        }
    }
    for pod in snapshot.all("Pod") {
        let gated = pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        if node_name(pod).is_some() || is_deleting(pod) || has_ended(pod) || gated {
            continue;
        }
        if pod["spec"]["schedulerName"].as_str().is_some_and(|name| name != "default-scheduler") {
            continue;
        }
        let room = |node: &&Value| load.get(name(node)).is_some_and(|count| *count < MOST);
        let fitting = snapshot.all("Node").filter(|node| refusal(pod, node).is_none()).filter(room);
        let emptiest = fitting.min_by_key(|node| load.get(name(node)).copied().unwrap_or(0));
        match emptiest {
            Some(node) => {
                *load.entry(name(node)).or_default() += 1;
                out.bind(pod, name(node));
            }
            None => unschedulable(snapshot, pod, out),
        }
    }
}

fn unschedulable(snapshot: &Snapshot, pod: &Value, out: &mut Decision) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for node in snapshot.all("Node") {
        *reasons.entry(refusal(pod, node).unwrap_or("Too many pods")).or_default() += 1;
    }
    let all = snapshot.all("Node").count();
    let reasons: Vec<String> =
        reasons.into_iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let message = format!("0/{all} nodes are available: {}.", reasons.join(", "));
    let updates =
        ConditionUpdate { of: "PodScheduled", status: "False", reason: "Unschedulable", message: &message };
    out.status(
        ACTOR,
        "Pod",
        pod,
        json!({"conditions": conditions::with(pod, &[updates], &snapshot.stamp())}),
    );
}

/// Why a Node does not fit a Pod.
pub(super) fn refusal(pod: &Value, node: &Value) -> Option<&'static str> {
    if !is_selected(pod, node) {
        return Some("node(s) didn't match Pod's node affinity/selector");
    }
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let forbidding = taints.filter(|taint| taint["effect"] != "PreferNoSchedule");
    if forbidding.into_iter().any(|taint| !is_tolerated(pod, taint)) {
        return Some("node(s) had untolerated taint(s)");
    }
    None
}

/// Whether a Pod tolerates a taint.
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
}
