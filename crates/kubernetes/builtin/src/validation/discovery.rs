//! Endpoint slices.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::Value;

use super::Subject;
use super::network::{endpoint_ip, legacy_ip, protocol, sloppy_ip};
use super::report::{Report, get, list, same, text, texts};

const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_HINTS: usize = 8;

pub(super) fn endpoint_slice(subject: &Subject<'_>, report: &mut Report) {
    if subject.old.is_some() {
        report.errors.clear();
        subject.metadata(report);
    }
    let kind = text(subject.new, "addressType");
    if kind.is_empty() {
        report.required(Path::at("addressType"), "");
    } else {
        report.one_of(Path::at("addressType"), kind, &["FQDN", "IPv4", "IPv6"]);
    }
    ports(subject.new, report);
    if subject.old.is_none_or(|old| !same(old.get("endpoints"), subject.new.get("endpoints"))) {
        endpoints(subject.new, kind, report);
    }
    if let Some(old) = subject.old {
        report.immutable(Path::at("addressType"), subject.new.get("addressType"), old.get("addressType"));
    }
}

fn ports(slice: &Value, report: &mut Report) {
    let path = Path::at("ports");
    let all = list(slice, "ports");
    if all.len() > MAX_PORTS {
        report.too_many(path, all.len(), MAX_PORTS);
        return;
    }
    let mut names = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let item = path.index(index);
        let name = text(port, "name");
        if !name.is_empty() {
            report.each(item.field("name"), name, meta::dns1123_label(name));
        }
        if !names.insert(name) {
            report.duplicate(item.field("name"), name);
        }
        protocol(text(port, "protocol"), item.field("protocol"), report);
        if let Some(application) = get(port, "appProtocol").and_then(Value::as_str) {
            report.each(item.field("appProtocol"), application, meta::qualified_name(application));
        }
    }
}

fn endpoints(slice: &Value, kind: &str, report: &mut Report) {
    let path = Path::at("endpoints");
    let all = list(slice, "endpoints");
    if all.len() > MAX_ENDPOINTS {
        report.too_many(path, all.len(), MAX_ENDPOINTS);
        return;
    }
    for (index, endpoint) in all.iter().enumerate() {
        let item = path.index(index);
        let addresses = texts(endpoint, "addresses");
        let field = item.field("addresses");
        if addresses.is_empty() {
            report.required(field, "must contain at least 1 address");
        } else if addresses.len() > MAX_ADDRESSES {
            report.too_many(field, addresses.len(), MAX_ADDRESSES);
        }
        for (index, address) in addresses.iter().enumerate() {
            address_of_kind(address, kind, field, field.index(index), report);
        }
        if let Some(node) = get(endpoint, "nodeName").and_then(Value::as_str) {
            report.each(item.field("nodeName"), node, meta::dns1123_subdomain(node));
        }
        if let Some(host) = get(endpoint, "hostname").and_then(Value::as_str) {
            report.each(item.field("hostname"), host, meta::dns1123_label(host));
        }
        if let Some(hints) = get(endpoint, "hints") {
            let field = item.field("hints");
            self::hints(hints, "forZones", meta::label_value, &field, report);
            self::hints(hints, "forNodes", meta::dns1123_subdomain, &field, report);
        }
    }
}

fn address_of_kind(address: &str, kind: &str, list: Path<'_>, path: Path<'_>, report: &mut Report) {
    let found = report.errors.len();
    match kind {
        "IPv4" => {
            legacy_ip(address, &[], path, report);
            if report.errors.len() == found {
                if !sloppy_ip(address).is_some_and(|ip| ip.is_ipv4()) {
                    report.invalid(list, address, "must be an IPv4 address");
                }
                endpoint_ip(address, path, report);
            }
        }
        "IPv6" => {
            legacy_ip(address, &[], path, report);
            if report.errors.len() == found {
                canonical(address, path, report);
            }
            if report.errors.len() == found {
                if !address.contains(':') {
                    report.invalid(list, address, "must be an IPv6 address");
                }
                endpoint_ip(address, path, report);
            }
        }
        "FQDN" => domain_name(address, path, report),
        _ => {}
    }
}

fn canonical(address: &str, path: Path<'_>, report: &mut Report) {
    let written = match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) => Ipv6Addr::to_string(&v6),
        Ok(other) => other.to_string(),
        Err(_) => return,
    };
    if written != address {
        report.invalid(path, address, format!("must be in canonical form ({written:?})"));
    }
}

fn domain_name(name: &str, path: Path<'_>, report: &mut Report) {
    let messages = meta::dns1123_subdomain(name.strip_suffix('.').unwrap_or(name));
    let trimmed = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        report.required(path, "");
    } else if !messages.is_empty() {
        report.invalid(path, trimmed, messages.join(","));
    } else if !trimmed.contains('.') {
        report.invalid(path, trimmed, "should be a domain with at least two segments separated by dots");
    }
}

fn hints(hints: &Value, key: &str, check: fn(&str) -> Vec<String>, path: &Path<'_>, report: &mut Report) {
    let field = path.field(key);
    let all = list(hints, key);
    if all.len() > MAX_HINTS {
        report.too_many(field, all.len(), MAX_HINTS);
        return;
    }
    let mut names = BTreeSet::new();
    for (index, hint) in all.iter().enumerate() {
        let item = field.index(index);
        let name = text(hint, "name");
        if !names.insert(name) {
            report.duplicate(item.field("name"), name);
        }
        report.each(item.field("name"), name, check(name));
    }
}
