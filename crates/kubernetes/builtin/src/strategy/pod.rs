//! Pods: initial status, and what each subresource may change.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Object, child, copy, copy_metadata, metadata, put};
use crate::quantity::Quantity;

pub(super) fn prepare_create(pod: &mut Object) {
    let given = pod.get("status").and_then(|s| s.get("qosClass")).and_then(Value::as_str).unwrap_or_default();
    let class = if given.is_empty() { qos_class(pod).to_owned() } else { given.to_owned() };
    let mut status = json!({"phase": "Pending", "qosClass": class});
    let gated = pod.get("spec").and_then(|s| s.get("schedulingGates")).and_then(Value::as_array);
    let created = pod.get("metadata").and_then(|m| m.get("creationTimestamp")).cloned();
    if gated.is_some_and(|g| !g.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": created
        }]);
    }
    pod.insert("status".to_owned(), status);
    let grace = child(pod, "spec").get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace.is_some_and(|seconds| seconds < 0) {
        child(pod, "spec").insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
}

pub(super) fn status_update(new: &mut Object, old: &Object) {
    // Deletion and owners cannot be changed through the status.
    metadata(new).remove("deletionTimestamp");
    copy_metadata(new, old, &["ownerReferences"]);
    let class = old.get("status").and_then(|s| s.get("qosClass")).cloned();
    let status = child(new, "status");
    if status.get("qosClass").and_then(Value::as_str).unwrap_or_default().is_empty() {
        put(status, "qosClass", class);
    }
}

/// Only ephemeral containers change through their subresource.
pub(super) fn ephemeral_containers_update(new: &mut Object, old: &Object) {
    let containers = new.get("spec").and_then(|s| s.get("ephemeralContainers")).cloned();
    restore(new, old);
    put(child(new, "spec"), "ephemeralContainers", containers);
}

/// Only resources and resize policies of containers change through `resize`.
pub(super) fn resize_update(new: &mut Object, old: &Object) {
    let asked = new.clone();
    restore(new, old);
    for list in ["containers", "initContainers"] {
        let wanted = asked.get("spec").and_then(|s| s.get(list)).and_then(Value::as_array);
        let have = child(new, "spec").get_mut(list).and_then(Value::as_array_mut);
        for container in have.into_iter().flatten() {
            let same = wanted.into_iter().flatten().find(|w| w.get("name") == container.get("name"));
            if let (Some(Value::Object(same)), Value::Object(container)) = (same, container) {
                copy(container, same, "resources");
                copy(container, same, "resizePolicy");
            }
        }
    }
    if let Some(Value::Object(spec)) = asked.get("spec") {
        copy(child(new, "spec"), spec, "resources");
    }
}

/// The old pod, with the resource version and field managers of the request.
fn restore(new: &mut Object, old: &Object) {
    let asked = std::mem::replace(new, old.clone());
    if let Some(Value::Object(asked)) = asked.get("metadata") {
        copy(metadata(new), asked, "resourceVersion");
        copy(metadata(new), asked, "managedFields");
    }
}

/// QoS class, from requests and limits of cpu and memory.
fn qos_class(pod: &Object) -> &'static str {
    let Some(spec) = pod.get("spec") else { return "BestEffort" };
    let mut requests: BTreeMap<&str, i128> = BTreeMap::new();
    let mut limits: BTreeMap<&str, i128> = BTreeMap::new();
    let mut guaranteed = true;
    let mut holders: Vec<&Value> = Vec::new();
    match spec.get("resources").filter(|r| !r.is_null()) {
        Some(resources) => holders.push(resources),
        None => {
            for list in ["containers", "initContainers"] {
                let containers = spec.get(list).and_then(Value::as_array);
                holders.extend(
                    containers.into_iter().flatten().map(|c| c.get("resources").unwrap_or(&Value::Null)),
                );
            }
        }
    }
    for resources in holders {
        add(resources.get("requests"), &mut requests);
        let limited = add(resources.get("limits"), &mut limits);
        guaranteed &= limited == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    if guaranteed && requests == limits { "Guaranteed" } else { "Burstable" }
}

/// Adds requests of cpu and memory in milli units; returns how many of the two were set.
fn add<'a>(amounts: Option<&'a Value>, into: &mut BTreeMap<&'a str, i128>) -> usize {
    let mut found = 0;
    for name in ["cpu", "memory"] {
        let amount = amounts
            .and_then(|a| a.get(name))
            .and_then(Value::as_str)
            .and_then(|t| Quantity::parse(t).ok())
            .filter(|q| !q.is_zero() && !q.is_negative());
        if let Some(amount) = amount {
            found += 1;
            *into.entry(name).or_default() += i128::from(amount.milli());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quality_of_service_follows_requests_and_limits() {
        let full =
            json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}});
        for (containers, wanted) in [
            (json!([{"name": "a"}]), "BestEffort"),
            (json!([{"name": "a", "resources": full}]), "Guaranteed"),
            (json!([{"name": "a", "resources": full}, {"name": "b"}]), "Burstable"),
            (json!([{"name": "a", "resources": {"requests": {"cpu": "1"}}}]), "Burstable"),
            (json!([{"name": "a", "resources": {"requests": {"cpu": "0"}}}]), "BestEffort"),
        ] {
            let pod = json!({"spec": {"containers": containers}});
            assert_eq!(qos_class(pod.as_object().unwrap()), wanted);
        }
    }
}
