//! Ingresses and their classes.

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::network::{legacy_ip, port_name, sloppy_ip};
use super::report::{Report, get, int, list, text, texts};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const MAX_CONTROLLER: usize = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    match (subject.kind, subject.subresource) {
        ("Ingress", "status") => load_balancer(subject, report),
        ("Ingress", _) => ingress(subject, report),
        ("IngressClass", _) => ingress_class(subject, report),
        _ => {}
    }
}

fn ingress(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    let old = subject.old.map(|old| &old["spec"]);
    let rules = list(spec, "rules");
    if rules.is_empty() && get(spec, "defaultBackend").is_none() {
        report.invalid(path, Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(default) = get(spec, "defaultBackend") {
        backend(default, path.field("defaultBackend"), report);
    }
    // Rules of wildcard hosts were not validated once; such an ingress may keep them.
    let keeps_wildcards = old.is_some_and(|old| {
        list(old, "rules").iter().filter(|rule| text(rule, "host").contains('*')).any(|rule| {
            let mut found = Report::default();
            rule_paths(rule, path, &mut found);
            !found.errors.is_empty()
        })
    });
    let at = path.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        let host = text(rule, "host");
        if !host.is_empty() {
            if sloppy_ip(host).is_some() {
                report.invalid(at.index(index).field("host"), host, NOT_AN_ADDRESS);
            }
            report.each(at.index(index).field("host"), host, host_name(host));
        }
        if !(host.contains('*') && keeps_wildcards) {
            rule_paths(rule, at.index(index), report);
        }
    }
    let odd_secret = |tls: &Value| {
        let name = text(tls, "secretName");
        if name.is_empty() { Vec::new() } else { meta::name_is_dns_subdomain(name, false) }
    };
    let keeps_secrets = old.is_some_and(|old| list(old, "tls").iter().any(|tls| !odd_secret(tls).is_empty()));
    let at = path.field("tls");
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let at = at.index(index);
        let hosts = at.field("hosts");
        for (index, host) in texts(tls, "hosts").into_iter().enumerate() {
            report.each(hosts.index(index), host, host_name(host));
        }
        if !keeps_secrets {
            report.each(at.field("secretName"), text(tls, "secretName"), odd_secret(tls));
        }
    }
    let class = get(spec, "ingressClassName").and_then(Value::as_str);
    if let Some(class) = class {
        report.each(path.field("ingressClassName"), class, meta::name_is_dns_subdomain(class, false));
    }
    let annotated = subject.new["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    if let (None, Some(class), Some(annotated)) = (subject.old, class, annotated)
        && class != annotated
    {
        let path = Path::at("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        report.invalid(path.field(CLASS_ANNOTATION), annotated, detail);
    }
}

/// Errors of a host name or wildcard.
fn host_name(host: &str) -> Vec<String> {
    if !host.contains('*') {
        return meta::dns1123_subdomain(host);
    }
    let valid = host.strip_prefix("*.").is_some_and(|rest| meta::dns1123_subdomain(rest).is_empty());
    let mut messages = Vec::new();
    if host.len() > 253 {
        messages.push(meta::too_many_characters(253));
    }
    if !valid {
        messages.push(meta::regex_message(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
             consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
            &["*.example.com"],
        ));
    }
    messages
}

fn rule_paths(rule: &Value, path: Path<'_>, report: &mut Report) {
    let Some(http) = get(rule, "http") else { return };
    let path = path.field("http");
    let paths = path.field("paths");
    if list(http, "paths").is_empty() {
        report.required(paths, "");
    }
    for (index, item) in list(http, "paths").iter().enumerate() {
        http_path(item, paths.index(index), report);
    }
}

fn http_path(item: &Value, path: Path<'_>, report: &mut Report) {
    let Some(kind) = get(item, "pathType").and_then(Value::as_str) else {
        report.required(path.field("pathType"), "pathType must be specified");
        return;
    };
    let given = text(item, "path");
    let absolute = given.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if !absolute {
                report.invalid(path.field("path"), given, "must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if given.contains(sequence) {
                    report.invalid(path.field("path"), given, format!("must not contain '{sequence}'"));
                }
            }
            for suffix in ["/..", "/."] {
                if given.ends_with(suffix) {
                    report.invalid(path.field("path"), given, format!("cannot end with '{suffix}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !given.is_empty() && !absolute {
                report.invalid(path.field("path"), given, "must be an absolute path");
            }
        }
        _ => {
            report.not_supported(path.field("pathType"), kind, &["Exact", "ImplementationSpecific", "Prefix"])
        }
    }
    backend(&item["backend"], path.field("backend"), report);
}

fn backend(backend: &Value, path: Path<'_>, report: &mut Report) {
    match (get(backend, "resource"), get(backend, "service")) {
        (Some(_), Some(_)) => report.invalid(path, "", "cannot set both resource and service backends"),
        (Some(resource), None) => reference(resource, path.field("resource"), report),
        (None, Some(service)) => service_backend(service, path, report),
        (None, None) => report.invalid(path, "", "resource or service backend is required"),
    }
}

fn service_backend(service: &Value, path: Path<'_>, report: &mut Report) {
    let at = path.field("service");
    match text(service, "name") {
        "" => report.required(at.field("name"), ""),
        name => report.each(at.field("name"), name, meta::name_is_dns_label(name, false)),
    }
    let port = at.field("port");
    match (text(&service["port"], "name"), int(&service["port"], "number")) {
        ("", 0) => report.required(path, "port name or number is required"),
        ("", number) => report.port(port.field("number"), number),
        (name, 0) => report.each(port.field("name"), name, port_name(name)),
        _ => report.invalid(path, "", "cannot set both port name & port number"),
    }
}

/// A reference to an object of any kind in the same namespace.
fn reference(of: &Value, path: Path<'_>, report: &mut Report) {
    if let Some(group) = get(of, "apiGroup").and_then(Value::as_str) {
        report.each(path.field("apiGroup"), group, meta::dns1123_subdomain(group));
    }
    for key in ["kind", "name"] {
        match text(of, key) {
            "" => report.required(path.field(key), ""),
            value => report.each(path.field(key), value, meta::path_segment(value, false)),
        }
    }
}

fn load_balancer(subject: &Subject<'_>, report: &mut Report) {
    let points = |object: &'_ Value| object["status"]["loadBalancer"].clone();
    let old = subject.old.map(points).unwrap_or_default();
    let mut before: Vec<&str> = list(&old, "ingress").iter().map(|point| text(point, "ip")).collect();
    before.sort_unstable();
    let path = Path::at("status.loadBalancer");
    let path = path.field("ingress");
    for (index, point) in list(&subject.new["status"]["loadBalancer"], "ingress").iter().enumerate() {
        let path = path.index(index);
        let (ip, host) = (text(point, "ip"), text(point, "hostname"));
        if !ip.is_empty() {
            legacy_ip(ip, &before, path.field("ip"), report);
        }
        if !host.is_empty() {
            report.each(path.field("hostname"), host, meta::dns1123_subdomain(host));
            if sloppy_ip(host).is_some() {
                report.invalid(path.field("hostname"), host, NOT_AN_ADDRESS);
            }
        }
    }
}

fn ingress_class(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    let controller = text(spec, "controller");
    if let Some(old) = subject.old {
        report.immutable(path.field("controller"), spec.get("controller"), old["spec"].get("controller"));
    }
    if controller.len() > MAX_CONTROLLER {
        report.too_long(path.field("controller"), MAX_CONTROLLER);
    }
    domain_prefixed_path(controller, path.field("controller"), report);
    let Some(parameters) = get(spec, "parameters") else { return };
    let path = path.field("parameters");
    reference(parameters, path, report);
    let namespace = get(parameters, "namespace").and_then(Value::as_str);
    match (get(parameters, "scope").and_then(Value::as_str), namespace) {
        (None, _) => report.required(path.field("scope"), ""),
        (Some("Namespace"), None) => {
            report.required(path.field("namespace"), "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), Some(namespace)) => {
            report.each(path.field("namespace"), namespace, meta::name_is_dns_label(namespace, false));
        }
        (Some("Cluster"), Some(_)) => {
            report.forbidden(path.field("namespace"), "`parameters.scope` is set to 'Cluster'");
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => report.not_supported(path.field("scope"), other, &["Cluster", "Namespace"]),
    }
}

/// A path behind a domain: `acme.io/foo`.
fn domain_prefixed_path(given: &str, path: Path<'_>, report: &mut Report) {
    const PATH: &str = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";
    if given.is_empty() {
        report.required(path, "");
        return;
    }
    match given.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            report.each(path, host, meta::dns1123_subdomain(host));
            let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
            if !rest.chars().all(allowed) {
                report.invalid(path, rest, meta::regex_message("Invalid path", PATH, &[]));
            }
        }
        _ => report.invalid(path, given, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
}
