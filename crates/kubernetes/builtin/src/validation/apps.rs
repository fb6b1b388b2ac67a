//! Deployments, daemon sets, stateful sets, replica sets and controller revisions.

use std::collections::HashSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::{LabelSelector, labels};
use serde_json::{Value, json};

use super::report::{Report, get, int, internal, list, maybe_int, text};
use super::{Subject, pod, storage_claims};

const NO_MATCH: &str = "`selector` does not match template `labels`";

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        return status(subject, report);
    }
    if subject.subresource == "scale" {
        return;
    }
    match subject.kind {
        "Deployment" => deployment(subject, report),
        "ReplicaSet" => replica_set(subject, report),
        "DaemonSet" => daemon_set(subject, report),
        "StatefulSet" => stateful_set(subject, report),
        "ControllerRevision" => controller_revision(subject, report),
        _ => {}
    }
}

/// A required, non-empty selector.
fn selector(spec: &Value, what: &str, path: &Path<'_>, report: &mut Report) -> Option<LabelSelector> {
    let field = path.field("selector");
    match get(spec, "selector") {
        None => report.required(field, ""),
        Some(selector) => {
            report.extend(labels::validate(selector, &field));
            if is_empty(selector) {
                report.invalid_selector(field, selector, format!("empty selector is invalid for {what}"));
            }
        }
    }
    LabelSelector::from_object(&spec["selector"]).ok()
}

fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(|m| m.is_empty())
        && list(selector, "matchExpressions").is_empty()
}

fn matching_template(spec: &Value, selector: Option<&LabelSelector>, path: &Path<'_>, report: &mut Report) {
    let labels = &spec["template"]["metadata"]["labels"];
    if let Some(selector) = selector
        && !selector.is_empty()
        && !selector.matches_labels(labels.as_object())
    {
        let field = path.field("template");
        let field = field.field("metadata");
        report.invalid(field.field("labels"), labels.clone(), NO_MATCH);
    }
}

/// Pods of long-running workloads always restart and have no deadline.
fn long_running(spec: &Value, what: &str, path: &Path<'_>, report: &mut Report) {
    let template = path.field("template");
    let field = template.field("spec");
    let policy = text(&spec["template"]["spec"], "restartPolicy");
    if policy != "Always" {
        report.not_supported(field.field("restartPolicy"), policy, &["Always"]);
    }
    if get(&spec["template"]["spec"], "activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {what} is not Supported");
        report.forbidden(field.field("activeDeadlineSeconds"), detail);
    }
}

pub(super) fn replication_controller(subject: &Subject<'_>, report: &mut Report) {
    match subject.subresource {
        "status" => return status(subject, report),
        "scale" => return,
        _ => {}
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    report.not_negative(path.field("minReadySeconds"), int(spec, "minReadySeconds"));
    let labels = spec["selector"].as_object().filter(|labels| !labels.is_empty());
    if labels.is_none() {
        report.required(path.field("selector"), "");
    }
    match maybe_int(spec, "replicas") {
        None => report.required(path.field("replicas"), ""),
        Some(replicas) => report.not_negative(path.field("replicas"), replicas),
    }
    if get(spec, "template").is_none() {
        report.required(path.field("template"), "");
        return;
    }
    let selector = labels.and_then(|labels| LabelSelector::from_object(&json!({"matchLabels": labels})).ok());
    matching_template(spec, selector.as_ref(), &path, report);
    pod::template(&spec["template"], &path.field("template"), report);
    long_running(spec, "ReplicationController", &path, report);
}

fn deployment(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    report.not_negative(path.field("replicas"), int(spec, "replicas"));
    let selector = selector(spec, "deployment", &path, report);
    match &selector {
        Some(selector) => {
            matching_template(spec, Some(selector), &path, report);
            pod::template(&spec["template"], &path.field("template"), report);
            long_running(spec, "ReplicaSet", &path, report);
        }
        None => report.invalid_selector(path.field("selector"), &spec["selector"], "invalid label selector"),
    }
    deployment_strategy(&spec["strategy"], &path.field("strategy"), report);
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        report.not_negative(path.field(key), int(spec, key));
    }
    if let Some(deadline) =
        maybe_int(spec, "progressDeadlineSeconds").filter(|d| *d <= int(spec, "minReadySeconds"))
    {
        report.invalid(
            path.field("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        );
    }
    if let Some(old) = subject.old {
        report.immutable_selector(path.field("selector"), spec.get("selector"), old["spec"].get("selector"));
    }
}

fn deployment_strategy(strategy: &Value, path: &Path<'_>, report: &mut Report) {
    let rolling = get(strategy, "rollingUpdate");
    let field = path.field("rollingUpdate");
    match (text(strategy, "type"), rolling) {
        ("Recreate", Some(_)) => {
            report.forbidden(field, "may not be specified when strategy `type` is 'Recreate'");
        }
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            int_or_percent(unavailable, field.field("maxUnavailable"), report);
            int_or_percent(surge, field.field("maxSurge"), report);
            if amount(unavailable) == 0 && amount(surge) == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                report.invalid(field.field("maxUnavailable"), unavailable.clone(), detail);
            }
            at_most_all(unavailable, field.field("maxUnavailable"), report);
        }
        ("RollingUpdate", None) => report.required(field, "this should be defaulted and never be nil"),
        (other, _) => {
            let kind = json!(other);
            let shown = internal(&[("Type", &kind), ("RollingUpdate", rolling.unwrap_or(&Value::Null))]);
            report.not_supported_as(*path, shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

/// A non-negative number or percentage.
pub(super) fn int_or_percent(value: &Value, path: Path<'_>, report: &mut Report) {
    match value {
        Value::String(text) if percent(text).is_none() => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' \
                 (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            report.invalid(path, text.as_str(), detail);
        }
        Value::String(_) => {}
        other => report.not_negative(path, other.as_i64().unwrap_or_default()),
    }
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    numeric.then(|| digits.parse().unwrap_or(i64::MAX))
}

fn amount(value: &Value) -> i64 {
    match value {
        Value::String(text) => percent(text).or_else(|| text.parse().ok()).unwrap_or_default(),
        other => other.as_i64().unwrap_or_default(),
    }
}

pub(super) fn at_most_all(value: &Value, path: Path<'_>, report: &mut Report) {
    if value.as_str().and_then(percent).is_some_and(|p| p > 100) {
        report.invalid(path, value.clone(), "must not be greater than 100%");
    }
}

fn replica_set(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    for key in ["replicas", "minReadySeconds"] {
        report.not_negative(path.field(key), int(spec, key));
    }
    let selector = selector(spec, "deployment", &path, report);
    match &selector {
        Some(selector) => {
            matching_template(spec, Some(selector), &path, report);
            pod::template(&spec["template"], &path.field("template"), report);
            long_running(spec, "ReplicaSet", &path, report);
        }
        None => report.invalid_selector(path.field("selector"), &spec["selector"], "invalid label selector"),
    }
    if let Some(old) = subject.old {
        report.immutable_selector(path.field("selector"), spec.get("selector"), old["spec"].get("selector"));
    }
}

fn daemon_set(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    if let Some(old) = subject.old {
        report.immutable_selector(path.field("selector"), spec.get("selector"), old["spec"].get("selector"));
    }
    if let Some(selector) = get(spec, "selector") {
        report.extend(labels::validate(selector, &path.field("selector")));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let selects = match get(spec, "selector") {
        None => false,
        Some(selector) => {
            LabelSelector::from_object(selector).is_ok_and(|s| !s.matches_labels(labels.as_object()))
        }
    };
    if selects || get(spec, "selector").is_none() {
        report.invalid(path.field("template").field("metadata").field("labels"), labels.clone(), NO_MATCH);
    }
    if let Some(selector) = get(spec, "selector").filter(|s| is_empty(s)) {
        report.invalid_selector(path.field("selector"), selector, "empty selector is invalid for daemonset");
    }
    pod::template(&spec["template"], &path.field("template"), report);
    long_running(spec, "DaemonSet", &path, report);
    report.not_negative(path.field("minReadySeconds"), int(spec, "minReadySeconds"));
    daemon_strategy(&spec["updateStrategy"], &path.field("updateStrategy"), report);
    report.not_negative(path.field("revisionHistoryLimit"), int(spec, "revisionHistoryLimit"));
}

fn daemon_strategy(strategy: &Value, path: &Path<'_>, report: &mut Report) {
    let rolling = get(strategy, "rollingUpdate");
    let field = path.field("rollingUpdate");
    match (text(strategy, "type"), rolling) {
        ("OnDelete", _) => {}
        ("RollingUpdate", None) => report.required(field, ""),
        ("RollingUpdate", Some(rolling)) => {
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            let (unavailable_path, surge_path) = (field.field("maxUnavailable"), field.field("maxSurge"));
            int_or_percent(unavailable, unavailable_path, report);
            int_or_percent(surge, surge_path, report);
            at_most_all(unavailable, unavailable_path, report);
            at_most_all(surge, surge_path, report);
            match (amount(unavailable) != 0, amount(surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    report.invalid(surge_path, surge.clone(), detail);
                }
                (false, false) => report.required(unavailable_path, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        (other, _) => {
            let kind = json!(other);
            let shown = internal(&[("Type", &kind), ("RollingUpdate", rolling.unwrap_or(&Value::Null))]);
            report.not_supported_as(*path, shown, &["RollingUpdate", "OnDelete"]);
        }
    }
}

fn stateful_set(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    match text(spec, "podManagementPolicy") {
        "" => report.required(path.field("podManagementPolicy"), ""),
        "OrderedReady" | "Parallel" => {}
        other => {
            report.invalid(path.field("podManagementPolicy"), other, "must be 'OrderedReady' or 'Parallel'");
        }
    }
    stateful_strategy(&spec["updateStrategy"], &path.field("updateStrategy"), report);
    let retention = path.field("persistentVolumeClaimRetentionPolicy");
    if let Some(policy) = get(spec, "persistentVolumeClaimRetentionPolicy") {
        for key in ["whenDeleted", "whenScaled"] {
            report.one_of(retention.field(key), text(policy, key), &["Retain", "Delete"]);
        }
    }
    if subject.old.is_none() {
        let templates = path.field("volumeClaimTemplates");
        for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
            let item = templates.index(index);
            storage_claims::claim_spec(&claim["spec"], &item.field("spec"), report);
        }
    }
    for key in ["replicas", "minReadySeconds"] {
        report.not_negative(path.field(key), int(spec, key));
    }
    if let Some(start) = maybe_int(&spec["ordinals"], "start") {
        report.not_negative(path.field("ordinals.start"), start);
    }
    let service = text(spec, "serviceName");
    if subject.old.is_none() && !service.is_empty() {
        report.each(path.field("serviceName"), service, meta::dns1123_label(service));
    }
    match selector(spec, "statefulset", &path, report) {
        None => report.invalid_selector(path.field("selector"), &spec["selector"], ""),
        Some(selector) => {
            matching_template(spec, Some(&selector), &path, report);
            let template = with_claims(spec);
            pod::template(&template, &path.field("template"), report);
        }
    }
    long_running(spec, "StatefulSet", &path, report);
    if let Some(old) = subject.old {
        let fixed = |spec: &Value| {
            let mut spec = spec.clone();
            if let Some(map) = spec.as_object_mut() {
                for key in [
                    "replicas",
                    "template",
                    "updateStrategy",
                    "minReadySeconds",
                    "ordinals",
                    "revisionHistoryLimit",
                    "persistentVolumeClaimRetentionPolicy",
                ] {
                    map.remove(key);
                }
            }
            spec
        };
        if fixed(spec) != fixed(&old["spec"]) {
            let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                 'minReadySeconds' are forbidden";
            report.forbidden(path, detail);
        }
    }
}

/// The template with the volumes of its claims.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    pod.remove("subdomain");
    pod.remove("hostname");
    let claims: Vec<&str> =
        list(spec, "volumeClaimTemplates").iter().map(|c| text(&c["metadata"], "name")).collect();
    let claimed: HashSet<&str> = claims.iter().copied().collect();
    if !claims.is_empty() {
        let volumes = pod.entry("volumes").or_insert_with(|| json!([]));
        if let Value::Array(volumes) = volumes {
            volumes.retain(|v| !claimed.contains(text(v, "name")));
            let claimed =
                claims.iter().map(|c| json!({"name": c, "persistentVolumeClaim": {"claimName": c}}));
            volumes.splice(0..0, claimed);
        }
    }
    template
}

fn stateful_strategy(strategy: &Value, path: &Path<'_>, report: &mut Report) {
    let rolling = get(strategy, "rollingUpdate");
    let field = path.field("rollingUpdate");
    match text(strategy, "type") {
        "" => report.required(*path, ""),
        "OnDelete" => {
            if let Some(rolling) = rolling {
                let shown = internal(&[
                    ("Partition", rolling.get("partition").unwrap_or(&json!(0))),
                    ("MaxUnavailable", rolling.get("maxUnavailable").unwrap_or(&Value::Null)),
                ]);
                report.invalid_as(field, shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            let Some(rolling) = rolling else { return };
            report.not_negative(field.field("partition"), int(rolling, "partition"));
            if let Some(unavailable) = get(rolling, "maxUnavailable") {
                let path = field.field("maxUnavailable");
                int_or_percent(unavailable, path, report);
                if amount(unavailable) == 0 {
                    report.invalid(path, unavailable.clone(), "cannot be 0");
                }
                at_most_all(unavailable, path, report);
            }
        }
        other => {
            let kind = json!(other);
            let shown = internal(&[("Type", &kind), ("RollingUpdate", rolling.unwrap_or(&Value::Null))]);
            report.invalid_as(*path, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn controller_revision(subject: &Subject<'_>, report: &mut Report) {
    if subject.old.is_some() {
        subject.metadata(report);
    }
    report.not_negative(Path::at("revision"), int(subject.new, "revision"));
    match subject.old {
        Some(old) => report.immutable(Path::at("data"), subject.new.get("data"), old.get("data")),
        None => match get(subject.new, "data") {
            None => report.required(Path::at("data"), "data is mandatory"),
            Some(Value::Object(_)) => {}
            Some(_) => report.required(Path::at("data"), "data must be a valid JSON object"),
        },
    }
}

/// Replica counts are not negative, and parts do not exceed the total.
fn status(subject: &Subject<'_>, report: &mut Report) {
    let status = &subject.new["status"];
    let path = Path::at("status");
    let (counts, parts): (&[&str], &[&str]) = match subject.kind {
        "Deployment" => (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
        ),
        "ReplicaSet" | "ReplicationController" => (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        ),
        "StatefulSet" => (
            &[
                "replicas",
                "readyReplicas",
                "currentReplicas",
                "updatedReplicas",
                "availableReplicas",
                "observedGeneration",
                "collisionCount",
            ],
            &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        ),
        "DaemonSet" => (
            &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ],
            &[],
        ),
        _ => return,
    };
    for key in counts {
        report.not_negative(path.field(key), int(status, key));
    }
    for key in parts {
        if int(status, key) > int(status, "replicas") {
            report.invalid(path.field(key), int(status, key), "cannot be greater than status.replicas");
        }
    }
    if !parts.is_empty() && int(status, "availableReplicas") > int(status, "readyReplicas") {
        let what = if subject.kind == "StatefulSet" { "status.readyReplicas" } else { "readyReplicas" };
        let detail = format!("cannot be greater than {what}");
        report.invalid(path.field("availableReplicas"), int(status, "availableReplicas"), detail);
    }
    let before = subject.old.and_then(|o| maybe_int(&o["status"], "collisionCount"));
    if subject.kind != "ReplicaSet" && before.is_some_and(|b| int(status, "collisionCount") < b) {
        report.invalid(path.field("collisionCount"), int(status, "collisionCount"), "cannot be decremented");
    }
}
