//! Services and endpoints.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Value, json};

use super::Subject;
use super::network::{endpoint_ip, legacy_cidr, legacy_ip, port_or_name, protocol, sloppy_ip};
use super::report::{Report, at, get, int, internal, list, same, text, texts};

const SPEC: Path<'static> = Path::ROOT;
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const NOT_EXTERNAL_NAME: &str = "may not be set for ExternalName services";
const NEVER_CHANGES: &str = "may not change once set";

pub(super) fn service(subject: &Subject<'_>, report: &mut Report) {
    let new = &subject.new["spec"];
    if subject.subresource == "status" {
        return load_balancer_status(subject, report);
    }
    let old = subject.old.map(|o| &o["spec"]);
    if let Some(old) = old {
        cluster_ip_change(new, old, report);
        ip_family_change(new, old, report);
        load_balancer_class(new, Some(old), report);
        if needs_health_check(new)
            && needs_health_check(old)
            && int(new, "healthCheckNodePort") != int(old, "healthCheckNodePort")
        {
            report.forbidden(SPEC.field("spec").field("healthCheckNodePort"), meta::IMMUTABLE);
        }
    }
    rules(subject, new, old, report);
}

fn kind(spec: &Value) -> &str {
    text(spec, "type")
}

fn headless(spec: &Value) -> bool {
    texts(spec, "clusterIPs") == ["None"]
}

fn external_access(spec: &Value) -> bool {
    matches!(kind(spec), "LoadBalancer" | "NodePort")
        || kind(spec) == "ClusterIP" && !list(spec, "externalIPs").is_empty()
}

fn needs_health_check(spec: &Value) -> bool {
    kind(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn rules(subject: &Subject<'_>, spec: &Value, old: Option<&Value>, report: &mut Report) {
    let path = SPEC.field("spec");
    topology_annotations(subject.new, report);
    let ports = list(spec, "ports");
    if ports.is_empty() && !headless(spec) && kind(spec) != "ExternalName" {
        report.required(path.field("ports"), "");
    }
    let addresses = path.field("clusterIPs");
    match kind(spec) {
        which @ ("LoadBalancer" | "NodePort") if headless(spec) => {
            let detail = format!("may not be set to 'None' for {which} services");
            report.invalid(addresses.index(0), "None", detail);
        }
        "ExternalName" => external_name(spec, &path, report),
        _ => {}
    }
    let mut names = BTreeSet::new();
    let all_ports = path.field("ports");
    for (index, port) in ports.iter().enumerate() {
        service_port(port, ports.len() > 1, &mut names, &all_ports.index(index), report);
    }
    if let Some(selector) = get(spec, "selector") {
        report.extend(meta::validate_labels(Some(selector), &path.field("selector")));
    }
    session_affinity(spec, &path, report);
    cluster_ips(spec, old, report);
    let mut before = old.map(|o| texts(o, "externalIPs")).unwrap_or_default();
    before.sort_unstable();
    let externals = path.field("externalIPs");
    for (index, ip) in texts(spec, "externalIPs").into_iter().enumerate() {
        let found = report.errors.len();
        legacy_ip(ip, &before, externals.index(index), report);
        if report.errors.len() == found {
            endpoint_ip(ip, externals.index(index), report);
        }
    }
    match kind(spec) {
        "" => report.required(path.field("type"), ""),
        other => {
            report.one_of(
                path.field("type"),
                other,
                &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
            );
        }
    }
    repeated_ports(spec, &all_ports, report);
    source_ranges(subject, spec, old, report);
    let allocate = get(spec, "allocateLoadBalancerNodePorts");
    if allocate.is_some() && kind(spec) != "LoadBalancer" {
        report.forbidden(path.field("allocateLoadBalancerNodePorts"), ONLY_LOAD_BALANCER);
    }
    if allocate.is_none() && kind(spec) == "LoadBalancer" {
        report.required(Path::at("allocateLoadBalancerNodePorts"), "");
    }
    load_balancer_class(spec, None, report);
    traffic(spec, &path, report);
}

fn topology_annotations(service: &Value, report: &mut Report) {
    let annotations = &service["metadata"]["annotations"];
    let (hints, mode) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
    if let (Some(a), Some(b)) = (annotations.get(hints), annotations.get(mode))
        && a != b
    {
        let detail = format!("must match annotations[{hints}] when both are specified");
        report.invalid(Path::at("metadata.annotations").key(mode), b.clone(), detail);
    }
}

fn external_name(spec: &Value, path: &Path<'_>, report: &mut Report) {
    for (key, set) in [
        ("clusterIPs", !list(spec, "clusterIPs").is_empty()),
        ("ipFamilies", !list(spec, "ipFamilies").is_empty()),
        ("ipFamilyPolicy", get(spec, "ipFamilyPolicy").is_some()),
    ] {
        if set {
            report.forbidden(path.field(key), NOT_EXTERNAL_NAME);
        }
    }
    let given = text(spec, "externalName");
    let name = given.strip_suffix('.').unwrap_or(given);
    if name.is_empty() {
        report.required(path.field("externalName"), "");
    } else {
        report.each(path.field("externalName"), name, meta::dns1123_subdomain(name));
    }
}

fn service_port<'a>(
    port: &'a Value,
    named: bool,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    report: &mut Report,
) {
    let name = text(port, "name");
    if !name.is_empty() {
        report.each(path.field("name"), name, meta::dns1123_label(name));
        if !names.insert(name) {
            report.duplicate(path.field("name"), name);
        }
    } else if named {
        report.required(path.field("name"), "");
    }
    report.port(path.field("port"), int(port, "port"));
    protocol(text(port, "protocol"), path.field("protocol"), report);
    port_or_name(&port["targetPort"], path.field("targetPort"), report);
    if let Some(application) = get(port, "appProtocol").and_then(Value::as_str) {
        report.each(path.field("appProtocol"), application, meta::qualified_name(application));
    }
}

fn session_affinity(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let affinity = text(spec, "sessionAffinity");
    if affinity.is_empty() {
        report.required(path.field("sessionAffinity"), "");
    } else {
        report.one_of(path.field("sessionAffinity"), affinity, &["ClientIP", "None"]);
    }
    let config = get(spec, "sessionAffinityConfig");
    let path = path.field("sessionAffinityConfig");
    match (affinity, config) {
        ("None", Some(_)) => report.forbidden(path, "must not be set when session affinity is None"),
        ("ClientIP", config) => {
            let detail = "when session affinity type is ClientIP";
            let client = config.and_then(|c| get(c, "clientIP"));
            let client_path = path.field("clientIP");
            match (config, client, client.and_then(|c| get(c, "timeoutSeconds"))) {
                (None, _, _) => report.required(path, detail),
                (_, None, _) => report.required(client_path, detail),
                (_, _, None) => report.required(client_path.field("timeoutSeconds"), detail),
                (_, _, Some(seconds)) => {
                    if !(1..=86400).contains(&seconds.as_i64().unwrap_or_default()) {
                        let detail = "must be greater than 0 and less than 86400";
                        report.invalid(client_path.field("timeoutSeconds"), seconds.clone(), detail);
                    }
                }
            }
        }
        _ => {}
    }
}

pub(super) fn cluster_ips(spec: &Value, old: Option<&Value>, report: &mut Report) {
    if kind(spec) == "ExternalName" {
        return;
    }
    let root = SPEC.field("spec");
    let path = root.field("clusterIPs");
    let (first, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    if first.is_empty() {
        if !all.is_empty() {
            report.invalid(path, json!(all), "must be empty when `clusterIP` is not specified");
        }
    } else if all.is_empty() {
        report.required(path, "");
    } else if all[0] != first {
        report.invalid(path, json!(all), "first value must match `clusterIP`");
    }
    let families = texts(spec, "ipFamilies");
    let families_path = root.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in families.iter().enumerate() {
        report.one_of(families_path.index(index), family, &["IPv4", "IPv6"]);
        if !seen.insert(family) {
            report.duplicate(families_path.index(index), *family);
        }
    }
    if let Some(policy) = get(spec, "ipFamilyPolicy").and_then(Value::as_str) {
        let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        report.one_of(root.field("ipFamilyPolicy"), policy, &known);
    }
    let mut before = old.map(|o| texts(o, "clusterIPs")).unwrap_or_default();
    before.sort_unstable();
    let found = report.errors.len();
    for (index, ip) in all.iter().enumerate() {
        if index == 0 && *ip == "None" {
            if all.len() > 1 {
                report.invalid(path, json!(all), "'None' must be the first and only value");
            }
            continue;
        }
        legacy_ip(ip, &before, path.index(index), report);
    }
    let malformed = report.errors.len() > found;
    if all.len() > 2 {
        report.invalid(path, json!(all), "may only hold up to 2 values");
    }
    if malformed {
        return;
    }
    let is_v6 = |ip: &str| sloppy_ip(ip).is_some_and(|ip| ip.is_ipv6());
    if all.len() > 1 && all.iter().all(|ip| is_v6(ip)) | all.iter().all(|ip| !is_v6(ip)) {
        report.invalid(path, json!(all), "may specify no more than one IP for each IP family");
    }
    if !headless(spec) {
        for (index, (ip, family)) in all.iter().zip(&families).enumerate() {
            if is_v6(ip) != (*family == "IPv6") && ["IPv4", "IPv6"].contains(family) {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
                report.invalid(path.index(index), *ip, detail);
            }
        }
    }
}

fn repeated_ports(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let ports = list(spec, "ports");
    if kind(spec) == "ClusterIP" {
        for (index, _) in ports.iter().enumerate().filter(|(_, p)| int(p, "nodePort") != 0) {
            let item = path.index(index);
            report.forbidden(item.field("nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut node_ports = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let number = int(port, "nodePort");
        if number != 0 && !node_ports.insert((text(port, "protocol"), number)) {
            report.duplicate(path.index(index).field("nodePort"), number);
        }
    }
    for (index, port) in ports.iter().enumerate() {
        if !numbers.insert((text(port, "protocol"), int(port, "port"))) {
            let (none, zero, no_target) = (json!(""), json!(0), json!(null));
            let shown = internal(&[
                ("Name", &none),
                ("Protocol", &port["protocol"]),
                ("AppProtocol", &no_target),
                ("Port", &port["port"]),
                ("TargetPort", &zero),
                ("NodePort", &zero),
            ]);
            report.duplicate_as(path.index(index), shown);
        }
    }
}

fn source_ranges(subject: &Subject<'_>, spec: &Value, old: Option<&Value>, report: &mut Report) {
    let key = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let annotation =
        |o: &Value| o["metadata"]["annotations"].get(key).and_then(Value::as_str).map(str::to_owned);
    let ranges = texts(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let root = SPEC.field("spec");
        // Upstream spells this path with a capital.
        let path = root.field("LoadBalancerSourceRanges");
        if kind(spec) != "LoadBalancer" {
            report.forbidden(path, ONLY_LOAD_BALANCER);
        }
        let mut before: Vec<&str> = old
            .map(|o| texts(o, "loadBalancerSourceRanges"))
            .unwrap_or_default()
            .iter()
            .map(|r| r.trim())
            .collect();
        before.sort_unstable();
        for (index, range) in ranges.iter().enumerate() {
            legacy_cidr(range.trim(), &before, path.index(index), report);
        }
    } else if let Some(given) = annotation(subject.new) {
        let root = Path::at("metadata.annotations");
        let path = root.key(key);
        if kind(spec) != "LoadBalancer" {
            report.forbidden(path, ONLY_LOAD_BALANCER);
        }
        if subject.old.and_then(annotation).as_deref() != Some(given.as_str()) && !given.trim().is_empty() {
            for range in given.trim().split(',') {
                legacy_cidr(range.trim(), &[], path, report);
            }
        }
    }
}

fn load_balancer_class(new: &Value, old: Option<&Value>, report: &mut Report) {
    let root = SPEC.field("spec");
    let path = root.field("loadBalancerClass");
    let class = get(new, "loadBalancerClass");
    if let Some(old) = old
        && kind(old) == "LoadBalancer"
        && kind(new) == "LoadBalancer"
        && !same(class, get(old, "loadBalancerClass"))
    {
        report.invalid(path, class.cloned().unwrap_or_default(), NEVER_CHANGES);
    }
    match class.and_then(Value::as_str) {
        Some(class) if kind(new) == "LoadBalancer" => report.each(path, class, meta::qualified_name(class)),
        Some(_) => report.forbidden(path, ONLY_LOAD_BALANCER),
        None => {}
    }
}

fn traffic(spec: &Value, path: &Path<'_>, report: &mut Report) {
    let external = text(spec, "externalTrafficPolicy");
    let field = path.field("externalTrafficPolicy");
    match (external_access(spec), external) {
        (false, "") => {}
        (false, set) => report.invalid(field, set, "may only be set for externally-accessible services"),
        (true, "") => report.required(field, ""),
        (true, set) => report.one_of(field, set, &["Cluster", "Local"]),
    }
    let port = int(spec, "healthCheckNodePort");
    let field = path.field("healthCheckNodePort");
    if !needs_health_check(spec) && port != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        report.invalid(field, port, detail);
    }
    if needs_health_check(spec) && port != 0 {
        report.port(field, port);
    }
    let field = path.field("internalTrafficPolicy");
    match get(spec, "internalTrafficPolicy").and_then(Value::as_str) {
        Some(policy) => report.one_of(field, policy, &["Cluster", "Local"]),
        None if matches!(kind(spec), "ClusterIP" | "LoadBalancer" | "NodePort") => report.required(field, ""),
        None => {}
    }
    if let Some(distribution) = get(spec, "trafficDistribution").and_then(Value::as_str) {
        let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        report.one_of(path.field("trafficDistribution"), distribution, &known);
    }
}

fn cluster_ip_change(new: &Value, old: &Value, report: &mut Report) {
    if kind(new) == "ExternalName" || kind(old) == "ExternalName" || headless(new) && headless(old) {
        return;
    }
    let path = Path::at("spec.clusterIPs");
    let (after, before) = (texts(new, "clusterIPs"), texts(old, "clusterIPs"));
    if after.len() == before.len() {
        for (index, _) in before.iter().zip(&after).enumerate().filter(|(_, (b, a))| b != a) {
            report.invalid(path.index(index), json!(after), NEVER_CHANGES);
        }
        return;
    }
    if after.is_empty() {
        report.invalid(path.index(0), Value::Null, "primary clusterIP can not be unset");
    }
    if let (Some(a), Some(b)) = (after.first(), before.first())
        && a != b
    {
        report.invalid(path.index(0), json!(after), NEVER_CHANGES);
    }
    releasing(new, after.len() == 1 && before.len() > 1, "clusterIP", report);
}

fn releasing(new: &Value, released: bool, what: &str, report: &mut Report) {
    let policy = get(new, "ipFamilyPolicy");
    if released && policy.and_then(Value::as_str) != Some("SingleStack") {
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        report.invalid(Path::at("spec.ipFamilyPolicy"), policy.cloned().unwrap_or_default(), detail);
    }
}

fn ip_family_change(new: &Value, old: &Value, report: &mut Report) {
    if kind(new) == "ExternalName" || kind(old) == "ExternalName" || headless(new) || headless(old) {
        return;
    }
    let path = Path::at("spec.ipFamilies");
    let (after, before) = (texts(new, "ipFamilies"), texts(old, "ipFamilies"));
    if after.len() == before.len() {
        for _ in before.iter().zip(&after).filter(|(b, a)| b != a) {
            report.invalid(path.index(0), json!(after), NEVER_CHANGES);
        }
        return;
    }
    if after.len() < before.len() && list(new, "clusterIPs").is_empty() {
        report.invalid(path.index(0), json!(after), "primary ipFamily can not be unset");
    }
    if let (Some(a), Some(b)) = (after.first(), before.first())
        && a != b
    {
        report.invalid(path.index(0), new["clusterIPs"].clone(), NEVER_CHANGES);
    }
    releasing(new, after.len() == 1 && before.len() > 1, "ipFamily", report);
}

fn load_balancer_status(subject: &Subject<'_>, report: &mut Report) {
    let ingress = |o: &Value| at(o, "/status/loadBalancer").cloned().unwrap_or_default();
    let status = ingress(subject.new);
    let path = Path::at("status.loadBalancer.ingress");
    let entries = list(&status, "ingress");
    if kind(&subject.new["spec"]) != "LoadBalancer" && !entries.is_empty() {
        report.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    let old = subject.old.map(ingress).unwrap_or_default();
    let mut before: Vec<&str> = list(&old, "ingress").iter().map(|e| text(e, "ip")).collect();
    before.sort_unstable();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        let (ip, host) = (text(entry, "ip"), text(entry, "hostname"));
        if !ip.is_empty() {
            legacy_ip(ip, &before, path.field("ip"), report);
        }
        match (get(entry, "ipMode").and_then(Value::as_str), ip.is_empty()) {
            (None, false) => report.required(path.field("ipMode"), "must be specified when `ip` is set"),
            (Some(_), true) => {
                report.forbidden(path.field("ipMode"), "may not be specified when `ip` is not set")
            }
            (Some(mode), false) => report.one_of(path.field("ipMode"), mode, &["Proxy", "VIP"]),
            (None, true) => {}
        }
        if !host.is_empty() {
            report.each(path.field("hostname"), host, meta::dns1123_subdomain(host));
            if sloppy_ip(host).is_some() {
                report.invalid(path.field("hostname"), host, "must be a DNS name, not an IP address");
            }
        }
    }
}

pub(super) fn endpoints(subject: &Subject<'_>, report: &mut Report) {
    if let Some(old) = subject.old {
        subject.metadata(report);
        if same(subject.new.get("subsets"), old.get("subsets")) {
            return;
        }
    }
    let subsets = Path::at("subsets");
    for (index, subset) in list(subject.new, "subsets").iter().enumerate() {
        let path = subsets.index(index);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            report.required(path, "must specify `addresses` or `notReadyAddresses`");
        }
        for key in ["addresses", "notReadyAddresses"] {
            let field = path.field(key);
            for (index, address) in list(subset, key).iter().enumerate() {
                endpoint_address(address, &field.index(index), report);
            }
        }
        let ports = list(subset, "ports");
        let field = path.field("ports");
        for (index, port) in ports.iter().enumerate() {
            endpoint_port(port, ports.len() > 1, &field.index(index), report);
        }
    }
}

fn endpoint_address(address: &Value, path: &Path<'_>, report: &mut Report) {
    let (ip, host) = (text(address, "ip"), text(address, "hostname"));
    legacy_ip(ip, &[], path.field("ip"), report);
    if !host.is_empty() {
        report.each(path.field("hostname"), host, meta::dns1123_label(host));
    }
    if let Some(node) = get(address, "nodeName").and_then(Value::as_str) {
        report.each(path.field("nodeName"), node, meta::dns1123_subdomain(node));
    }
    endpoint_ip(ip, path.field("ip"), report);
}

fn endpoint_port(port: &Value, named: bool, path: &Path<'_>, report: &mut Report) {
    let name = text(port, "name");
    if !name.is_empty() {
        report.each(path.field("name"), name, meta::dns1123_label(name));
    } else if named {
        report.required(path.field("name"), "");
    }
    report.port(path.field("port"), int(port, "port"));
    protocol(text(port, "protocol"), path.field("protocol"), report);
    if let Some(application) = get(port, "appProtocol").and_then(Value::as_str) {
        report.each(path.field("appProtocol"), application, meta::qualified_name(application));
    }
}
