//! Pods and pod templates: the common rules. Cloud-specific volumes, Windows options, resource claims and security
//! profiles are not validated.

mod container;
mod scheduling;
mod volume;

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::report::{Report, get, list, maybe_int, same, text};

pub(super) use container::limits;
pub(super) use scheduling::{node_selector, tolerations};
pub(super) use volume::{host_path, nfs, no_backsteps};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
     `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

const INT32: &str = "must be between 1 and 2147483647, inclusive";

pub(super) fn pod(subject: &Subject<'_>, report: &mut Report) {
    match (subject.old, subject.subresource) {
        (Some(old), "status") => return status(subject.new, old, report),
        // A binding changes only the Node.
        (Some(_), "ephemeralcontainers" | "resize" | "binding") => return,
        (Some(_), _) => subject.metadata(report),
        (None, _) => {}
    }
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    pod_spec(spec, text(&subject.new["metadata"], "name"), true, &path, report);
    for key in ["containers", "initContainers"] {
        let field = path.field(key);
        for (index, container) in list(spec, key).iter().enumerate() {
            container::image_without_blanks(container, &field.index(index), report);
        }
    }
    match subject.old {
        None => {
            if !list(spec, "ephemeralContainers").is_empty() {
                report.forbidden(path.field("ephemeralContainers"), "cannot be set on create");
            }
            if !text(spec, "nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
                let detail = "cannot be set until all schedulingGates have been cleared";
                report.forbidden(path.field("nodeName"), detail);
            }
        }
        Some(old) => update(spec, &old["spec"], report),
    }
}

pub(super) fn template(template: &Value, path: &Path<'_>, report: &mut Report) {
    let metadata = &template["metadata"];
    report.extend(meta::validate_labels(metadata.get("labels"), &path.field("labels")));
    report.extend(meta::validate_annotations(metadata.get("annotations"), &path.field("annotations")));
    let spec = path.field("spec");
    pod_spec(&template["spec"], "", false, &spec, report);
    if !list(&template["spec"], "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        report.forbidden(spec.field("ephemeralContainers"), detail);
    }
}

/// Longest name of a sysctl.
const MAX_SYSCTL: usize = 253;

fn pod_spec(spec: &Value, name: &str, is_pod: bool, path: &Path<'_>, report: &mut Report) {
    if get(spec, "terminationGracePeriodSeconds").is_none() {
        report.required(path.field("terminationGracePeriodSeconds"), "");
    }
    let volumes = volume::volumes(spec, name, &path.field("volumes"), report);
    container::containers(spec, &volumes, path, report);
    if spec["hostNetwork"] == true {
        host_network_ports(spec, is_pod, &path.field("containers"), report);
    }
    required_one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, report);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    required_one_of(spec, "dnsPolicy", &policies, path, report);
    report.extend(meta::validate_labels(spec.get("nodeSelector"), &path.field("nodeSelector")));
    security_context(spec, &path.field("securityContext"), report);
    scheduling::affinity(&spec["affinity"], &path.field("affinity"), report);
    if text(spec, "dnsPolicy") == "None" {
        let config = path.field("dnsConfig");
        match get(spec, "dnsConfig") {
            None => report.required(config, "must provide `dnsConfig` when `dnsPolicy` is None"),
            Some(given) if list(given, "nameservers").is_empty() => {
                let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
                report.required(config.field("nameservers"), detail);
            }
            Some(_) => {}
        }
    }
    let gates = path.field("readinessGates");
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        report.each(gates.index(index).field("conditionType"), kind, meta::qualified_name(kind));
    }
    let gates = path.field("schedulingGates");
    let mut seen = BTreeSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        report.each(gates.index(index), name, meta::qualified_name(name));
        if !seen.insert(name) {
            report.duplicate(gates.index(index), name);
        }
    }
    scheduling::topology_spread(spec, &path.field("topologySpreadConstraints"), report);
    for key in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let value = text(spec, key);
        if !value.is_empty() {
            report.each(path.field(key), value, meta::dns1123_subdomain(value));
        }
    }
    if let Some(seconds) =
        maybe_int(spec, "activeDeadlineSeconds").filter(|s| !(1..=i64::from(i32::MAX)).contains(s))
    {
        report.invalid(path.field("activeDeadlineSeconds"), seconds, INT32);
    }
    for key in ["hostname", "subdomain"] {
        let value = text(spec, key);
        if !value.is_empty() {
            report.each(path.field(key), value, meta::dns1123_label(value));
        }
    }
    scheduling::tolerations(spec, &path.field("tolerations"), report);
    if let Some(policy) = get(spec, "preemptionPolicy").and_then(Value::as_str) {
        report.one_of(path.field("preemptionPolicy"), policy, &["PreemptLowerPriority", "Never"]);
    }
    if let Some(os) = get(spec, "os") {
        required_os(text(os, "name"), path, report);
    }
}

fn required_os(name: &str, path: &Path<'_>, report: &mut Report) {
    let field = path.field("os");
    match name {
        "" => report.required(field.field("name"), "cannot be empty"),
        name => report.one_of(field, name, &["linux", "windows"]),
    }
}

fn required_one_of(spec: &Value, key: &str, known: &[&str], path: &Path<'_>, report: &mut Report) {
    match text(spec, key) {
        "" => report.required(path.field(key), ""),
        value => report.one_of(path.field(key), value, known),
    }
}

fn host_network_ports(spec: &Value, is_pod: bool, path: &Path<'_>, report: &mut Report) {
    for (index, container) in list(spec, "containers").iter().enumerate() {
        let item = path.index(index);
        let ports = item.field("ports");
        for (index, port) in list(container, "ports").iter().enumerate() {
            let (host, inner) =
                (super::report::int(port, "hostPort"), super::report::int(port, "containerPort"));
            if (is_pod || host != 0) && host != inner {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                report.invalid(ports.index(index).field("hostPort"), host, detail);
            }
        }
    }
}

fn security_context(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let context = &spec["securityContext"];
    let detail = "must be between 0 and 2147483647, inclusive";
    let in_range = |id: &i64| (0..=i64::from(i32::MAX)).contains(id);
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(id) = maybe_int(context, key).filter(|id| !in_range(id)) {
            report.invalid(path.field(key), id, detail);
        }
    }
    let groups = path.field("supplementalGroups");
    for (index, id) in list(context, "supplementalGroups").iter().enumerate() {
        if let Some(id) = id.as_i64().filter(|id| !in_range(id)) {
            report.invalid(groups.index(index), id, detail);
        }
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        report.invalid(path.field("shareProcessNamespace"), true, detail);
    }
    sysctls(context, &path.field("sysctls"), report);
}

fn sysctls(context: &Value, path: &Path<'_>, report: &mut Report) {
    let segment = |text: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        edge(text.chars().next()) && edge(text.chars().next_back()) && text.chars().all(inner)
    };
    let mut seen = BTreeSet::new();
    for (index, sysctl) in list(context, "sysctls").iter().enumerate() {
        let item = path.index(index);
        let name = text(sysctl, "name");
        if name.is_empty() {
            report.required(item.field("name"), "");
        } else if name.len() > MAX_SYSCTL || !name.split(['.', '/']).all(segment) {
            let detail = format!(
                "must have at most {MAX_SYSCTL} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            report.invalid(item.field("name"), name, detail);
        } else if !seen.insert(name.replace('/', ".")) {
            report.duplicate(item.field("name"), name);
        }
    }
}

/// Most of a pod cannot change.
fn update(new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("spec");
    for key in ["containers", "initContainers"] {
        let (after, before) = (list(new, key), list(old, key));
        if after.len() != before.len() {
            report.forbidden(path.field(key), "pod updates may not add or remove containers");
            return;
        }
        let field = path.field(key);
        for (index, container) in after.iter().enumerate() {
            let item = field.index(index);
            if text(container, "image").is_empty() {
                report.required(item.field("image"), "");
            }
            container::image_without_blanks(container, &item, report);
        }
    }
    let deadline = path.field("activeDeadlineSeconds");
    match (maybe_int(new, "activeDeadlineSeconds"), maybe_int(old, "activeDeadlineSeconds")) {
        (Some(now), _) if !(0..=i64::from(i32::MAX)).contains(&now) => {
            report.invalid(deadline, now, "must be between 0 and 2147483647, inclusive");
            return;
        }
        (Some(now), Some(then)) if then < now => {
            report.invalid(deadline, now, "must be less than or equal to previous value");
            return;
        }
        (None, Some(_)) => {
            report.invalid(deadline, Value::Null, "must not update from a positive integer to nil value");
        }
        _ => {}
    }
    scheduling::tolerations_update(new, old, &path.field("tolerations"), report);
    scheduling::gates_update(new, old, &path.field("schedulingGates"), report);
    let munged = |spec: &Value| {
        let mut spec = spec.clone();
        for key in ["containers", "initContainers"] {
            for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                container["image"] = Value::Null;
            }
        }
        for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            spec[key] = Value::Null;
        }
        if !list(old, "schedulingGates").is_empty() {
            spec["nodeSelector"] = Value::Null;
        }
        spec
    };
    let (mut after, before) = (munged(new), munged(old));
    let grace = "terminationGracePeriodSeconds";
    if maybe_int(old, grace).is_some_and(|s| s < 0) && maybe_int(new, grace) == Some(1) {
        after[grace] = before[grace].clone();
    }
    if after != before {
        report.forbidden(path, format!("pod updates may not change fields other than {UPDATABLE}"));
    }
}

fn status(new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("status");
    let nominated = text(&new["status"], "nominatedNodeName");
    if nominated != text(&old["status"], "nominatedNodeName") && !nominated.is_empty() {
        report.each(path.field("nominatedNodeName"), nominated, meta::dns1123_subdomain(nominated));
    }
    let class = |o: &Value| o["status"].get("qosClass").cloned();
    if !same(class(new).as_ref(), class(old).as_ref()) {
        report.invalid(path.field("qosClass"), class(new).unwrap_or_default(), meta::IMMUTABLE);
    }
    for (key, always) in [("containerStatuses", true), ("initContainerStatuses", false)] {
        // A container that has ended is not restarted unless the policy says so.
        if always && text(&old["spec"], "restartPolicy") != "Always" {
            let field = path.field(key);
            for before in list(&old["status"], key) {
                let ended = before["state"].get("terminated").is_some_and(|t| !t.is_null());
                let exit = super::report::int(&before["state"]["terminated"], "exitCode");
                let may_restart = text(&old["spec"], "restartPolicy") == "OnFailure" && exit != 0;
                let name = text(before, "name");
                let after =
                    list(&new["status"], key).iter().enumerate().find(|(_, s)| text(s, "name") == name);
                if let Some((index, after)) = after.filter(|_| ended && !may_restart)
                    && get(&after["state"], "terminated").is_none()
                {
                    let item = field.index(index);
                    let detail = "may not be transitioned to non-terminated state";
                    report.forbidden(item.field("state"), detail);
                }
            }
        }
    }
}
