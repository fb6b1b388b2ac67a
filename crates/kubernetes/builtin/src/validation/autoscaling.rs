//! Autoscalers in `v2`: `v1` is converted before validation.

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::report::{Report, get, int, list, maybe_int, text};
use crate::quantity::Quantity;

const LONGEST_PERIOD: i64 = 1800;
const LONGEST_WINDOW: i64 = 3600;
const SOURCES: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
const SOURCE_TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

pub(super) fn autoscaler(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        let path = Path::at("status");
        for key in ["currentReplicas", "desiredReplicas"] {
            report.not_negative(path.field(key), int(&subject.new["status"], key));
        }
        return;
    }
    let spec = &subject.new["spec"];
    let old = subject.old.map(|old| &old["spec"]);
    let path = Path::at("spec");
    // An autoscaler that was allowed to scale to zero may keep doing so.
    let lowest = i64::from(old.and_then(|old| maybe_int(old, "minReplicas")) != Some(0));
    let (least, most) = (maybe_int(spec, "minReplicas"), int(spec, "maxReplicas"));
    if let Some(least) = least.filter(|least| *least < lowest) {
        let detail = format!("must be greater than or equal to {lowest}");
        report.invalid(path.field("minReplicas"), least, detail);
    }
    match most {
        0 => report.required(path.field("maxReplicas"), "must be set and greater than 0"),
        ..0 => report.invalid(path.field("maxReplicas"), most, "must be greater than or equal to 1"),
        _ => {}
    }
    if least.is_some_and(|least| most < least) {
        report.invalid(path.field("maxReplicas"), most, "must be greater than or equal to `minReplicas`");
    }
    let target = &spec["scaleTargetRef"];
    let unchanged = old.is_some_and(|old| {
        ["apiVersion", "kind"].iter().all(|key| text(&old["scaleTargetRef"], key) == text(target, key))
    });
    let api_version = match (unchanged, text(target, "kind")) {
        (true, _) => ApiVersion::Any,
        // The only scalable kind of the core group.
        (false, "ReplicationController") => ApiVersion::Valid,
        (false, _) => ApiVersion::WithGroup,
    };
    reference(target, path.field("scaleTargetRef"), api_version, report);
    metrics(spec, old, path.field("metrics"), report);
    if let Some(behavior) = get(spec, "behavior") {
        let path = path.field("behavior");
        for direction in ["scaleUp", "scaleDown"] {
            if let Some(rules) = get(behavior, direction) {
                scaling_rules(rules, path.field(direction), report);
            }
        }
    }
}

/// What an `apiVersion` must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersion {
    Any,
    Valid,
    WithGroup,
}

impl ApiVersion {
    fn problem(self, api_version: &str) -> Option<String> {
        match (self, api_version.split('/').collect::<Vec<_>>().as_slice()) {
            (Self::Any, _) => None,
            (_, [_, _, _, ..]) => Some(format!("unexpected GroupVersion string: {api_version}")),
            (Self::WithGroup, [_] | ["", _]) => Some("apiVersion must specify API group".to_owned()),
            _ => None,
        }
    }
}

fn reference(of: &Value, path: Path<'_>, api_version: ApiVersion, report: &mut Report) {
    for key in ["kind", "name"] {
        match text(of, key) {
            "" => report.required(path.field(key), ""),
            value => report.each(path.field(key), value, meta::path_segment(value, false)),
        }
    }
    if let Some(problem) = api_version.problem(text(of, "apiVersion")) {
        report.invalid(path.field("apiVersion"), text(of, "apiVersion"), problem);
    }
}

fn metrics(spec: &Value, old: Option<&Value>, path: Path<'_>, report: &mut Report) {
    let is_object = |metric: &Value| text(metric, "type") == "Object";
    let was_invalid = old.is_some_and(|old| {
        let objects = list(old, "metrics").iter().filter(|m| is_object(m));
        objects
            .filter_map(|metric| get(&metric["object"], "describedObject"))
            .any(|described| ApiVersion::Valid.problem(text(described, "apiVersion")).is_some())
    });
    let api_version = if was_invalid { ApiVersion::Any } else { ApiVersion::Valid };
    for (index, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(metric, path.index(index), api_version, report);
    }
    let counts_things = |metric: &Value| matches!(text(metric, "type"), "Object" | "External");
    if maybe_int(spec, "minReplicas") == Some(0) && !list(spec, "metrics").iter().any(counts_things) {
        let detail =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        report.forbidden(path, detail);
    }
}

fn metric(metric: &Value, path: Path<'_>, api_version: ApiVersion, report: &mut Report) {
    let kind = text(metric, "type");
    if kind.is_empty() {
        report.required(path.field("type"), "must specify a metric source type");
    }
    let known = SOURCE_TYPES.contains(&kind);
    if !known {
        report.not_supported(path.field("type"), kind, &SOURCE_TYPES);
    }
    let present: Vec<&str> = SOURCES.into_iter().filter(|source| get(metric, source).is_some()).collect();
    if let Some(first) = present.first() {
        source(first, &metric[*first], path.field(first), api_version, report);
    }
    let mut expected = kind.to_owned();
    if let Some(first) = expected.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    if !known {
        report.not_supported(path.field("type"), kind, &SOURCE_TYPES);
    } else if get(metric, &expected).is_none() {
        let detail = "must populate information for the given metric source";
        report.required(path.field(&expected), detail);
    }
    if present.len() != 1 {
        for source in present.into_iter().filter(|source| *source != expected) {
            report.forbidden(path.field(source), "must populate the given metric source only");
        }
    }
}

fn source(name: &str, of: &Value, path: Path<'_>, api_version: ApiVersion, report: &mut Report) {
    let target = &of["target"];
    let has = |key: &str| get(target, key).is_some();
    let at = path.field("target");
    match name {
        "object" => reference(&of["describedObject"], path.field("describedObject"), api_version, report),
        "resource" | "containerResource" if text(of, "name").is_empty() => {
            report.required(path.field("name"), "must specify a resource name");
        }
        "containerResource" => {
            super::quantities::container_resource_name(text(of, "name"), path.field("name"), report);
        }
        _ => {}
    }
    if name == "containerResource" {
        match text(of, "container") {
            "" => report.required(path.field("container"), "must specify a container"),
            container => {
                report.each(path.field("container"), container, meta::dns1123_label(container));
            }
        }
    }
    if matches!(name, "object" | "external" | "pods") {
        match text(&of["metric"], "name") {
            "" => report.required(path.field("metric").field("name"), "must specify a metric name"),
            metric => {
                report.each(path.field("metric").field("name"), metric, meta::path_segment(metric, false));
            }
        }
    }
    metric_target(target, at, report);
    match name {
        "object" if !has("value") && !has("averageValue") => {
            report.required(at.field("averageValue"), "must set either a target value or averageValue");
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            report.required(at.field("averageValue"), detail);
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            report.forbidden(at.field("value"), detail);
        }
        "pods" if !has("averageValue") => {
            report.required(at.field("averageValue"), "must specify a positive target averageValue");
        }
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => {
                let detail = "must set either a target raw value or a target utilization";
                report.required(at.field("averageUtilization"), detail);
            }
            (true, true) => {
                let detail = "may not set both a target raw value and a target utilization";
                report.forbidden(at.field("averageValue"), detail);
            }
            _ => {}
        },
        _ => {}
    }
}

fn metric_target(target: &Value, path: Path<'_>, report: &mut Report) {
    let kind = text(target, "type");
    if kind.is_empty() {
        report.required(path.field("type"), "must specify a metric target type");
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        report.invalid(path.field("type"), kind, "must be either Utilization, Value, or AverageValue");
    }
    for key in ["value", "averageValue"] {
        let amount = text(target, key);
        if Quantity::parse(amount).is_ok_and(|amount| amount.is_zero() || amount.is_negative()) {
            report.invalid(path.field(key), amount, "must be positive");
        }
    }
    if let Some(percent) = maybe_int(target, "averageUtilization").filter(|percent| *percent < 1) {
        report.invalid(path.field("averageUtilization"), percent, "must be greater than 0");
    }
}

fn scaling_rules(rules: &Value, path: Path<'_>, report: &mut Report) {
    if let Some(window) = maybe_int(rules, "stabilizationWindowSeconds") {
        let at = path.field("stabilizationWindowSeconds");
        if window < 0 {
            report.invalid(at, window, "must be greater than or equal to zero");
        }
        if window > LONGEST_WINDOW {
            report.invalid(at, window, format!("must be less than or equal to {LONGEST_WINDOW}"));
        }
    }
    if let Some(select) = get(rules, "selectPolicy").and_then(Value::as_str) {
        report.one_of(path.field("selectPolicy"), select, &["Disabled", "Max", "Min"]);
    }
    let policies = path.field("policies");
    if list(rules, "policies").is_empty() {
        report.required(policies, "must specify at least one Policy");
    }
    for (index, policy) in list(rules, "policies").iter().enumerate() {
        let path = policies.index(index);
        report.one_of(path.field("type"), text(policy, "type"), &["Percent", "Pods"]);
        for key in ["value", "periodSeconds"] {
            if int(policy, key) <= 0 {
                report.invalid(path.field(key), int(policy, key), "must be greater than zero");
            }
        }
        if int(policy, "periodSeconds") > LONGEST_PERIOD {
            let detail = format!("must be less than or equal to {LONGEST_PERIOD}");
            report.invalid(path.field("periodSeconds"), int(policy, "periodSeconds"), detail);
        }
    }
    let tolerance = text(rules, "tolerance");
    if Quantity::parse(tolerance).is_ok_and(|tolerance| tolerance.is_negative()) {
        report.invalid(path.field("tolerance"), tolerance, super::report::NOT_NEGATIVE);
    }
}
