//! StatefulSets: Pods with stable names, one after the other.

use serde_json::{Value, json};

use super::conditions;
use super::decision::Decision;
use super::snapshot::{Snapshot, has_ended, is_deleting, name, namespace};
use super::template;

const ACTOR: &str = "kube-controller-manager";
const REVISION: &str = "controller-revision-hash";

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    for set in snapshot.all("StatefulSet").filter(|set| !is_deleting(set)) {
        keep(snapshot, set, out);
    }
}

fn keep(snapshot: &Snapshot, set: &Value, out: &mut Decision) {
    let spec = &set["spec"];
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let ordered = spec["podManagementPolicy"] != "Parallel";
    let revision = template::hash(&spec["template"]);
    let pod_named = |ordinal: i64| {
        let key = format!("{}/{}-{ordinal}", namespace(set), name(set));
        snapshot.get("Pod", &key)
    };
    let is_ready = |pod: &Value| conditions::is_true(pod, "Ready") && !is_deleting(pod);
    let mut complete = true;
    for ordinal in 0..wanted {
        match pod_named(ordinal) {
            Some(pod) if is_ready(pod) => continue,
            Some(pod) if has_ended(pod) && !is_deleting(pod) => out.delete(ACTOR, "Pod", pod, None),
            Some(_) => {}
            None => out.create(ACTOR, numbered(set, ordinal, &revision)),
        }
        complete = false;
        if ordered {
            break;
        }
    }
    let pods: Vec<&Value> = snapshot.controlled("Pod", set).collect();
    let ordinal = |pod: &Value| name(pod).rsplit_once('-').and_then(|(_, n)| n.parse::<i64>().ok());
    let mut surplus: Vec<&Value> =
        pods.iter().filter(|pod| ordinal(pod).is_none_or(|n| n >= wanted)).copied().collect();
    surplus.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod)));
    let at_once = if ordered { 1 } else { surplus.len() };
    for pod in surplus.iter().take(at_once).filter(|pod| !is_deleting(pod)) {
        out.delete(ACTOR, "Pod", pod, None);
    }
    let is_new = |pod: &Value| pod["metadata"]["labels"][REVISION] == revision.as_str();
    if complete && surplus.is_empty() && spec["updateStrategy"]["type"] != "OnDelete" {
        // From the last to the first, each when the later ones are ready again.
        let outdated = (0..wanted).rev().filter_map(pod_named).find(|pod| !is_new(pod));
        outdated.into_iter().for_each(|pod| out.delete(ACTOR, "Pod", pod, None));
    }
    let alive = pods.iter().filter(|pod| !is_deleting(pod)).count();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let updated = pods.iter().filter(|pod| is_new(pod)).count();
    let present = |count: usize| if count == 0 { Value::Null } else { count.into() };
    out.status(ACTOR, "StatefulSet", set, json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": alive, "readyReplicas": present(ready),
        "availableReplicas": ready, "updatedReplicas": present(updated), "currentReplicas": present(updated),
        "updateRevision": format!("{}-{revision}", name(set)),
    }));
}

fn numbered(set: &Value, ordinal: i64, revision: &str) -> Value {
    let own = format!("{}-{ordinal}", name(set));
    let index = ordinal.to_string();
    let labels = [
        (REVISION, revision),
        ("statefulset.kubernetes.io/pod-name", own.as_str()),
        ("apps.kubernetes.io/pod-index", index.as_str()),
    ];
    let mut pod = template::pod("apps/v1", "StatefulSet", set, &labels);
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.remove("generateName");
    }
    pod["spec"]["hostname"] = own.as_str().into();
    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
    pod["metadata"]["name"] = own.into();
    pod
}
