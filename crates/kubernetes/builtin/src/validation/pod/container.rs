//! Containers: names, images, ports, environment, mounts, probes, resources.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::volume::{Volumes, descending_path};
use crate::validation::network::{PROTOCOLS, port_name, port_or_name, protocol};
use crate::validation::quantities::{
    amount, amount_of, container_resource_name, extended, huge_pages, resource_amount,
};
use crate::validation::report::{Report, entries, get, int, list, map, maybe_int, text};

pub(super) fn containers(spec: &Value, volumes: &Volumes, path: &Path<'_>, report: &mut Report) {
    let field = path.field("containers");
    let all = list(spec, "containers");
    if all.is_empty() {
        report.required(field, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in all.iter().enumerate() {
        let item = field.index(index);
        common(container, volumes, &item, report);
        let name = text(container, "name");
        if !names.insert(name) {
            report.duplicate(item.field("name"), name);
        }
        handlers(container, &item, report);
    }
    let mut host_ports = BTreeSet::new();
    for (index, container) in all.iter().enumerate() {
        unique_host_ports(container, &mut host_ports, &field.index(index), report);
    }
    let field = path.field("initContainers");
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let item = field.index(index);
        common(container, volumes, &item, report);
        let policy = text(container, "restartPolicy");
        if !policy.is_empty() {
            report.one_of(item.field("restartPolicy"), policy, &["Always", "Never", "OnFailure"]);
        }
        let name = text(container, "name");
        if !names.insert(name) {
            report.duplicate(item.field("name"), name);
        }
        if policy == "Always" {
            handlers(container, &item, report);
        } else {
            for key in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if get(container, key).is_some() {
                    let detail = "may not be set for init containers without restartPolicy=Always";
                    report.forbidden(item.field(key), detail);
                }
            }
        }
    }
}

pub(super) fn image_without_blanks(container: &Value, path: &Path<'_>, report: &mut Report) {
    let image = text(container, "image");
    if image.trim() != image {
        report.invalid(path.field("image"), image, "must not have leading or trailing whitespace");
    }
}

fn common(container: &Value, volumes: &Volumes, path: &Path<'_>, report: &mut Report) {
    let name = text(container, "name");
    if name.is_empty() {
        report.required(path.field("name"), "");
    } else {
        report.each(path.field("name"), name, meta::dns1123_label(name));
    }
    if text(container, "image").is_empty() {
        report.required(path.field("image"), "");
    }
    super::required_one_of(
        container,
        "terminationMessagePolicy",
        &["File", "FallbackToLogsOnError"],
        path,
        report,
    );
    ports(container, &path.field("ports"), report);
    env(container, &path.field("env"), report);
    env_from(container, &path.field("envFrom"), report);
    mounts(container, volumes, &path.field("volumeMounts"), report);
    super::required_one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, report);
    resources(&container["resources"], &path.field("resources"), report);
    let context = &container["securityContext"];
    let field = path.field("securityContext");
    for key in ["runAsUser", "runAsGroup"] {
        if let Some(id) = maybe_int(context, key).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            report.invalid(field.field(key), id, "must be between 0 and 2147483647, inclusive");
        }
    }
}

fn ports(container: &Value, path: &Path<'_>, report: &mut Report) {
    let mut names = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let item = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            let messages = port_name(name);
            if !messages.is_empty() {
                report.each(item.field("name"), name, messages);
            } else if !names.insert(name) {
                report.duplicate(item.field("name"), name);
            }
        }
        let number = int(port, "containerPort");
        if number == 0 {
            report.required(item.field("containerPort"), "");
        } else {
            report.port(item.field("containerPort"), number);
        }
        let host = int(port, "hostPort");
        if host != 0 {
            report.port(item.field("hostPort"), host);
        }
        protocol(text(port, "protocol"), item.field("protocol"), report);
    }
}

fn unique_host_ports(container: &Value, seen: &mut BTreeSet<String>, path: &Path<'_>, report: &mut Report) {
    let field = path.field("ports");
    for (index, port) in list(container, "ports").iter().enumerate() {
        let number = int(port, "hostPort");
        if number == 0 || !PROTOCOLS.contains(&text(port, "protocol")) {
            continue;
        }
        let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
        if !seen.insert(key.clone()) {
            let item = field.index(index);
            report.duplicate(item.field("hostPort"), key);
        }
    }
}

fn env_name(name: &str) -> Vec<String> {
    if name.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .into(),
    ]
}

fn env(container: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, variable) in list(container, "env").iter().enumerate() {
        let item = path.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            report.required(item.field("name"), "");
        } else {
            report.each(item.field("name"), name, env_name(name));
        }
        let Some(from) = get(variable, "valueFrom") else { continue };
        let field = item.field("valueFrom");
        let sources: Vec<&str> =
            ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"]
                .into_iter()
                .filter(|s| get(from, s).is_some())
                .collect();
        if let Some(reference) = get(from, "fieldRef") {
            field_ref(reference, &field.field("fieldRef"), report);
        }
        for key in ["configMapKeyRef", "secretKeyRef"] {
            if let Some(reference) = get(from, key) {
                key_ref(reference, &field.field(key), report);
            }
        }
        if sources.is_empty() {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
            report.invalid(field, "", detail);
        } else if !text(variable, "value").is_empty() {
            report.invalid(field, "", "may not be specified when `value` is not empty");
        } else if sources.len() > 1 {
            report.invalid(field, "", "may not have more than one field specified at a time");
        }
    }
}

const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn field_ref(reference: &Value, path: &Path<'_>, report: &mut Report) {
    let field = text(reference, "fieldPath");
    if field.is_empty() {
        report.required(path.field("fieldPath"), "");
        return;
    }
    let subscript = field.strip_suffix("']").and_then(|f| f.split_once("['"));
    match subscript {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            report.each(*path, &key, meta::qualified_name(&key));
        }
        Some(("metadata.labels", key)) => report.each(*path, key, meta::qualified_name(key)),
        _ if ENV_FIELDS.contains(&field) => {}
        _ if ["metadata.labels", "metadata.annotations"].contains(&field) => {
            report.not_supported(path.field("fieldPath"), field, &ENV_FIELDS);
        }
        _ => {
            let detail = format!("error converting fieldPath: field label not supported: {field}");
            report.invalid(path.field("fieldPath"), field, detail);
        }
    }
}

fn key_ref(reference: &Value, path: &Path<'_>, report: &mut Report) {
    let (name, key) = (text(reference, "name"), text(reference, "key"));
    report.each(path.field("name"), name, meta::dns1123_subdomain(name));
    if key.is_empty() {
        report.required(path.field("key"), "");
    } else {
        report.each(path.field("key"), key, meta::config_map_key(key));
    }
}

fn env_from(container: &Value, path: &Path<'_>, report: &mut Report) {
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let item = path.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            report.each(item.field("prefix"), prefix, env_name(prefix));
        }
        let mut sources = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = get(source, key) else { continue };
            sources += 1;
            let name = text(reference, "name");
            let field = item.field(key);
            if name.is_empty() {
                report.required(field.field("name"), "");
            } else {
                report.each(field.field("name"), name, meta::name_is_dns_subdomain(name, true));
            }
        }
        match sources {
            0 => report.invalid(*path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => report.invalid(*path, "", "may not have more than one field specified at a time"),
        }
    }
}

fn mounts(container: &Value, volumes: &Volumes, path: &Path<'_>, report: &mut Report) {
    let mut points = BTreeSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let item = path.index(index);
        let (name, point) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            report.required(item.field("name"), "");
        }
        if !volumes.contains(name) {
            report.not_found(item.field("name"), name);
        }
        if point.is_empty() {
            report.required(item.field("mountPath"), "");
        }
        if !points.insert(point) {
            report.invalid(item.field("mountPath"), point, "must be unique");
        }
        for key in ["subPath", "subPathExpr"] {
            let sub = text(mount, key);
            if sub.is_empty() {
                continue;
            }
            if key == "subPathExpr" && !text(mount, "subPath").is_empty() {
                report.invalid(item.field(key), sub, "subPathExpr and subPath are mutually exclusive");
            }
            descending_path(sub, path.field(key), report);
        }
    }
}

fn handlers(container: &Value, path: &Path<'_>, report: &mut Report) {
    if let Some(lifecycle) = get(container, "lifecycle") {
        let field = path.field("lifecycle");
        for key in ["postStart", "preStop"] {
            if let Some(hook) = get(lifecycle, key) {
                handler(hook, &field.field(key), report);
            }
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = get(container, key) else { continue };
        let field = path.field(key);
        handler(probe, &field, report);
        for number in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            report.not_negative(field.field(number), int(probe, number));
        }
        let grace = maybe_int(probe, "terminationGracePeriodSeconds");
        if let Some(seconds) = grace.filter(|s| *s <= 0) {
            report.invalid(field.field("terminationGracePeriodSeconds"), seconds, "must be greater than 0");
        }
        if key != "readinessProbe" && int(probe, "successThreshold") != 1 {
            report.invalid(field.field("successThreshold"), int(probe, "successThreshold"), "must be 1");
        }
        if let Some(seconds) = grace.filter(|_| key == "readinessProbe") {
            let detail = "must not be set for readinessProbes";
            report.invalid(field.field("terminationGracePeriodSeconds"), seconds, detail);
        }
    }
}

fn handler(handler: &Value, path: &Path<'_>, report: &mut Report) {
    let mut found = 0;
    for key in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let Some(action) = get(handler, key) else { continue };
        let field = path.field(key);
        found += 1;
        if found > 1 {
            report.forbidden(field, "may not specify more than 1 handler type");
            continue;
        }
        match key {
            "exec" if list(action, "command").is_empty() => report.required(field.field("command"), ""),
            "httpGet" => {
                if text(action, "path").is_empty() {
                    report.required(field.field("path"), "");
                }
                port_or_name(&action["port"], field.field("port"), report);
                report.one_of(field.field("scheme"), text(action, "scheme"), &["HTTP", "HTTPS"]);
            }
            "tcpSocket" => port_or_name(&action["port"], field.field("port"), report),
            "grpc" => report.port(field.field("port"), int(action, "port")),
            _ => {}
        }
    }
    if found == 0 {
        report.required(*path, "must specify a handler type");
    }
}

/// Amounts of resources, by name.
pub(in crate::validation) fn limits(amounts: Option<&Value>, path: &Path<'_>, report: &mut Report) {
    for (name, value) in amounts.and_then(Value::as_object).into_iter().flatten() {
        container_resource_name(name, path.key(name), report);
        resource_amount(name, value, path.key(name), report);
    }
}

fn resources(resources: &Value, path: &Path<'_>, report: &mut Report) {
    let (limits, requests) = (path.field("limits"), path.field("requests"));
    self::limits(resources.get("limits"), &limits, report);
    let overcommit = |name: &str| !extended(name) && !huge_pages(name);
    for (name, value) in entries(resources, "requests") {
        container_resource_name(name, requests.key(name), report);
        resource_amount(name, value, requests.key(name), report);
        let request = amount(value);
        match amount_of(map(resources, "limits"), name) {
            Some(limit) if request != limit && !overcommit(name) => {
                report.invalid(
                    requests,
                    request.to_string(),
                    format!("must be equal to {name} limit of {limit}"),
                );
            }
            Some(limit) if request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                report.invalid(requests, request.to_string(), detail);
            }
            None if !overcommit(name) => {
                report.required(limits, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
}
