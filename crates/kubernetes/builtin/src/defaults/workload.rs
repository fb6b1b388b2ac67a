//! Defaults of workload kinds.

use serde_json::{Value, json};

use super::{Object, child, empty, set, text};

pub(super) fn deployment(object: &mut Object) {
    let spec = child(object, "spec");
    set(spec, "replicas", 1);
    let strategy = child(spec, "strategy");
    set(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        set_absent(rolling, "maxUnavailable", json!("25%"));
        set_absent(rolling, "maxSurge", json!("25%"));
    }
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
}

pub(super) fn daemon_set(object: &mut Object) {
    let spec = child(object, "spec");
    let strategy = child(spec, "updateStrategy");
    set(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        set_absent(rolling, "maxUnavailable", json!(1));
        set_absent(rolling, "maxSurge", json!(0));
    }
    set(spec, "revisionHistoryLimit", 10);
}

pub(super) fn stateful_set(object: &mut Object) {
    let spec = child(object, "spec");
    set(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        strategy.insert("type".to_owned(), json!("RollingUpdate"));
        child(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
    {
        set_absent(rolling, "partition", json!(0));
    }
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        // Conversion sets the kind of each template.
        if let Value::Object(claim) = claim {
            set(claim, "apiVersion", "v1");
            set(claim, "kind", "PersistentVolumeClaim");
        }
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    set(retention, "whenDeleted", "Retain");
    set(retention, "whenScaled", "Retain");
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
}

pub(super) fn job(object: &mut Object) {
    let spec = child(object, "spec");
    if spec.get("completions").is_none_or(Value::is_null)
        && spec.get("parallelism").is_none_or(Value::is_null)
    {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    let per_index = spec.get("backoffLimitPerIndex").is_some_and(|v| !v.is_null());
    set(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    let failed = spec.get("podFailurePolicy").is_some_and(|v| !v.is_null());
    set(spec, "podReplacementPolicy", if failed { "Failed" } else { "TerminatingOrFailed" });
    set(spec, "manualSelector", false);
    let labels = spec.get("template").and_then(|t| t.pointer("/metadata/labels")).cloned();
    if let Some(labels) = labels.filter(|l| !empty(Some(l)))
        && empty(object.get("metadata").and_then(|m| m.get("labels")))
    {
        child(object, "metadata").insert("labels".to_owned(), labels);
    }
}

pub(super) fn cron_job_spec(spec: &mut Object) {
    set(spec, "concurrencyPolicy", "Allow");
    set(spec, "suspend", false);
    set(spec, "successfulJobsHistoryLimit", 3);
    set(spec, "failedJobsHistoryLimit", 1);
}

/// Sets an absent field; an empty string is a value here.
fn set_absent(object: &mut Object, key: &str, value: Value) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}
