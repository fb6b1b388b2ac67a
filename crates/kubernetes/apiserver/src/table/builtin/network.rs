//! Services, endpoints, ingresses, network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Kind, abridged, age, name};
use crate::table::column::{AGE, NAME, text as column};
use crate::table::read::{at, int, labels, list, selector_cell, text, text_or, texts};

pub fn kind(group: &str, kind: &str) -> Option<&'static Kind> {
    Some(match (group, kind) {
        ("", "Service") => &SERVICE,
        ("", "Endpoints") => &ENDPOINTS,
        ("discovery.k8s.io", "EndpointSlice") => &ENDPOINT_SLICE,
        ("networking.k8s.io", "Ingress") => &INGRESS,
        ("networking.k8s.io", "IngressClass") => &INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => &NETWORK_POLICY,
        ("networking.k8s.io", "ServiceCIDR") => &SERVICE_CIDR,
        ("networking.k8s.io", "IPAddress") => &IP_ADDRESS,
        _ => return None,
    })
}

static SERVICE: Kind = Kind::new(
    &[
        NAME,
        column("Type", "type of the service"),
        column("Cluster-IP", "IP address inside the cluster"),
        column("External-IP", "IP addresses outside the cluster"),
        column("Port(s)", "ports it listens on"),
        AGE,
        column("Selector", "label selector of its pods").wide(),
    ],
    |object, now| {
        let cluster_ip = match list(object, &["spec", "clusterIPs"]).first() {
            Some(first) => first.as_str().unwrap_or(""),
            None => text_or(object, &["spec", "clusterIP"], "<none>"),
        };
        vec![
            name(object).into(),
            text(object, &["spec", "type"]).into(),
            cluster_ip.into(),
            external_ips(object).into(),
            service_ports(object).into(),
            age(object, now),
            labels(at(object, &["spec", "selector"])).into(),
        ]
    },
);

fn external_ips(service: &Value) -> String {
    let own = texts(service, &["spec", "externalIPs"]);
    match text(service, &["spec", "type"]) {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".into(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let all: Vec<String> = load_balancer(service).into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",") }
        }
        "ExternalName" => text(service, &["spec", "externalName"]).into(),
        _ => "<unknown>".into(),
    }
}

/// Addresses of a load balancer, sorted and without duplicates.
fn load_balancer(object: &Value) -> BTreeSet<String> {
    list(object, &["status", "loadBalancer", "ingress"])
        .iter()
        .map(|point| text_or(point, &["ip"], text(point, &["hostname"])).to_owned())
        .filter(|address| !address.is_empty())
        .collect()
}

fn service_ports(service: &Value) -> String {
    let ports: Vec<String> = list(service, &["spec", "ports"])
        .iter()
        .map(|port| {
            let (number, protocol) = (int(port, &["port"]), text(port, &["protocol"]));
            match int(port, &["nodePort"]) {
                node_port @ 1.. => format!("{number}:{node_port}/{protocol}"),
                _ => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() { "<none>".into() } else { ports.join(",") }
}

static ENDPOINTS: Kind =
    Kind::new(&[NAME, column("Endpoints", "addresses and ports"), AGE], |object, now| {
        let subsets = list(object, &["subsets"]);
        let mut all = Vec::new();
        for subset in subsets {
            let addresses: Vec<&str> =
                list(subset, &["addresses"]).iter().map(|address| text(address, &["ip"])).collect();
            let ports = list(subset, &["ports"]);
            if ports.is_empty() {
                all.extend(addresses.iter().map(|ip| (*ip).to_owned()));
            }
            for port in ports {
                all.extend(addresses.iter().map(|ip| joined(ip, int(port, &["port"]))));
            }
        }
        let absent = if subsets.is_empty() { "<none>" } else { "" };
        vec![name(object).into(), abridged(&all, absent).into(), age(object, now)]
    });

/// Host and port, with brackets around an IPv6 address.
fn joined(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

static ENDPOINT_SLICE: Kind = Kind::new(
    &[
        NAME,
        column("AddressType", "kind of addresses"),
        column("Ports", "ports of every endpoint"),
        column("Endpoints", "addresses of the endpoints"),
        AGE,
    ],
    |object, now| {
        let ports: Vec<String> = list(object, &["ports"])
            .iter()
            .map(|port| match port["port"].as_i64() {
                Some(number) => number.to_string(),
                None => port["name"].as_str().unwrap_or("*").to_owned(),
            })
            .collect();
        let addresses: Vec<String> = list(object, &["endpoints"])
            .iter()
            .flat_map(|endpoint| texts(endpoint, &["addresses"]))
            .collect();
        vec![
            name(object).into(),
            text(object, &["addressType"]).into(),
            unset_if_empty(abridged(&ports, "")).into(),
            unset_if_empty(abridged(&addresses, "")).into(),
            age(object, now),
        ]
    },
);

fn unset_if_empty(text: String) -> String {
    if text.is_empty() { "<unset>".into() } else { text }
}

static INGRESS: Kind = Kind::new(
    &[
        NAME,
        column("Class", "ingress class that serves it"),
        column("Hosts", "host names it matches"),
        column("Address", "addresses of the load balancer"),
        column("Ports", "ports it listens on"),
        AGE,
    ],
    |object, now| {
        let addresses: Vec<String> = load_balancer(object).into_iter().collect();
        let tls = !list(object, &["spec", "tls"]).is_empty();
        vec![
            name(object).into(),
            at(object, &["spec", "ingressClassName"]).as_str().unwrap_or("<none>").into(),
            hosts(list(object, &["spec", "rules"])).into(),
            addresses.join(",").into(),
            if tls { "80, 443" } else { "80" }.into(),
            age(object, now),
        ]
    },
);

/// Up to three hosts. As upstream, the rest is counted by rules, with or without a host.
fn hosts(rules: &[Value]) -> String {
    const SHOWN: usize = 3;
    let mut shown = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= shown.len() == SHOWN;
        let host = text(rule, &["host"]);
        if !more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), more) {
        (true, _) => "*".into(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - SHOWN),
        (false, false) => shown.join(","),
    }
}

static INGRESS_CLASS: Kind = Kind::new(
    &[
        NAME,
        column("Controller", "controller that serves the class"),
        column("Parameters", "object with controller-specific parameters"),
        AGE,
    ],
    |object, now| {
        let annotations = at(object, &["metadata", "annotations"]);
        let default = annotations["ingressclass.kubernetes.io/is-default-class"] == "true";
        let parameters = at(object, &["spec", "parameters"]);
        let shown = if parameters.is_null() {
            "<none>".to_owned()
        } else {
            let kind = text(parameters, &["kind"]);
            let qualified = match parameters["apiGroup"].as_str() {
                Some(group) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            format!("{qualified}/{}", text(parameters, &["name"]))
        };
        vec![
            format!("{}{}", name(object), if default { " (default)" } else { "" }).into(),
            text(object, &["spec", "controller"]).into(),
            shown.into(),
            age(object, now),
        ]
    },
);

static NETWORK_POLICY: Kind = Kind::new(
    &[NAME, column("Pod-Selector", "label selector of the pods it applies to"), AGE],
    |object, now| {
        vec![
            name(object).into(),
            selector_cell(at(object, &["spec", "podSelector"])).into(),
            age(object, now),
        ]
    },
);

static SERVICE_CIDR: Kind =
    Kind::new(&[NAME, column("CIDRs", "address ranges of services"), AGE], |object, now| {
        vec![name(object).into(), texts(object, &["spec", "cidrs"]).join(",").into(), age(object, now)]
    });

/// Upstream declares two columns and fills three cells.
static IP_ADDRESS: Kind =
    Kind::new(&[NAME, column("ParentRef", "object that the address is allocated to")], |object, now| {
        let parent = at(object, &["spec", "parentRef"]);
        let shown = if parent.is_null() {
            "<none>".to_owned()
        } else {
            let resource = crate::status::qualified(text(parent, &["group"]), text(parent, &["resource"]))
                .to_lowercase();
            let parts = [resource.as_str(), text(parent, &["namespace"]), text(parent, &["name"])];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join("/")
        };
        vec![name(object).into(), shown.into(), age(object, now)]
    });
