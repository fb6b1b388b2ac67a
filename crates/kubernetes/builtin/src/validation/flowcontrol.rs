//! Priority levels and flow schemas.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::report::{Report, flag, get, int, list, maybe_int, same, text, texts};
use crate::flowcontrol;

const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// Bits of a flow's hash that may be used to deal it a hand of queues.
const MAX_HASH_BITS: i64 = 60;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    if subject.subresource != "status" {
        if subject.old.is_some() {
            // Upstream validates the changed object as a new one, and nothing else.
            report.errors.clear();
            subject.metadata(report);
        }
        let name = text(&subject.new["metadata"], "name");
        let spec = &subject.new["spec"];
        match subject.kind {
            "FlowSchema" => {
                flow_schema(name, spec, report);
                fixed(subject.kind, name, spec, report);
            }
            "PriorityLevelConfiguration" => {
                level(name, spec, report);
                fixed(subject.kind, name, spec, report);
            }
            _ => return,
        }
    }
    let status = Path::at("status");
    let path = status.field("conditions");
    let mut types = BTreeSet::new();
    for (index, condition) in list(&subject.new["status"], "conditions").iter().enumerate() {
        let path = path.index(index);
        let kind = text(condition, "type");
        if !types.insert(kind) {
            report.duplicate(path.field("type"), kind);
        }
        if kind.is_empty() {
            report.required(path.field("type"), "");
        }
    }
}

/// The spec of a mandatory object is fixed, except how many seats the exempt level lends.
fn fixed(kind: &str, name: &str, spec: &Value, report: &mut Report) {
    let Some(wanted) = flowcontrol::mandatory(kind, name) else { return };
    let mut given = spec.clone();
    let mut except = "";
    if kind == "PriorityLevelConfiguration" && name == "exempt" {
        given["exempt"] = wanted["exempt"].clone();
        except = " except the 'spec.exempt' field";
    }
    if !same(Some(&given), Some(wanted)) {
        let detail = format!("spec of '{name}'{except} must equal the fixed value");
        report.invalid(Path::at("spec"), spec.clone(), detail);
    }
}

fn flow_schema(name: &str, spec: &Value, report: &mut Report) {
    let path = Path::at("spec");
    let precedence = int(spec, "matchingPrecedence");
    let field = path.field("matchingPrecedence");
    if precedence <= 0 {
        report.invalid(field, precedence, "must be a positive value");
    }
    if precedence > MAX_PRECEDENCE {
        report.invalid(field, precedence, format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence == 1 && name != "exempt" {
        report.invalid(field, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
    }
    if let Some(method) = get(spec, "distinguisherMethod") {
        let known = ["ByNamespace", "ByUser"];
        if !known.contains(&text(method, "type")) {
            let field = path.field("distinguisherMethod");
            report.not_supported(field.field("type"), method.clone(), &known);
        }
    }
    let level = text(&spec["priorityLevelConfiguration"], "name");
    let field = path.field("priorityLevelConfiguration");
    if level.is_empty() {
        report.required(field.field("name"), "must reference a priority level");
    } else {
        report.each(field.field("name"), level, meta::name_is_dns_subdomain(level, false));
    }
    let field = path.field("rules");
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        policy_rule(rule, &field.index(index), report);
    }
}

fn policy_rule(rule: &Value, path: &Path<'_>, report: &mut Report) {
    let subjects = list(rule, "subjects");
    let field = path.field("subjects");
    if subjects.is_empty() {
        report.required(field, "subjects must contain at least one value");
    }
    for (index, subject) in subjects.iter().enumerate() {
        rule_subject(subject, &field.index(index), report);
    }
    let (resources, others) = (list(rule, "resourceRules"), list(rule, "nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        report.required(*path, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    let field = path.field("resourceRules");
    for (index, rule) in resources.iter().enumerate() {
        resource_rule(rule, &field.index(index), report);
    }
    let field = path.field("nonResourceRules");
    for (index, rule) in others.iter().enumerate() {
        non_resource_rule(rule, &field.index(index), report);
    }
}

fn rule_subject(subject: &Value, path: &Path<'_>, report: &mut Report) {
    let forbid = |keys: [(&'static str, &str); 2], report: &mut Report| {
        for (key, kind) in keys {
            if get(subject, key).is_some() {
                let detail = format!("{key} is forbidden when subject kind is not '{kind}'");
                report.forbidden(path.field(key), detail);
            }
        }
    };
    let named = |key: &'static str, kind: &str, report: &mut Report| {
        let field = path.field(key);
        match get(subject, key) {
            None => report.required(field, format!("{key} is required when subject kind is '{kind}'")),
            Some(given) if text(given, "name").is_empty() => report.required(field.field("name"), ""),
            Some(_) => {}
        }
    };
    match text(subject, "kind") {
        "ServiceAccount" => {
            named("serviceAccount", "ServiceAccount", report);
            if let Some(account) = get(subject, "serviceAccount") {
                service_account(account, &path.field("serviceAccount"), report);
            }
            forbid([("user", "User"), ("group", "Group")], report);
        }
        "User" => {
            named("user", "User", report);
            forbid([("serviceAccount", "ServiceAccount"), ("group", "Group")], report);
        }
        "Group" => {
            named("group", "Group", report);
            forbid([("serviceAccount", "ServiceAccount"), ("user", "User")], report);
        }
        other => report.not_supported(path.field("kind"), other, &["Group", "ServiceAccount", "User"]),
    }
}

fn service_account(account: &Value, path: &Path<'_>, report: &mut Report) {
    let (name, namespace) = (text(account, "name"), text(account, "namespace"));
    if !matches!(name, "" | "*") {
        report.each(path.field("name"), name, meta::name_is_dns_subdomain(name, false));
    }
    if namespace.is_empty() {
        report.required(path.field("namespace"), "must specify namespace for service account");
    } else {
        report.each(path.field("namespace"), namespace, meta::name_is_dns_label(namespace, false));
    }
}

/// Whether the list is more than a wildcard; a wildcard beside other values is an error.
fn without_wildcard(
    rule: &Value,
    key: &'static str,
    what: &str,
    path: &Path<'_>,
    report: &mut Report,
) -> bool {
    let values = texts(rule, key);
    if !values.contains(&"*") {
        return !values.is_empty();
    }
    if values.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {what}");
        report.invalid(path.field(key), rule[key].clone(), detail);
    }
    false
}

fn verbs(rule: &Value, path: &Path<'_>, report: &mut Report) {
    if texts(rule, "verbs").is_empty() {
        report.required(path.field("verbs"), "verbs must contain at least one value");
    } else if without_wildcard(rule, "verbs", "verbs", path, report)
        && !texts(rule, "verbs").iter().all(|verb| VERBS.contains(verb))
    {
        report.not_supported(path.field("verbs"), rule["verbs"].clone(), &VERBS);
    }
}

fn resource_rule(rule: &Value, path: &Path<'_>, report: &mut Report) {
    verbs(rule, path, report);
    let needed = [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")];
    for (key, one, many) in needed {
        if texts(rule, key).is_empty() {
            report.required(path.field(key), format!("resource rules must supply at least one {one}"));
        } else {
            without_wildcard(rule, key, many, path, report);
        }
    }
    let field = path.field("namespaces");
    let namespaces = texts(rule, "namespaces");
    if namespaces.is_empty() && !flag(rule, "clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        report.required(field, detail);
    } else if without_wildcard(rule, "namespaces", "namespaces", path, report) {
        for (index, namespace) in namespaces.iter().enumerate() {
            for message in meta::name_is_dns_label(namespace, false) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                report.invalid(field.index(index), *namespace, detail);
            }
        }
    }
}

fn non_resource_rule(rule: &Value, path: &Path<'_>, report: &mut Report) {
    verbs(rule, path, report);
    let field = path.field("nonResourceURLs");
    let urls = texts(rule, "nonResourceURLs");
    if urls.is_empty() {
        report.required(field, "nonResourceURLs must contain at least one value");
    } else if without_wildcard(rule, "nonResourceURLs", "non-resource URLs", path, report) {
        for (index, url) in urls.iter().enumerate() {
            if let Some(detail) = bad_path(url) {
                report.invalid(field.index(index), *url, detail);
            }
        }
    }
}

fn bad_path(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || stars == 1 && !path.ends_with("/*") => Some("wildcard can only do suffix matching"),
        _ => None,
    }
}

fn level(name: &str, spec: &Value, report: &mut Report) {
    let path = Path::at("spec");
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        report.invalid(path.field("type"), kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind {
        "Exempt" => {
            if get(spec, "limited").is_some() {
                report.forbidden(path.field("limited"), "must be nil if the type is not Limited");
            }
            if let Some(exempt) = get(spec, "exempt") {
                shares(exempt, &path.field("exempt"), report);
            }
        }
        "Limited" => {
            if get(spec, "exempt").is_some() {
                report.forbidden(path.field("exempt"), "must be nil if the type is Limited");
            }
            match get(spec, "limited") {
                None => report.required(path.field("limited"), "must not be empty when type is Limited"),
                Some(limited) => limited_level(limited, &path.field("limited"), report),
            }
        }
        "" => report.required(path.field("type"), ""),
        other => report.not_supported(path.field("type"), other, &["Exempt", "Limited"]),
    }
}

fn shares(level: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(shares) = maybe_int(level, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        report.invalid(path.field("nominalConcurrencyShares"), shares, "must be a non-negative integer");
    }
    if let Some(percent) = maybe_int(level, "lendablePercent").filter(|p| !(0..=100).contains(p)) {
        report.invalid(path.field("lendablePercent"), percent, "must be between 0 and 100, inclusive");
    }
}

fn limited_level(limited: &Value, path: &Path<'_>, report: &mut Report) {
    shares(limited, path, report);
    if let Some(percent) = maybe_int(limited, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        report.invalid(path.field("borrowingLimitPercent"), percent, detail);
    }
    let response = &limited["limitResponse"];
    let path = path.field("limitResponse");
    match text(response, "type") {
        "Reject" => {
            if get(response, "queuing").is_some() {
                let detail = "must be nil if limited.limitResponse.type is not Limited";
                report.forbidden(path.field("queuing"), detail);
            }
        }
        "Queue" => match get(response, "queuing") {
            None => {
                let detail = "must not be empty if limited.limitResponse.type is Limited";
                report.required(path.field("queuing"), detail);
            }
            Some(queuing) => queues(queuing, &path.field("queuing"), report),
        },
        "" => report.required(path.field("type"), ""),
        other => report.not_supported(path.field("type"), other, &["Queue", "Reject"]),
    }
}

fn queues(queuing: &Value, path: &Path<'_>, report: &mut Report) {
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|key| int(queuing, key));
    if length <= 0 {
        report.invalid(path.field("queueLengthLimit"), length, "must be positive");
    }
    if queues <= 0 {
        report.invalid(path.field("queues"), queues, "must be positive");
    } else if queues > MAX_QUEUES {
        report.invalid(path.field("queues"), queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    let field = path.field("handSize");
    if hand <= 0 {
        report.invalid(field, hand, "must be positive");
    } else if hand > queues {
        report.invalid(field, hand, format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand) > MAX_HASH_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MAX_HASH_BITS}"
        );
        report.invalid(field, hand, detail);
    }
}

/// Bits of a hash that dealing a hand takes, rounded up.
fn entropy_bits(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}
