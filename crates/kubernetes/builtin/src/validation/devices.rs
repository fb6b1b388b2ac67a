//! Devices that Pods claim: classes, claims, templates of claims, and the slices in which drivers report devices.
//!
//! Not checked: whether CEL selectors compile, results of allocations, and policies of capacity that claims share.

use std::collections::{BTreeMap, BTreeSet};

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::pod::node_selector;
use super::quantities::extended;
use super::report::{Report, entries, flag, get, int, list, text, texts};
use super::storage::driver_name;

const MAX_SELECTORS: usize = 32;
const MAX_EXPRESSION_BYTES: usize = 10 * 1024;
const MAX_CONFIGURATIONS: usize = 32;
const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_USERS: usize = 256;
const MAX_DEVICES: usize = 128;
/// Of devices with taints or shared counters.
const MAX_ELABORATE_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_ATTRIBUTES: usize = 32;
const MAX_ATTRIBUTE_BYTES: usize = 64;
const MAX_POOL_NAME_BYTES: usize = 253;

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    match (subject.kind, subject.subresource, subject.old) {
        ("DeviceClass", ..) => class(spec, &path, report),
        ("ResourceClaim", "status", Some(old)) => claim_status(subject.new, old, report),
        ("ResourceClaim" | "ResourceClaimTemplate", _, Some(old)) => {
            report.immutable(path, Some(spec), old.get("spec"));
        }
        ("ResourceClaim", ..) => claim(&spec["devices"], &path.field("devices"), report),
        ("ResourceClaimTemplate", ..) => {
            claim(&spec["spec"]["devices"], &path.field("spec").field("devices"), report);
        }
        ("ResourceSlice", ..) => slice(spec, subject.old.map(|old| &old["spec"]), &path, report),
        _ => {}
    }
}

fn class(spec: &Value, path: &Path<'_>, report: &mut Report) {
    selectors(spec, path, report);
    let field = path.field("config");
    let configurations = list(spec, "config");
    at_most(configurations, MAX_CONFIGURATIONS, field, report);
    for (index, configuration) in configurations.iter().enumerate() {
        opaque(configuration, &field.index(index), report);
    }
    let name = text(spec, "extendedResourceName");
    if !name.is_empty() && !extended(name) {
        let message = "must be a valid extended resource name";
        report.invalid(path.field("extendedResourceName"), name, message);
    }
}

fn claim(devices: &Value, path: &Path<'_>, report: &mut Report) {
    let requests = list(devices, "requests");
    let field = path.field("requests");
    at_most(requests, MAX_REQUESTS, field, report);
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (index, one) in requests.iter().enumerate() {
        request(one, &field.index(index), report);
        let name = text(one, "name");
        let alternatives = list(one, "firstAvailable").iter().map(|one| text(one, "name")).collect();
        if names.insert(name, alternatives).is_some() {
            report.duplicate(field.index(index).field("name"), name);
        }
    }
    let field = path.field("constraints");
    let constraints = list(devices, "constraints");
    at_most(constraints, MAX_CONSTRAINTS, field, report);
    for (index, constraint) in constraints.iter().enumerate() {
        let path = field.index(index);
        references(constraint, &names, &path, report);
        if get(constraint, "matchAttribute").is_none() && get(constraint, "distinctAttribute").is_none() {
            let message = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
            report.required(path, message);
        }
    }
    let field = path.field("config");
    let configurations = list(devices, "config");
    at_most(configurations, MAX_CONFIGURATIONS, field, report);
    for (index, configuration) in configurations.iter().enumerate() {
        let path = field.index(index);
        references(configuration, &names, &path, report);
        opaque(configuration, &path, report);
    }
}

fn request(request: &Value, path: &Path<'_>, report: &mut Report) {
    const ONE: &str = "exactly one of `exactly` or `firstAvailable` is required";
    label(request, "name", path, report);
    let alternatives = list(request, "firstAvailable");
    match (get(request, "exactly"), alternatives.is_empty()) {
        (None, true) => report.required(*path, ONE),
        (Some(_), false) => {
            report.invalid(*path, Value::Null, format!("{ONE}, but multiple fields are set"));
        }
        (Some(exactly), true) => devices_of_class(exactly, &path.field("exactly"), report),
        (None, false) => {
            let field = path.field("firstAvailable");
            at_most(alternatives, MAX_ALTERNATIVES, field, report);
            let mut names = BTreeSet::new();
            for (index, alternative) in alternatives.iter().enumerate() {
                let path = field.index(index);
                label(alternative, "name", &path, report);
                devices_of_class(alternative, &path, report);
                let name = text(alternative, "name");
                if !names.insert(name) {
                    report.duplicate(path.field("name"), name);
                }
            }
        }
    }
}

fn devices_of_class(request: &Value, path: &Path<'_>, report: &mut Report) {
    let class = text(request, "deviceClassName");
    let field = path.field("deviceClassName");
    if class.is_empty() {
        report.required(field, "");
    } else {
        report.each(field, class, meta::dns1123_subdomain(class));
    }
    selectors(request, path, report);
    let (mode, count) = (text(request, "allocationMode"), int(request, "count"));
    match mode {
        "All" if count != 0 => {
            let message = "must not be specified when allocationMode is 'All'";
            report.invalid(path.field("count"), count, message);
        }
        "ExactCount" if count <= 0 => {
            report.invalid(path.field("count"), count, "must be greater than zero");
        }
        mode => report.one_of(path.field("allocationMode"), mode, &["All", "ExactCount"]),
    }
}

fn selectors(of: &Value, path: &Path<'_>, report: &mut Report) {
    let field = path.field("selectors");
    let selectors = list(of, "selectors");
    at_most(selectors, MAX_SELECTORS, field, report);
    for (index, selector) in selectors.iter().enumerate() {
        let path = field.index(index);
        let path = path.field("cel");
        match get(selector, "cel") {
            None => report.required(path, ""),
            Some(cel) if text(cel, "expression").len() > MAX_EXPRESSION_BYTES => {
                report.too_long(path.field("expression"), MAX_EXPRESSION_BYTES);
            }
            Some(_) => {}
        }
    }
}

/// Names of requests, or of a request and one of its alternatives.
fn references(of: &Value, names: &BTreeMap<&str, BTreeSet<&str>>, path: &Path<'_>, report: &mut Report) {
    const MESSAGE: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let field = path.field("requests");
    at_most(list(of, "requests"), MAX_REQUESTS, field, report);
    let mut seen = BTreeSet::new();
    for (index, name) in texts(of, "requests").into_iter().enumerate() {
        let path = field.index(index);
        let known = match name.split_once('/') {
            None => names.contains_key(name),
            Some((request, alternative)) => {
                names.get(request).is_some_and(|alternatives| alternatives.contains(alternative))
            }
        };
        if !known {
            report.invalid(path, name, MESSAGE);
        }
        if !seen.insert(name) {
            report.duplicate(path, name);
        }
    }
}

fn opaque(configuration: &Value, path: &Path<'_>, report: &mut Report) {
    let path = path.field("opaque");
    match get(configuration, "opaque") {
        None => report.required(path, ""),
        Some(opaque) => {
            driver_name(text(opaque, "driver"), path.field("driver"), report);
            if get(opaque, "parameters").is_none() {
                report.required(path.field("parameters"), "");
            }
        }
    }
}

fn claim_status(new: &Value, old: &Value, report: &mut Report) {
    let (status, before) = (&new["status"], &old["status"]);
    let path = Path::at("status");
    let users = list(status, "reservedFor");
    let field = path.field("reservedFor");
    at_most(users, MAX_USERS, field, report);
    let mut seen = BTreeSet::new();
    for (index, user) in users.iter().enumerate() {
        let path = field.index(index);
        for key in ["resource", "name", "uid"] {
            if text(user, key).is_empty() {
                report.required(path.field(key), "");
            }
        }
        if !seen.insert(text(user, "uid")) {
            report.duplicate(path.field("uid"), text(user, "uid"));
        }
    }
    let allocation = get(status, "allocation");
    let is_deleting = get(&new["metadata"], "deletionTimestamp").is_some();
    let added = users.iter().any(|user| !list(before, "reservedFor").contains(user));
    if !users.is_empty() && allocation.is_none() {
        report.forbidden(field, "may not be specified when `allocated` is not set");
    } else if is_deleting && added {
        let message =
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        report.forbidden(field, message);
    }
    if let (Some(allocation), Some(held)) = (allocation, get(before, "allocation")) {
        report.immutable(path.field("allocation"), Some(allocation), Some(held));
    }
}

fn slice(spec: &Value, old: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    driver_name(text(spec, "driver"), path.field("driver"), report);
    pool(&spec["pool"], &path.field("pool"), report);
    if let Some(old) = old {
        let pool = path.field("pool");
        report.immutable(pool.field("name"), spec["pool"].get("name"), old["pool"].get("name"));
        for key in ["driver", "nodeName"] {
            report.immutable(path.field(key), spec.get(key), old.get(key));
        }
    }
    where_it_is(spec, path, report);
    let (devices, counters) = (list(spec, "devices"), list(spec, "sharedCounters"));
    if get(spec, "devices").is_some() && get(spec, "sharedCounters").is_some() {
        report.invalid(*path, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let is_elaborate =
        |device: &Value| !list(device, "taints").is_empty() || !list(device, "consumesCounters").is_empty();
    let most = if devices.iter().any(is_elaborate) { MAX_ELABORATE_DEVICES } else { MAX_DEVICES };
    for (key, all, most) in [("devices", devices, most), ("sharedCounters", counters, MAX_COUNTER_SETS)] {
        let field = path.field(key);
        at_most(all, most, field, report);
        let mut names = BTreeSet::new();
        for (index, one) in all.iter().enumerate() {
            let path = field.index(index);
            label(one, "name", &path, report);
            attributes(one, &path, report);
            if !names.insert(text(one, "name")) {
                report.duplicate(path.field("name"), text(one, "name"));
            }
        }
    }
}

fn pool(pool: &Value, path: &Path<'_>, report: &mut Report) {
    let name = text(pool, "name");
    let field = path.field("name");
    if name.is_empty() {
        report.required(field, "");
    } else {
        if name.len() > MAX_POOL_NAME_BYTES {
            report.too_long(field, MAX_POOL_NAME_BYTES);
        }
        for part in name.split('/') {
            report.each(field, part, meta::dns1123_subdomain(part));
        }
    }
    let count = int(pool, "resourceSliceCount");
    if count <= 0 {
        report.invalid(path.field("resourceSliceCount"), count, "must be greater than zero");
    }
    let generation = int(pool, "generation");
    if generation < 0 {
        report.invalid(path.field("generation"), generation, "must be greater than or equal to zero");
    }
}

/// On one node, on those of a selector, on all, or as each device says.
fn where_it_is(spec: &Value, path: &Path<'_>, report: &mut Report) {
    const ONE: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut set = Vec::new();
    match get(spec, "nodeName").and_then(Value::as_str) {
        None => {}
        Some("") => {
            let message = "must be either unset or set to a non-empty string";
            report.invalid(path.field("nodeName"), "", message);
        }
        Some(name) => {
            set.push("`nodeName`");
            report.each(path.field("nodeName"), name, meta::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = get(spec, "nodeSelector") {
        set.push("`nodeSelector`");
        let field = path.field("nodeSelector");
        node_selector(selector, &field, report);
        let terms = list(selector, "nodeSelectorTerms");
        if terms.len() != 1 {
            let message = "must have exactly one node selector term";
            report.invalid(field.field("nodeSelectorTerms"), terms.to_vec(), message);
        }
    }
    for (key, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        match get(spec, key) {
            None => {}
            Some(_) if flag(spec, key) => set.push(shown),
            Some(_) => report.invalid(path.field(key), false, "must be either unset or set to true"),
        }
    }
    match set.len() {
        0 => report.required(*path, ONE),
        1 => {}
        _ => {
            let message = format!("{ONE}, but multiple fields are set");
            report.invalid(*path, format!("{{{}}}", set.join(", ")), message);
        }
    }
}

fn attributes(device: &Value, path: &Path<'_>, report: &mut Report) {
    let count = entries(device, "attributes").count() + entries(device, "capacity").count();
    if count > MAX_ATTRIBUTES {
        let message =
            format!("the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}");
        report.invalid(*path, count, message);
    }
    let field = path.field("attributes");
    for (name, attribute) in entries(device, "attributes") {
        let path = field.key(name);
        let values = attribute.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        if values.count() != 1 {
            report.invalid(path, "", "exactly one value must be specified");
        }
        for key in ["string", "version"] {
            if text(attribute, key).len() > MAX_ATTRIBUTE_BYTES {
                report.too_long(path.field(key), MAX_ATTRIBUTE_BYTES);
            }
        }
    }
}

/// A DNS label.
fn label(of: &Value, key: &str, path: &Path<'_>, report: &mut Report) {
    let name = text(of, key);
    report.each(path.field(key), name, meta::dns1123_label(name));
}

fn at_most(all: &[Value], most: usize, path: Path<'_>, report: &mut Report) {
    if all.len() > most {
        report.too_many(path, all.len(), most);
    }
}

#[cfg(test)]
mod tests {
    use super::super::validate;
    use serde_json::{Value, json};

    fn errors(kind: &str, spec: &Value, old: Option<&Value>) -> Vec<String> {
        let object = |spec: &Value| {
            let namespace = if kind.starts_with("ResourceClaim") { json!("n") } else { Value::Null };
            json!({"metadata": {"name": "x", "namespace": namespace, "resourceVersion": "1", "uid": "u"}, "spec": spec})
        };
        let old = old.map(object);
        let found = validate("resource.k8s.io", kind, "", &object(spec), old.as_ref());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_claim_requests_devices_of_classes() {
        let claim = |devices: Value| json!({"devices": devices});
        let exactly = json!({"deviceClassName": "gpu.made.up", "allocationMode": "ExactCount", "count": 1});
        for (devices, expected) in [
            (json!({}), Vec::new()),
            (json!({"requests": [{"name": "a", "exactly": exactly}]}), Vec::new()),
            (
                json!({"requests": [{"name": "a"}]}),
                vec![
                    "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
                ],
            ),
            (
                json!({"requests": [{"name": "a", "exactly": {"allocationMode": "All", "count": 2}}]}),
                vec![
                    "spec.devices.requests[0].exactly.deviceClassName: Required value",
                    "spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
                ],
            ),
            (
                json!({"requests": [{"name": "a", "exactly": exactly}, {"name": "a", "exactly": exactly}]}),
                vec!["spec.devices.requests[1].name: Duplicate value: \"a\""],
            ),
        ] {
            assert_eq!(errors("ResourceClaim", &claim(devices.clone()), None), expected, "{devices}");
            let template = json!({"spec": claim(devices.clone())});
            let nested: Vec<String> =
                expected.iter().map(|text| text.replacen("spec.", "spec.spec.", 1)).collect();
            assert_eq!(errors("ResourceClaimTemplate", &template, None), nested, "{devices}");
        }
        let (old, new) = (claim(json!({})), claim(json!({"requests": [{"name": "a", "exactly": exactly}]})));
        let found = errors("ResourceClaim", &new, Some(&old));
        assert!(found.len() == 1 && found[0].ends_with("field is immutable"), "{found:?}");
    }

    #[test]
    fn a_slice_says_where_its_devices_are() {
        let slice = |more: Value| {
            let mut spec = json!({"driver": "d.made.up", "pool": {"name": "p", "resourceSliceCount": 1}});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        for (more, expected) in [
            (json!({"nodeName": "n"}), vec![]),
            (json!({"allNodes": true, "devices": [{"name": "a", "attributes": {"x": {"int": 1}}}]}), vec![]),
            (
                json!({}),
                vec![
                    "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
                ],
            ),
            (
                json!({"nodeName": "n", "devices": [{"name": "a", "attributes": {"x": {}}}, {"name": "a"}]}),
                vec![
                    "spec.devices[0].attributes[x]: Invalid value: \"\": exactly one value must be specified",
                    "spec.devices[1].name: Duplicate value: \"a\"",
                ],
            ),
        ] {
            assert_eq!(errors("ResourceSlice", &slice(more.clone()), None), expected, "{more}");
        }
    }
}
