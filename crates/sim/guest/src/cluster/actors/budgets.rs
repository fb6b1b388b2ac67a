//! PodDisruptionBudgets: the number of Pods that may be evicted now.

use capstan_schema::selector::LabelSelector;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::conditions::{self, ConditionUpdate};
use super::decision::Decision;
use super::snapshot::{Snapshot, controller_uid, has_ended, is_deleting, name, namespace, time, uid};
use super::template::share;

const ACTOR: &str = "kube-controller-manager";
/// How long a granted eviction counts while its Pod still exists.
const GRANTED: SignedDuration = SignedDuration::from_secs(120);

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for budget in snapshot.all("PodDisruptionBudget").filter(|budget| !is_deleting(budget)) {
        keep(snapshot, budget, out);
    }
}

fn keep(snapshot: &Snapshot, budget: &Value, out: &mut Decision) {
    let Ok(selector) = LabelSelector::from_object(&budget["spec"]["selector"]) else { return };
    let pods: Vec<&Value> = snapshot
        .all("Pod")
        .filter(|pod| namespace(pod) == namespace(budget) && !has_ended(pod))
        .filter(|pod| selector.matches(|key| pod["metadata"]["labels"][key].as_str()))
        .collect();
    let expected = expected(snapshot, &pods);
    let spec = &budget["spec"];
    let desired = if spec["maxUnavailable"].is_null() {
        share(&spec["minAvailable"], expected, &json!(1), true)
    } else {
        (expected - share(&spec["maxUnavailable"], expected, &json!(0), true)).max(0)
    };
    // Granted evictions whose Pods still exist.
    let mut granted = Map::new();
    for (pod, at) in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        let ends = time(at).map(|at| at + GRANTED);
        let waits = pods.iter().any(|one| name(one) == pod && !is_deleting(one));
        match ends.filter(|ends| waits && *ends > snapshot.now) {
            Some(ends) => out.requeue_at(ends),
            None => {
                granted.insert(pod.clone(), Value::Null);
            }
        }
    }
    let counts = |pod: &&&Value| {
        let pending =
            budget["status"]["disruptedPods"].get(name(pod)).is_some() && !granted.contains_key(name(pod));
        conditions::is_true(pod, "Ready") && !is_deleting(pod) && !pending
    };
    let healthy = i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let updates = ConditionUpdate {
        of: "DisruptionAllowed",
        status: if allowed > 0 { "True" } else { "False" },
        reason: if allowed > 0 { "SufficientPods" } else { "InsufficientPods" },
        message: "",
    };
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"], "expectedPods": expected,
        "desiredHealthy": desired, "currentHealthy": healthy, "disruptionsAllowed": allowed,
        "conditions": conditions::with(budget, &[updates], &snapshot.stamp()),
    });
    if !granted.is_empty() {
        status["disruptedPods"] = granted.into();
    }
    out.status(ACTOR, "PodDisruptionBudget", budget, status);
}

/// Expected number of Pods: replicas of their controllers, and one for each without.
fn expected(snapshot: &Snapshot, pods: &[&Value]) -> i64 {
    let mut owners = std::collections::BTreeSet::new();
    let mut alone = 0;
    for pod in pods {
        match controller_uid(pod) {
            Some(owner) => {
                owners.insert(owner);
            }
            None => alone += 1,
        }
    }
    let sets = ["ReplicaSet", "StatefulSet"].into_iter().flat_map(|kind| snapshot.all(kind));
    let wanted: i64 =
        sets.filter(|set| owners.contains(uid(set))).filter_map(|set| set["spec"]["replicas"].as_i64()).sum();
    alone + wanted
}
