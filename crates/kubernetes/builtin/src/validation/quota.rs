//! Resource quotas and limit ranges.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::quantities::{
    amount_of, container_resource_name, is_quota_resource, resource_amount, resource_name,
};
use super::report::{Report, entries, get, list, map, text, texts};
use crate::quantity::Quantity;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];

pub(super) fn quota(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource == "status" {
        for key in ["hard", "used"] {
            hard(&subject.new["status"], key, &Path::at("status").field(key), report);
        }
        return;
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    hard(spec, "hard", &path.field("hard"), report);
    scopes(spec, &path, report);
    if let Some(selector) = get(spec, "scopeSelector") {
        scope_selector(spec, selector, &path, report);
    }
    if let Some(old) = subject.old {
        let set = |o: &Value| -> BTreeSet<String> {
            texts(&o["spec"], "scopes").into_iter().map(str::to_owned).collect()
        };
        if set(subject.new) != set(old) {
            report.invalid(path.field("scopes"), spec["scopes"].clone(), meta::IMMUTABLE);
        }
    }
}

fn hard(holder: &Value, key: &str, path: &Path<'_>, report: &mut Report) {
    for (name, value) in entries(holder, key) {
        let path = path.key(name);
        resource_name(name, path, report);
        if !name.contains('/') && !is_quota_resource(name) {
            report.invalid(path, name.as_str(), "must be a standard resource for quota");
        }
        resource_amount(name, value, path, report);
    }
}

fn scope_covers(scope: &str, resource: &str) -> bool {
    let compute = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => resource == "pods" || compute.contains(&resource),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&resource),
        _ => true,
    }
}

fn uncovered<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a String> {
    entries(spec, "hard")
        .map(|(name, _)| name)
        .filter(move |n| is_quota_resource(n) && !scope_covers(scope, n))
}

fn conflicting(scopes: &[&str]) -> usize {
    [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")]
        .iter()
        .filter(|(a, b)| scopes.contains(a) && scopes.contains(b))
        .count()
}

fn scopes(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let scopes = texts(spec, "scopes");
    let path = path.field("scopes");
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            report.invalid(path, spec["scopes"].clone(), "unsupported scope");
        }
        for _ in uncovered(spec, scope) {
            report.invalid(path, spec["scopes"].clone(), "unsupported scope applied to resource");
        }
    }
    for _ in 0..conflicting(&scopes) {
        report.invalid(path, spec["scopes"].clone(), "conflicting scopes");
    }
}

fn scope_selector(spec: &Value, selector: &Value, path: &Path<'_>, report: &mut Report) {
    let root = path.field("scopeSelector");
    let path = root.field("matchExpressions");
    let expressions = list(selector, "matchExpressions");
    for expression in expressions {
        let (scope, operator) = (text(expression, "scopeName"), text(expression, "operator"));
        if !SCOPES.contains(&scope) {
            report.invalid(path.field("scopeName"), scope, "unsupported scope");
        }
        for _ in uncovered(spec, scope) {
            report.invalid(path, selector.clone(), "unsupported scope applied to resource");
        }
        let valueless =
            !["PriorityClass", "VolumeAttributesClass"].contains(&scope) && SCOPES.contains(&scope);
        if valueless && operator != "Exists" {
            report.invalid(path.field("operator"), operator, ONLY_EXISTS);
        }
        let values = list(expression, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => report.required(
                path.field("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if !values.is_empty() => report.invalid(
                path.field("values"),
                values.to_vec(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => report.invalid(path.field("operator"), other, "not a valid selector operator"),
        }
    }
    let named: Vec<&str> = expressions.iter().map(|e| text(e, "scopeName")).collect();
    for _ in 0..conflicting(&named) {
        report.invalid(path, spec["scopes"].clone(), "conflicting scopes");
    }
}

const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
     ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
     ResourceQuotaScopeCrossNamespacePodAffinity";

pub(super) fn limit_range(subject: &Subject<'_>, report: &mut Report) {
    if subject.old.is_some() {
        report.errors.clear();
        subject.metadata(report);
    }
    let limits = Path::at("spec.limits");
    let mut seen = BTreeSet::new();
    for (index, limit) in list(&subject.new["spec"], "limits").iter().enumerate() {
        let path = limits.index(index);
        let kind = text(limit, "type");
        let messages = meta::qualified_name(kind);
        if !messages.is_empty() {
            report.each(path.field("type"), kind, messages);
        } else if !kind.contains('/') && !["Pod", "Container", "PersistentVolumeClaim"].contains(&kind) {
            report.invalid(path.field("type"), kind, "must be a standard limit type or fully qualified");
        }
        if !seen.insert(kind) {
            report.duplicate(path.field("type"), kind);
        }
        limit_item(limit, kind, &path, report);
    }
}

fn limit_item(limit: &Value, kind: &str, path: &Path<'_>, report: &mut Report) {
    let mut names = BTreeSet::new();
    for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let field = path.field(key);
        if kind == "Pod" && key.starts_with("default") {
            if map(limit, key).is_some_and(|m| !m.is_empty()) {
                report.forbidden(field, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        if kind == "PersistentVolumeClaim" && key == "maxLimitRequestRatio" {
            let has = |k: &str| map(limit, k).is_some_and(|m| m.contains_key("storage"));
            if !has("min") && !has("max") {
                let detail = "either minimum or maximum storage value is required, but neither was provided";
                report.required(path.field("limits"), detail);
            }
        }
        for (name, _) in entries(limit, key) {
            match kind {
                "Pod" | "Container" => container_resource_name(name, field.key(name), report),
                _ => resource_name(name, field.key(name), report),
            }
            names.insert(name);
        }
    }
    for name in names {
        compare(limit, kind, name, path, report);
    }
}

fn compare(limit: &Value, kind: &str, name: &str, path: &Path<'_>, report: &mut Report) {
    let of = |key: &str| {
        let hidden = kind == "Pod" && key.starts_with("default");
        if hidden { None } else { amount_of(map(limit, key), name) }
    };
    let (min, max, default) = (of("min"), of("max"), of("default"));
    let (request, ratio) = (of("defaultRequest"), of("maxLimitRequestRatio"));
    let mut above = |field: &str,
                     a: &Option<Quantity>,
                     b: &Option<Quantity>,
                     shown: &Option<Quantity>,
                     names: (&str, &str)| {
        if let (Some(a), Some(b), Some(shown)) = (a, b, shown)
            && a > b
        {
            let detail = format!("{} value {a} is greater than {} value {b}", names.0, names.1);
            report.invalid(path.field(field).key(name), shown.to_string(), detail);
        }
    };
    above("min", &min, &max, &min, ("min", "max"));
    above("defaultRequest", &min, &request, &request, ("min", "default request"));
    above("defaultRequest", &request, &max, &request, ("default request", "max"));
    above("defaultRequest", &request, &default, &request, ("default request", "default limit"));
    above("default", &min, &default, &min, ("min", "default"));
    above("default", &default, &max, &max, ("default", "max"));
    let Some(ratio) = ratio else { return };
    let field = path.field("maxLimitRequestRatio");
    if ratio < Quantity::from_integer(1) {
        report.invalid(field.key(name), ratio.to_string(), format!("ratio {ratio} is less than 1"));
    }
    if let (Some(min), Some(max)) = (min, max) {
        let most = max.milli() as f64 / min.milli() as f64;
        if ratio.milli() as f64 / 1000.0 > most {
            let detail = format!("ratio {ratio} is greater than max/min = {most:.6}");
            report.invalid(field.key(name), ratio.to_string(), detail);
        }
    }
}
