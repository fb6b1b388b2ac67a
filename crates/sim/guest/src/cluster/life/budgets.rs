//! PodDisruptionBudgets: how many Pods may be evicted now.

use capstan_schema::selector::LabelSelector;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::conditions::{self, Says};
use super::decision::Decision;
use super::picture::{Picture, controller_uid, has_ended, is_deleting, name, namespace, time, uid};
use super::template::share;

const ACTOR: &str = "kube-controller-manager";
/// How long an eviction that was granted counts while its Pod is still there.
const GRANTED: SignedDuration = SignedDuration::from_secs(120);

pub(super) fn decide(picture: &Picture, out: &mut Decision) {
    for budget in picture.all("PodDisruptionBudget").filter(|budget| !is_deleting(budget)) {
        keep(picture, budget, out);
    }
}

fn keep(picture: &Picture, budget: &Value, out: &mut Decision) {
    let Ok(selector) = LabelSelector::from_object(&budget["spec"]["selector"]) else { return };
    let pods: Vec<&Value> = picture
        .all("Pod")
        .filter(|pod| namespace(pod) == namespace(budget) && !has_ended(pod))
        .filter(|pod| selector.matches(|key| pod["metadata"]["labels"][key].as_str()))
        .collect();
    let expected = expected(picture, &pods);
    let spec = &budget["spec"];
    let desired = if spec["maxUnavailable"].is_null() {
        share(&spec["minAvailable"], expected, &json!(1), true)
    } else {
        (expected - share(&spec["maxUnavailable"], expected, &json!(0), true)).max(0)
    };
    // Evictions that were granted and have not shown yet.
    let mut granted = Map::new();
    for (pod, at) in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        let ends = time(at).map(|at| at + GRANTED);
        let waits = pods.iter().any(|one| name(one) == pod && !is_deleting(one));
        match ends.filter(|ends| waits && *ends > picture.now) {
            Some(ends) => out.look_at(ends),
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
    let says = Says {
        of: "DisruptionAllowed",
        status: if allowed > 0 { "True" } else { "False" },
        reason: if allowed > 0 { "SufficientPods" } else { "InsufficientPods" },
        message: "",
    };
    let mut status = json!({
        "observedGeneration": budget["metadata"]["generation"], "expectedPods": expected,
        "desiredHealthy": desired, "currentHealthy": healthy, "disruptionsAllowed": allowed,
        "conditions": conditions::with(budget, &[says], &picture.stamp()),
    });
    if !granted.is_empty() {
        status["disruptedPods"] = granted.into();
    }
    out.status(ACTOR, "PodDisruptionBudget", budget, status);
}

/// How many Pods there should be: what their controllers want, and one for each that has none.
fn expected(picture: &Picture, pods: &[&Value]) -> i64 {
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
    let sets = ["ReplicaSet", "StatefulSet"].into_iter().flat_map(|kind| picture.all(kind));
    let wanted: i64 =
        sets.filter(|set| owners.contains(uid(set))).filter_map(|set| set["spec"]["replicas"].as_i64()).sum();
    alone + wanted
}
