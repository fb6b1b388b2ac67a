//! Webhook configurations.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use super::Subject;
use super::report::{PORT_RANGE, Report, get, int, list, maybe_int, same, text, texts};
use crate::expressions::{self, Declared, Output};

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const QUIET: [&str; 2] = ["None", "NoneOnDryRun"];
const MAX_CONDITIONS: usize = 64;

/// What an update may keep although it is no longer accepted.
#[derive(Debug, Clone, Copy)]
struct Leniency {
    quiet: bool,
    known_review_version: bool,
    unique_names: bool,
    check_conditions: bool,
}

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    let mutating = match subject.kind {
        "MutatingWebhookConfiguration" => true,
        "ValidatingWebhookConfiguration" => false,
        _ => return,
    };
    if subject.old.is_some() {
        // Upstream validates the changed configuration as a new one, and nothing else.
        report.errors.clear();
        subject.metadata(report);
    }
    let leniency = leniency(subject);
    let webhooks = Path::at("webhooks");
    let mut names = BTreeSet::new();
    for (index, hook) in list(subject.new, "webhooks").iter().enumerate() {
        let path = webhooks.index(index);
        webhook(hook, mutating, leniency, &path, report);
        review_versions(hook, leniency, &path, report);
        let name = text(hook, "name");
        if leniency.unique_names && !name.is_empty() && !names.insert(name) {
            report.duplicate(path.field("name"), name);
        }
    }
}

fn leniency(subject: &Subject<'_>) -> Leniency {
    let Some(old) = subject.old else {
        return Leniency {
            quiet: true,
            known_review_version: true,
            unique_names: true,
            check_conditions: true,
        };
    };
    let (before, after) = (list(old, "webhooks"), list(subject.new, "webhooks"));
    let names: Vec<&str> = before.iter().map(|h| text(h, "name")).collect();
    let unique: BTreeSet<&&str> = names.iter().collect();
    let known = |hook: &Value| {
        let versions = texts(hook, "admissionReviewVersions");
        versions.is_empty() || versions.iter().any(|v| REVIEW_VERSIONS.contains(v))
    };
    let conditions_kept = before.len() == after.len()
        && before.iter().zip(after).all(|(b, a)| same(b.get("matchConditions"), a.get("matchConditions")));
    Leniency {
        quiet: before.iter().all(|h| QUIET.contains(&text(h, "sideEffects"))),
        known_review_version: before.iter().all(known),
        unique_names: unique.len() == names.len(),
        check_conditions: !conditions_kept,
    }
}

fn webhook(hook: &Value, mutating: bool, leniency: Leniency, path: &Path<'_>, report: &mut Report) {
    fully_qualified_name(text(hook, "name"), path.field("name"), report);
    let rules = path.field("rules");
    for (index, rule) in list(hook, "rules").iter().enumerate() {
        rule_with_operations(rule, &rules.index(index), report);
    }
    if let Some(policy) = get(hook, "failurePolicy").and_then(Value::as_str) {
        report.one_of(path.field("failurePolicy"), policy, &["Fail", "Ignore"]);
    }
    if let Some(policy) = get(hook, "matchPolicy").and_then(Value::as_str) {
        report.one_of(path.field("matchPolicy"), policy, &["Equivalent", "Exact"]);
    }
    let allowed: &[&str] = if leniency.quiet { &QUIET } else { &["None", "NoneOnDryRun", "Some", "Unknown"] };
    match get(hook, "sideEffects").and_then(Value::as_str) {
        None => {
            report.required(path.field("sideEffects"), format!("must specify one of {}", allowed.join(", ")));
        }
        Some(effects) => report.one_of(path.field("sideEffects"), effects, allowed),
    }
    if let Some(seconds) = maybe_int(hook, "timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        report.invalid(path.field("timeoutSeconds"), seconds, detail);
    }
    for key in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = get(hook, key) {
            report.extend(labels::validate(selector, &path.field(key)));
        }
    }
    if let Some(policy) = get(hook, "reinvocationPolicy").and_then(Value::as_str).filter(|_| mutating) {
        report.one_of(path.field("reinvocationPolicy"), policy, &["IfNeeded", "Never"]);
    }
    let config = path.field("clientConfig");
    client_config(&hook["clientConfig"], &config, report);
    if leniency.check_conditions {
        match_conditions(hook, false, &path.field("matchConditions"), report);
    }
}

fn fully_qualified_name(name: &str, path: Path<'_>, report: &mut Report) {
    let messages = meta::dns1123_subdomain(name);
    if name.is_empty() {
        report.required(path, "");
    } else if !messages.is_empty() {
        report.invalid(path, name, messages.join(","));
    } else if name.split('.').count() < 3 {
        report.invalid(path, name, "should be a domain with at least three segments separated by dots");
    }
}

pub(super) fn rule_with_operations(rule: &Value, path: &Path<'_>, report: &mut Report) {
    let operations = texts(rule, "operations");
    let field = path.field("operations");
    if operations.is_empty() {
        report.required(field, "");
    }
    if operations.len() > 1 && operations.contains(&"*") {
        let detail = "if '*' is present, must not specify other operations";
        report.invalid(field, rule["operations"].clone(), detail);
    }
    for (index, operation) in operations.iter().enumerate() {
        report.one_of(field.index(index), operation, &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]);
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = texts(rule, key);
        if values.is_empty() {
            report.required(path.field(key), "");
        }
        if values.len() > 1 && values.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            report.invalid(path.field(key), rule[key].clone(), detail);
        }
        if key == "apiVersions" {
            let field = path.field(key);
            for (index, _) in values.iter().enumerate().filter(|(_, v)| v.is_empty()) {
                report.required(field.index(index), "");
            }
        }
    }
    resources(rule, &path.field("resources"), report);
    if let Some(scope) = get(rule, "scope").and_then(Value::as_str) {
        report.one_of(path.field("scope"), scope, &["*", "Cluster", "Namespaced"]);
    }
}

fn resources(rule: &Value, path: &Path<'_>, report: &mut Report) {
    let resources = texts(rule, "resources");
    if resources.is_empty() {
        report.required(*path, "");
    }
    let mut whole_resources = BTreeSet::new();
    let mut whole_subresources = BTreeSet::new();
    let mut plain_resource = false;
    for (index, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            report.required(path.index(index), "");
            continue;
        }
        let Some((parent, sub)) = resource.split_once('/') else {
            // Only the last plain entry counts, as upstream.
            plain_resource = *resource != "*";
            continue;
        };
        if whole_resources.contains(parent) {
            let detail = format!("if '{parent}/*' is present, must not specify {resource}");
            report.invalid(path.index(index), *resource, detail);
        }
        if whole_subresources.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {resource}");
            report.invalid(path.index(index), *resource, detail);
        }
        if sub == "*" {
            whole_resources.insert(parent);
        }
        if parent == "*" {
            whole_subresources.insert(sub);
        }
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        report.invalid(*path, rule["resources"].clone(), detail);
    }
    if resources.contains(&"*") && plain_resource {
        let detail = "if '*' is present, must not specify other resources without subresources";
        report.invalid(*path, rule["resources"].clone(), detail);
    }
}

fn review_versions(hook: &Value, leniency: Leniency, path: &Path<'_>, report: &mut Report) {
    let versions = texts(hook, "admissionReviewVersions");
    let field = path.field("admissionReviewVersions");
    if versions.is_empty() {
        report.required(field, format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            report.invalid(field.index(index), *version, "duplicate version");
            continue;
        }
        report.each(field.index(index), version, meta::dns1035_label(version));
    }
    if leniency.known_review_version && !versions.iter().any(|v| REVIEW_VERSIONS.contains(v)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        report.invalid(field, hook["admissionReviewVersions"].clone(), detail);
    }
}

/// Client configuration of a webhook; also used for conversion webhooks and API services.
pub(super) fn client_config(config: &Value, path: &Path<'_>, report: &mut Report) {
    match (get(config, "url").and_then(Value::as_str), get(config, "service")) {
        (Some(url), None) => webhook_url(url, path.field("url"), report),
        (None, Some(service)) => webhook_service(service, &path.field("service"), report),
        _ => report.required(*path, "exactly one of url or service is required"),
    }
}

fn webhook_url(url: &str, path: Path<'_>, report: &mut Report) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    if rest.starts_with(':') {
        let detail = format!("url must be a valid URL: parse {url:?}: missing protocol scheme{FORM}");
        report.required(path, detail);
        return;
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if !scheme.contains('/') => (scheme.to_ascii_lowercase(), rest),
        _ => (String::new(), rest),
    };
    let authority = rest.strip_prefix("//").map_or("", |a| a.split('/').next().unwrap_or_default());
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    if scheme != "https" {
        report.invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        report.invalid(path, "", format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        report.invalid(path, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        report.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        report.invalid(path, query, "query parameters are not permitted in the URL");
    }
}

fn webhook_service(service: &Value, path: &Path<'_>, report: &mut Report) {
    // Upstream swaps name and namespace here, so the errors are swapped too.
    if text(service, "namespace").is_empty() {
        report.required(path.field("name"), "");
    }
    if text(service, "name").is_empty() {
        report.required(path.field("namespace"), "");
    }
    let port = int(service, "port");
    if !(1..=65535).contains(&port) {
        report.invalid(path.field("port"), port, format!("port is not valid: {PORT_RANGE}"));
    }
    let Some(url_path) = get(service, "path").and_then(Value::as_str) else { return };
    let field = path.field("path");
    match url_path {
        "" | "/" => return,
        "//" => return report.invalid(field, url_path, "segment[0] may not be empty"),
        _ => {}
    }
    if !url_path.starts_with('/') {
        report.invalid(field, url_path, "must start with a '/'");
    }
    let mut chars = url_path.chars();
    chars.next();
    let steps = chars.as_str();
    for (index, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            report.invalid(field, url_path, format!("segment[{index}] may not be empty"));
            continue;
        }
        for failure in meta::dns1123_subdomain(step) {
            report.invalid(field, url_path, format!("segment[{index}]: {failure}"));
        }
    }
}

/// The match conditions of a webhook or a policy.
pub(super) fn match_conditions(owner: &Value, params: bool, path: &Path<'_>, report: &mut Report) {
    let conditions = list(owner, "matchConditions");
    if conditions.is_empty() {
        return;
    }
    let env = expressions::environment(Declared { params, authorizer: true, patches: false });
    if conditions.len() > MAX_CONDITIONS {
        report.too_many(*path, conditions.len(), MAX_CONDITIONS);
    }
    let mut names = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let expression = text(condition, "expression").trim();
        if expression.is_empty() {
            report.required(path.field("expression"), "");
        } else if index < MAX_CONDITIONS
            && let Err(error) = expressions::compile(&env, expression, Output::Bool)
        {
            report.expression(path.field("expression"), expression, error);
        }
        let name = text(condition, "name");
        if name.is_empty() {
            report.required(path.field("name"), "");
        } else {
            report.each(path.field("name"), name, meta::qualified_name(name));
            if !names.insert(name) {
                report.duplicate(path.field("name"), name);
            }
        }
    }
}
