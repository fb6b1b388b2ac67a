//! Roles and bindings.

use capstan_schema::field::FieldErrors;
use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::{LabelSelector, labels};
use serde_json::Value;

use super::Subject;
use super::report::{Report, get, internal, list, text};

const GROUP: &str = "rbac.authorization.k8s.io";
/// Maximum rules of a role, and items per list of a rule. Upstream has no limit except the object's size; every rule
/// of a user is evaluated on every request.
const MAX_RULES: usize = 10_000;
const MAX_ENTRIES: usize = 10_000;

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    // Updates are validated as new objects first, then as updates.
    let update = std::mem::take(&mut report.errors);
    if subject.old.is_some() {
        subject.metadata(report);
    }
    match subject.kind {
        "Role" | "ClusterRole" => role(subject, report),
        "RoleBinding" | "ClusterRoleBinding" => binding(subject, report),
        _ => {}
    }
    if let Some(old) = subject.old {
        report.errors.extend(update);
        let (now, before) = (&subject.new["roleRef"], &old["roleRef"]);
        if subject.kind.ends_with("Binding") && now != before {
            let shown =
                internal(&[("APIGroup", &now["apiGroup"]), ("Kind", &now["kind"]), ("Name", &now["name"])]);
            report.invalid_as(Path::at("roleRef"), shown, "cannot change roleRef");
        }
    } else {
        let own = std::mem::replace(&mut report.errors, update);
        report.errors.extend(own);
    }
}

/// Limits of a Role or ClusterRole, checked before its rules are compared.
pub fn role_limits(role: &Value) -> FieldErrors {
    let mut report = Report::default();
    let (path, rules) = (Path::at("rules"), list(role, "rules"));
    if rules.len() > MAX_RULES {
        report.too_many(path, rules.len(), MAX_RULES);
    }
    for (index, rule) in rules.iter().enumerate() {
        for field in ["apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"] {
            let entries = list(rule, field).len();
            if entries > MAX_ENTRIES {
                report.too_many(path.index(index).field(field), entries, MAX_ENTRIES);
            }
        }
    }
    report.errors
}

fn role(subject: &Subject<'_>, report: &mut Report) {
    let namespaced = subject.kind == "Role";
    let rules = Path::at("rules");
    report.extend(role_limits(subject.new));
    for (index, rule) in list(subject.new, "rules").iter().enumerate() {
        policy_rule(rule, namespaced, &rules.index(index), report);
    }
    let Some(aggregation) = get(subject.new, "aggregationRule").filter(|_| !namespaced) else { return };
    let path = Path::at("aggregationRule.clusterRoleSelectors");
    let selectors = list(aggregation, "clusterRoleSelectors");
    if selectors.is_empty() {
        report.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    for (index, selector) in selectors.iter().enumerate() {
        report.extend(labels::validate(selector, &path.index(index)));
        if LabelSelector::from_object(selector).is_err() {
            report.invalid(path.index(index), Value::Null, "invalid label selector.");
        }
    }
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path<'_>, report: &mut Report) {
    if list(rule, "verbs").is_empty() {
        report.required(path.field("verbs"), "verbs must contain at least one value");
    }
    let urls = list(rule, "nonResourceURLs");
    if !urls.is_empty() {
        let field = path.field("nonResourceURLs");
        if namespaced {
            report.invalid(field, urls.to_vec(), "namespaced rules cannot apply to non-resource URLs");
        }
        if ["apiGroups", "resources", "resourceNames"].iter().any(|k| !list(rule, k).is_empty()) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            report.invalid(field, urls.to_vec(), detail);
        }
        return;
    }
    if list(rule, "apiGroups").is_empty() {
        report.required(path.field("apiGroups"), "resource rules must supply at least one api group");
    }
    if list(rule, "resources").is_empty() {
        report.required(path.field("resources"), "resource rules must supply at least one resource");
    }
}

fn binding(subject: &Subject<'_>, report: &mut Report) {
    let namespaced = subject.kind == "RoleBinding";
    let role = &subject.new["roleRef"];
    let path = Path::at("roleRef");
    report.one_of(path.field("apiGroup"), text(role, "apiGroup"), &[GROUP]);
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    report.one_of(path.field("kind"), text(role, "kind"), kinds);
    let name = text(role, "name");
    if name.is_empty() {
        report.required(path.field("name"), "");
    } else {
        report.each(path.field("name"), name, meta::path_segment(name, false));
    }
    let subjects = Path::at("subjects");
    for (index, who) in list(subject.new, "subjects").iter().enumerate() {
        binding_subject(who, namespaced, &subjects.index(index), report);
    }
}

fn binding_subject(who: &Value, namespaced: bool, path: &Path<'_>, report: &mut Report) {
    let (name, group) = (text(who, "name"), text(who, "apiGroup"));
    if name.is_empty() {
        report.required(path.field("name"), "");
    }
    match text(who, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                report.each(path.field("name"), name, meta::name_is_dns_subdomain(name, false));
            }
            if !group.is_empty() {
                report.not_supported(path.field("apiGroup"), group, &[""]);
            }
            if !namespaced && text(who, "namespace").is_empty() {
                report.required(path.field("namespace"), "");
            }
        }
        "User" | "Group" => report.one_of(path.field("apiGroup"), group, &[GROUP]),
        other => report.not_supported(path.field("kind"), other, &["ServiceAccount", "User", "Group"]),
    }
}
