//! Scheduling of pods: selectors, affinity, tolerations, spreading, gates.

use std::collections::{BTreeSet, HashMap, HashSet};

use capstan_schema::meta;
use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use crate::validation::report::{Report, get, int, list, text, texts};

pub(in crate::validation) fn node_selector(selector: &Value, path: &Path<'_>, report: &mut Report) {
    let field = path.field("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        report.required(field, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        selector_term(term, &field.index(index), report);
    }
}

fn selector_term(term: &Value, path: &Path<'_>, report: &mut Report) {
    let field = path.field("matchExpressions");
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        let item = field.index(index);
        let (key, values) = (text(requirement, "key"), texts(requirement, "values"));
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                report.required(item.field("values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                report.forbidden(item.field("values"), detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                report.required(item.field("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => report.invalid(item.field("operator"), other, "not a valid selector operator"),
        }
        report.each(item.field("key"), key, meta::qualified_name(key));
        let list = item.field("values");
        for (index, value) in values.iter().enumerate() {
            report.each(list.index(index), value, meta::label_value(value));
        }
    }
}

pub(super) fn affinity(affinity: &Value, path: &Path<'_>, report: &mut Report) {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(node) = get(affinity, "nodeAffinity") {
        let field = path.field("nodeAffinity");
        if let Some(selector) = get(node, required) {
            node_selector(selector, &field.field(required), report);
        }
        let terms = field.field(preferred);
        for (index, term) in list(node, preferred).iter().enumerate() {
            let item = terms.index(index);
            weight(term, &item, report);
            selector_term(&term["preference"], &item.field("preference"), report);
        }
    }
    for key in ["podAffinity", "podAntiAffinity"] {
        let Some(pod) = get(affinity, key) else { continue };
        let field = path.field(key);
        let terms = field.field(required);
        for (index, term) in list(pod, required).iter().enumerate() {
            affinity_term(term, &terms.index(index), report);
        }
        let terms = field.field(preferred);
        for (index, term) in list(pod, preferred).iter().enumerate() {
            let item = terms.index(index);
            weight(term, &item, report);
            affinity_term(&term["podAffinityTerm"], &item.field("podAffinityTerm"), report);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, report: &mut Report) {
    let weight = int(term, "weight");
    if !(1..=100).contains(&weight) {
        report.invalid(path.field("weight"), weight, "must be in the range 1-100");
    }
}

fn affinity_term(term: &Value, path: &Path<'_>, report: &mut Report) {
    for key in ["labelSelector", "namespaceSelector"] {
        if let Some(selector) = get(term, key) {
            report.extend(labels::validate(selector, &path.field(key)));
        }
    }
    for name in texts(term, "namespaces") {
        // Upstream names no index.
        report.each(path.field("namespace"), name, meta::dns1123_label(name));
    }
    let topology = text(term, "topologyKey");
    if topology.is_empty() {
        report.required(path.field("topologyKey"), "can not be empty");
    }
    report.each(path.field("topologyKey"), topology, meta::qualified_name(topology));
}

pub(in crate::validation) fn tolerations(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let item = path.index(index);
        let (key, value) = (text(toleration, "key"), text(toleration, "value"));
        let (operator, effect) = (text(toleration, "operator"), text(toleration, "effect"));
        if !key.is_empty() {
            report.each(item.field("key"), key, meta::qualified_name(key));
        } else if operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            report.invalid(item.field("operator"), operator, detail);
        }
        if get(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            report.invalid(item.field("effect"), effect, detail);
        }
        match operator {
            "" | "Equal" => {
                let messages = meta::label_value(value);
                if !messages.is_empty() {
                    report.invalid(item.field("operator"), value, messages.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                report.invalid(
                    item.field("operator"),
                    value,
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            // Comparison operators are behind a feature gate that is off.
            "Lt" | "Gt" => {
                report.not_supported(item.field("operator"), operator, &["Equal", "Exists", "Lt", "Gt"]);
            }
            _ => report.not_supported(item.field("operator"), operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            report.one_of(item.field("effect"), effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// Tolerations may be added; of existing ones only the seconds change.
pub(super) fn tolerations_update(new: &Value, old: &Value, path: &Path<'_>, report: &mut Report) {
    let timeless = |toleration: &Value| {
        let mut out = toleration.clone();
        out["tolerationSeconds"] = Value::Null;
        out
    };
    let after: HashSet<Value> = list(new, "tolerations").iter().map(timeless).collect();
    if list(old, "tolerations").iter().any(|o| !after.contains(&timeless(o))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        report.forbidden(*path, detail);
        return;
    }
    tolerations(new, path, report);
}

pub(super) fn gates_update(new: &Value, old: &Value, path: &Path<'_>, report: &mut Report) {
    let before: BTreeSet<&str> = list(old, "schedulingGates").iter().map(|g| text(g, "name")).collect();
    for (index, gate) in list(new, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        if !before.contains(name) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            report.forbidden(path.index(index).field("name"), detail);
        }
    }
}

pub(super) fn topology_spread(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let all = list(spec, "topologySpreadConstraints");
    let pair = |c: &Value| (text(c, "topologyKey").to_owned(), text(c, "whenUnsatisfiable").to_owned());
    // The last of those that are the same is the one that is not reported.
    let last: HashMap<(String, String), usize> =
        all.iter().enumerate().map(|(index, constraint)| (pair(constraint), index)).collect();
    for (index, constraint) in all.iter().enumerate() {
        let item = path.index(index);
        let skew = int(constraint, "maxSkew");
        if skew <= 0 {
            report.invalid(item.field("maxSkew"), skew, "must be greater than zero");
        }
        let topology = text(constraint, "topologyKey");
        if topology.is_empty() {
            report.required(item.field("topologyKey"), "can not be empty");
        } else {
            report.each(item.field("topologyKey"), topology, meta::qualified_name(topology));
        }
        let when = text(constraint, "whenUnsatisfiable");
        report.one_of(item.field("whenUnsatisfiable"), when, &["DoNotSchedule", "ScheduleAnyway"]);
        if last.get(&pair(constraint)).is_some_and(|last| *last > index) {
            let shown = format!("{{{topology}, {when}}}");
            report.duplicate(item.field("{topologyKey, whenUnsatisfiable}"), shown);
        }
        if let Some(selector) = get(constraint, "labelSelector") {
            report.extend(labels::validate(selector, &item.field("labelSelector")));
        }
    }
}
