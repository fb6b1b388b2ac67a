//! Usage of a Pod: CPU, memory and other resources, by requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use capstan_builtin::quantity::Quantity;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Amounts;

const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources that every container must then specify. Upstream regrets this and adds no more.
const MUST_BE_NAMED: [&str; 6] =
    ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Whether a quota entry applies to Pods.
pub(super) fn counts(name: &str) -> bool {
    if name == "pods" || COMPUTE.contains(&name) || name.starts_with("hugepages-") {
        return true;
    }
    match name.split_once('.') {
        Some(("requests", "storage")) => false,
        // Extended resources have a domain; they cannot be overcommitted, so only requests are counted.
        Some(("requests", of)) => COMPUTE.contains(&of) || of.starts_with("hugepages-") || of.contains('/'),
        Some(("limits", of)) => COMPUTE.contains(&of),
        _ => false,
    }
}

/// Usage of a Pod. A finished one, or one past its grace period, only counts as an object.
pub(super) fn usage(pod: &Value, now: Timestamp) -> Amounts {
    if !is_charged(pod, now) {
        return Amounts::new();
    }
    named(&total(pod, "requests"), &total(pod, "limits"))
}

fn named(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut out = Amounts::from([("pods".to_owned(), Quantity::from_integer(1))]);
    for (name, amount) in requests {
        let bare = COMPUTE.contains(&name.as_str()) || name.starts_with("hugepages-");
        if bare {
            out.insert(name.clone(), amount.clone());
        }
        if bare || name.contains('/') {
            out.insert(format!("requests.{name}"), amount.clone());
        }
    }
    for (name, amount) in limits.iter().filter(|(name, _)| COMPUTE.contains(&name.as_str())) {
        out.insert(format!("limits.{name}"), amount.clone());
    }
    out
}

fn is_charged(pod: &Value, now: Timestamp) -> bool {
    if matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        return false;
    }
    let metadata = &pod["metadata"];
    let deleted = metadata["deletionTimestamp"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    match (deleted, metadata["deletionGracePeriodSeconds"].as_i64()) {
        (Some(deleted), Some(grace)) => now <= deleted + SignedDuration::from_secs(grace),
        _ => true,
    }
}

fn containers<'a>(pod: &'a Value, of: &str) -> &'a [Value] {
    pod["spec"][of].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Total of a Pod: its containers and what it costs to run it.
fn total(pod: &Value, side: &str) -> Amounts {
    let mut running = total_of_containers(pod, side);
    let overhead = super::amounts(&pod["spec"]["overhead"]);
    let counted = |name: &String| side == "requests" || running.contains_key(name);
    let overhead: Amounts = overhead.into_iter().filter(|(name, _)| counted(name)).collect();
    add(&mut running, &overhead);
    running
}

/// Total of the containers of a Pod: those running together, or the maximum needed before they start.
pub(crate) fn total_of_containers(pod: &Value, side: &str) -> Amounts {
    let of = |value: &Value| super::amounts(&value["resources"][side]);
    let mut running = Amounts::new();
    for container in containers(pod, "containers") {
        add(&mut running, &of(container));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in containers(pod, "initContainers") {
        let own = of(container);
        if container["restartPolicy"] == "Always" {
            // A sidecar keeps running, so it is added to everything after it.
            add(&mut running, &own);
            add(&mut sidecars, &own);
            most(&mut starting, &sidecars);
        } else {
            let mut together = sidecars.clone();
            add(&mut together, &own);
            most(&mut starting, &together);
        }
    }
    most(&mut running, &starting);
    // Pod-level resources take precedence.
    for (name, amount) in of(&pod["spec"]) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            running.insert(name, amount);
        }
    }
    running
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match sum.get_mut(name) {
            Some(sum) => *sum = sum.plus(amount),
            None => {
                sum.insert(name.clone(), amount.clone());
            }
        }
    }
}

fn most(sum: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if sum.get(name).is_none_or(|sum| amount > sum) {
            sum.insert(name.clone(), amount.clone());
        }
    }
}

/// With a quota on CPU or memory every container of a Pod must specify it.
pub(super) fn constraints(limited: &Amounts, pod: &Value) -> Result<(), String> {
    let whole = &pod["spec"]["resources"];
    if ["requests", "limits"].iter().any(|side| whole[side].as_object().is_some_and(|r| !r.is_empty())) {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in containers(pod, "containers").iter().chain(containers(pod, "initContainers")) {
        let resources = &container["resources"];
        let has = named(&super::amounts(&resources["requests"]), &super::amounts(&resources["limits"]));
        for name in MUST_BE_NAMED {
            if limited.contains_key(name) && !has.contains_key(name) {
                missing.entry(name).or_default().insert(container["name"].as_str().unwrap_or_default());
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| {
            format!("{name} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
        })
        .collect();
    Err(format!("must specify {}", texts.join("; ")))
}

pub(super) fn in_scope(scope: &Value, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let has_deadline = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    match scope["scopeName"].as_str().unwrap_or_default() {
        "Terminating" => has_deadline,
        "NotTerminating" => !has_deadline,
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = spec["priorityClassName"].as_str().unwrap_or_default();
            let listed = scope["values"].as_array().is_some_and(|all| all.iter().any(|v| v == class));
            match scope["operator"].as_str().unwrap_or_default() {
                "Exists" => !class.is_empty(),
                "DoesNotExist" => class.is_empty(),
                "In" => !class.is_empty() && listed,
                "NotIn" => class.is_empty() || !listed,
                _ => false,
            }
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(spec),
        _ => false,
    }
}

/// Whether no container requests CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    let asks = |resources: &Value| {
        ["requests", "limits"].iter().any(|side| {
            let amounts = super::amounts(&resources[side]);
            amounts
                .iter()
                .any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && !amount.is_zero())
        })
    };
    let mut all = containers(pod, "containers").iter().chain(containers(pod, "initContainers"));
    !asks(&pod["spec"]["resources"]) && !all.any(|container| asks(&container["resources"]))
}

fn crosses_namespaces(spec: &Value) -> bool {
    let crosses = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|all| !all.is_empty())
            || term["namespaceSelector"].is_object()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let affinity = &spec["affinity"][kind];
        let required = affinity["requiredDuringSchedulingIgnoredDuringExecution"].as_array();
        let preferred = affinity["preferredDuringSchedulingIgnoredDuringExecution"].as_array();
        required.into_iter().flatten().any(crosses)
            || preferred.into_iter().flatten().any(|weighted| crosses(&weighted["podAffinityTerm"]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(cpu: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu}}})
    }

    #[test]
    fn a_pod_uses_what_runs_together_or_the_most_that_comes_before() {
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = "Always".into();
        let table = [
            (json!({"containers": [container("100m"), container("200m")]}), "300m", "2Gi"),
            (json!({"containers": [container("100m")], "initContainers": [container("2")]}), "2", "1Gi"),
            (
                json!({"containers": [container("1")], "initContainers": [sidecar, container("500m")]}),
                "1100m",
                "2Gi",
            ),
            (json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}), "1250m", "1Gi"),
            (json!({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}), "3", "1Gi"),
        ];
        for (spec, cpu, memory) in table {
            let used = usage(&json!({"spec": spec}), Timestamp::UNIX_EPOCH);
            assert_eq!(
                (used["requests.cpu"].to_string(), used["memory"].to_string()),
                (cpu.into(), memory.into()),
                "{spec}"
            );
        }
    }

    #[test]
    fn a_pod_that_ended_uses_nothing() {
        let pod = json!({"spec": {"containers": [container("1")]}, "status": {"phase": "Succeeded"}});
        assert!(usage(&pod, Timestamp::UNIX_EPOCH).is_empty());
    }

    #[test]
    fn every_container_must_name_what_is_limited() {
        let pod = json!({"spec": {"containers": [container("1"), {"name": "bare"}]}});
        let limited =
            super::super::amounts(&json!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "1"}));
        assert_eq!(
            constraints(&limited, &pod),
            Err("must specify limits.memory for: bare,c; requests.cpu for: bare".to_owned())
        );
    }

    #[test]
    fn scopes_distinguish_pods() {
        let cases = [
            ("Terminating", json!({"activeDeadlineSeconds": 5}), true),
            ("NotTerminating", json!({"activeDeadlineSeconds": 5}), false),
            ("BestEffort", json!({"containers": [{"name": "a"}]}), true),
            ("BestEffort", json!({"containers": [container("1")]}), false),
            ("PriorityClass", json!({"priorityClassName": "high"}), true),
            ("PriorityClass", json!({}), false),
        ];
        for (name, spec, expected) in cases {
            let scope = json!({"scopeName": name, "operator": "Exists"});
            assert_eq!(in_scope(&scope, &json!({"spec": spec})), expected, "{name} {spec}");
        }
    }
}
