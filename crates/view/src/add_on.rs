//! Add-ons of a cluster: what ClusterResourceSets applied to it. Their binding shows it as a condition.

use capstan_object::{Condition, ConditionStatus, Conditions as _, ObjectMeta, Time};
use serde_json::Value;

use crate::Part;

/// Type of the condition that a binding is shown with.
pub(crate) const APPLIED: &str = "Applied";
/// Type of the condition of a set with the errors of objects.
const RESOURCES_APPLIED: &str = "ResourcesApplied";
/// The kinds.
const BINDING: &str = "ClusterResourceSetBinding";
const SET: &str = "ClusterResourceSet";

/// The cluster whose add-ons a binding records.
pub(crate) fn cluster_of(kind: &str, object: &Value) -> Option<String> {
    (kind == BINDING).then(|| object["spec"]["clusterName"].as_str().map(str::to_owned)).flatten()
}

/// What a binding says as a condition. Of a resource that is not applied, the message names the set.
pub(crate) fn applied(kind: &str, meta: &ObjectMeta, object: &Value) -> Option<Condition> {
    if kind != BINDING {
        return None;
    }
    let (mut failed, mut open) = (Vec::new(), Vec::new());
    let mut latest: Option<&str> = None;
    for set in object["spec"]["bindings"].as_array().into_iter().flatten() {
        let name = set["clusterResourceSetName"].as_str().unwrap_or_default();
        let resources = set["resources"].as_array().map_or(&[][..], Vec::as_slice);
        if resources.is_empty() {
            open.push(format!("ClusterResourceSet {name}: nothing is applied yet"));
        }
        for resource in resources {
            latest = latest.max(resource["lastAppliedTime"].as_str());
            let text = |field: &str| resource[field].as_str().unwrap_or_default();
            let what = format!("ClusterResourceSet {name}: {} {}", text("kind"), text("name"));
            match resource["applied"].as_bool() {
                Some(true) => {}
                Some(false) => failed.push(format!("{what} could not be applied")),
                None => open.push(format!("{what} is not applied yet")),
            }
        }
    }
    let (status, reason, messages) = match (failed.is_empty(), open.is_empty()) {
        (false, _) => (ConditionStatus::False, "ApplyFailed", failed),
        (_, false) => (ConditionStatus::False, "Applying", open),
        _ => (ConditionStatus::True, "Applied", Vec::new()),
    };
    let latest = latest.and_then(|time| time.parse().ok()).map(Time::new);
    Some(Condition {
        kind: APPLIED.to_owned(),
        status,
        reason: reason.to_owned(),
        message: messages.join("; "),
        last_transition_time: latest.or(meta.creation_timestamp)?,
        observed_generation: None,
    })
}

/// Puts bindings below their clusters, and the errors of their sets into what they say: the binding does not have them.
pub(crate) fn attach(parts: &mut [Part]) {
    let clusters: Vec<(String, String, String)> = parts
        .iter()
        .filter(|part| part.kind == "Cluster")
        .map(|part| (part.namespace.clone(), part.name.clone(), part.uid.clone()))
        .collect();
    let errors: Vec<(String, String, String)> = parts
        .iter()
        .filter(|part| part.kind == SET)
        .filter_map(|part| {
            let applied = part.conditions.condition(RESOURCES_APPLIED)?;
            let error = applied.message.clone();
            let open = !applied.is_true() && !error.is_empty();
            open.then(|| (part.namespace.clone(), part.name.clone(), error))
        })
        .collect();
    for binding in parts.iter_mut() {
        let Some(cluster) = &binding.add_ons_of else { continue };
        let own =
            clusters.iter().find(|(namespace, name, _)| (namespace, name) == (&binding.namespace, cluster));
        if let Some((_, _, uid)) = own {
            binding.owners.insert(0, uid.clone());
        }
        let Some(applied) = binding.conditions.iter_mut().find(|it| it.kind == APPLIED && !it.is_true())
        else {
            continue;
        };
        for (namespace, set, error) in &errors {
            if *namespace == binding.namespace
                && applied.message.contains(&format!("ClusterResourceSet {set}: "))
            {
                applied.message.push_str(": ");
                applied.message.push_str(error);
            }
        }
    }
}
