//! Disruption budgets, priority classes, runtime classes and API services.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use super::apps::{at_most_all, int_or_percent};
use super::report::{PORT_RANGE, Report, get, int, internal, list, text};
use super::{Subject, pod};

/// The largest priority that is not reserved for the system.
const HIGHEST_USER_PRIORITY: i64 = 1_000_000_000;

pub(super) fn disruption_budget(subject: &Subject<'_>, report: &mut Report) {
    // Upstream validates only common metadata here.
    report.errors.clear();
    if subject.subresource == "status" {
        let path = Path::at("status");
        for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            report.not_negative(path.field(key), int(&subject.new["status"], key));
        }
        return;
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    if get(spec, "minAvailable").is_some() && get(spec, "maxUnavailable").is_some() {
        let none = Value::Null;
        let of = |key: &str| spec.get(key).unwrap_or(&none).clone();
        let shown = internal(&[
            ("MinAvailable", &of("minAvailable")),
            ("Selector", &of("selector")),
            ("MaxUnavailable", &of("maxUnavailable")),
            ("UnhealthyPodEvictionPolicy", &of("unhealthyPodEvictionPolicy")),
        ]);
        report.invalid_as(path, shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        if let Some(value) = get(spec, key) {
            int_or_percent(value, path.field(key), report);
            at_most_all(value, path.field(key), report);
        }
    }
    if let Some(selector) = get(spec, "selector") {
        report.extend(labels::validate(selector, &path.field("selector")));
    }
    if let Some(policy) = get(spec, "unhealthyPodEvictionPolicy").and_then(Value::as_str) {
        report.one_of(path.field("unhealthyPodEvictionPolicy"), policy, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}

pub(super) fn priority_class(subject: &Subject<'_>, report: &mut Report) {
    let value = int(subject.new, "value");
    if let Some(old) = subject.old {
        if value != int(old, "value") {
            report.forbidden(Path::at("value"), "may not be changed in an update.");
        }
        let key = "preemptionPolicy";
        report.immutable(Path::at(key), subject.new.get(key), old.get(key));
        return;
    }
    let name = text(&subject.new["metadata"], "name");
    let known = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
    if name.starts_with("system-") {
        let problem = match known.iter().find(|(n, _)| *n == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, right)) if *right != value => {
                Some(format!("value of {name} PriorityClass must be {right}"))
            }
            Some(_) if subject.new["globalDefault"] == true => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            report.forbidden(Path::at("metadata.name"), detail);
        }
    } else if value > HIGHEST_USER_PRIORITY {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}");
        report.forbidden(Path::at("value"), detail);
    }
    if let Some(policy) = get(subject.new, "preemptionPolicy").and_then(Value::as_str) {
        match policy {
            "" => report.required(Path::at("preemptionPolicy"), ""),
            _ => report.one_of(Path::at("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]),
        }
    }
}

pub(super) fn runtime_class(subject: &Subject<'_>, report: &mut Report) {
    let handler = text(subject.new, "handler");
    if let Some(old) = subject.old {
        report.immutable(Path::at("handler"), subject.new.get("handler"), old.get("handler"));
        return;
    }
    if handler.is_empty() {
        report.required(Path::at("handler"), "");
    } else {
        report.each(Path::at("handler"), handler, meta::dns1123_label(handler));
    }
    if let Some(overhead) = get(subject.new, "overhead") {
        // As upstream, which validates it as the limits of a container.
        pod::limits(overhead.get("podFixed"), &Path::at("overhead.limits"), report);
    }
    if let Some(scheduling) = get(subject.new, "scheduling") {
        let path = Path::at("scheduling");
        report.extend(meta::validate_labels(scheduling.get("nodeSelector"), &path.field("nodeSelector")));
        let field = path.field("tolerations");
        pod::tolerations(scheduling, &field, report);
        let mut seen = BTreeSet::new();
        for (index, toleration) in list(scheduling, "tolerations").iter().enumerate() {
            let key = ["key", "operator", "value", "effect"].map(|key| text(toleration, key));
            if !seen.insert(key) {
                let none = Value::Null;
                let seconds = toleration.get("tolerationSeconds").unwrap_or(&none);
                let [key, operator, value, effect] = key.map(Value::from);
                let shown = internal(&[
                    ("Key", &key),
                    ("Operator", &operator),
                    ("Value", &value),
                    ("Effect", &effect),
                    ("TolerationSeconds", seconds),
                ]);
                report.duplicate_as(field.index(index), shown);
            }
        }
    }
}

pub(super) fn api_service(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        let conditions = Path::at("status.conditions");
        for (index, condition) in list(&subject.new["status"], "conditions").iter().enumerate() {
            let field = conditions.index(index);
            report.one_of(field.field("status"), text(condition, "status"), &["True", "False", "Unknown"]);
        }
        return;
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let (name, wanted) = (text(&subject.new["metadata"], "name"), format!("{version}.{group}"));
    if name != wanted && meta::path_segment(name, false).is_empty() && !name.is_empty() {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        report.invalid(Path::at("metadata.name"), name, detail);
    }
    if group.is_empty() && version != "v1" {
        report.required(path.field("group"), "only v1 may have an empty group and it better be legacy kube");
    }
    if !group.is_empty() {
        report.each(path.field("group"), group, meta::dns1123_subdomain(group));
    }
    report.each(path.field("version"), version, meta::dns1035_label(version));
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = int(spec, key);
        if !(1..=most).contains(&value) {
            report.invalid(path.field(key), value, format!("must be positive and less than {most}"));
        }
    }
    let bundle = text(spec, "caBundle");
    let insecure = spec["insecureSkipTLSVerify"] == true;
    let Some(service) = get(spec, "service") else {
        if !bundle.is_empty() {
            let shown = format!("{} bytes", crate::decode::base64_len(bundle));
            report.invalid(path.field("caBundle"), shown, "local APIServices may not have a caBundle");
        }
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            report.invalid(path.field("insecureSkipTLSVerify"), true, detail);
        }
        return;
    };
    let field = path.field("service");
    for key in ["namespace", "name"] {
        if text(service, key).is_empty() {
            report.required(field.field(key), "");
        }
    }
    let port = int(service, "port");
    if !(1..=65535).contains(&port) {
        report.invalid(field.field("port"), port, format!("port is not valid: {PORT_RANGE}"));
    }
    if insecure && !bundle.is_empty() {
        report.invalid(path.field("insecureSkipTLSVerify"), true, "may not be true if caBundle is present");
    }
}
