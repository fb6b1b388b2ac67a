//! ReplicaSets: the desired number of Pods.

use serde_json::{Value, json};

use super::conditions;
use super::decision::Decision;
use super::snapshot::{Snapshot, has_ended, is_deleting, name, node_name};
use super::template;

const ACTOR: &str = "kube-controller-manager";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for set in snapshot.all("ReplicaSet").filter(|set| !is_deleting(set)) {
        keep(snapshot, set, out);
    }
}

fn keep(snapshot: &Snapshot, set: &Value, out: &mut Decision) {
    let wanted = usize::try_from(set["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or(0);
    let mut pods: Vec<&Value> =
        snapshot.controlled("Pod", set).filter(|pod| !is_deleting(pod) && !has_ended(pod)).collect();
    for _ in pods.len()..wanted {
        out.create(ACTOR, template::pod("apps/v1", "ReplicaSet", set, &[]));
    }
    let ready = pods.iter().filter(|pod| conditions::is_true(pod, "Ready")).count();
    let held = pods.len();
    // Not-ready Pods are deleted first.
    pods.sort_by_key(|pod| {
        (node_name(pod).is_some(), conditions::is_true(pod, "Ready"), name(pod).to_owned())
    });
    for pod in pods.iter().take(held.saturating_sub(wanted)) {
        out.delete(ACTOR, "Pod", pod, None);
    }
    let present = |count: usize| if count == 0 { Value::Null } else { count.into() };
    out.status(ACTOR, "ReplicaSet", set, json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": held,
        "fullyLabeledReplicas": present(held), "readyReplicas": present(ready), "availableReplicas": present(ready),
    }));
}
