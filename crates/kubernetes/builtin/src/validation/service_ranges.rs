//! IP addresses that are taken, and the ranges that cluster IPs come from.

use std::net::IpAddr;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Value, json};

use super::Subject;
use super::network::{self, legacy_cidr, parse_cidr, sloppy_ip};
use super::report::{Report, get, list, text, texts};

const MAX_RANGES: usize = 2;

pub(super) fn validate(subject: &Subject<'_>, report: &mut Report) {
    match (subject.kind, subject.subresource) {
        ("IPAddress", _) => address(subject, report),
        ("ServiceCIDR", "") => match subject.old {
            None => ranges(&subject.new["spec"], report),
            Some(old) => ranges_update(&subject.new["spec"], &old["spec"], report),
        },
        _ => {}
    }
}

/// Errors of the name of an IPAddress, which is the address in canonical form.
pub(crate) fn address_name(name: &str, _prefix: bool) -> Vec<String> {
    let mut found = Report::default();
    network::legacy_ip(name, &[], Path::at(""), &mut found);
    let mut messages: Vec<String> = found.errors.iter().map(|error| error.detail.clone()).collect();
    if let Some(ip) = sloppy_ip(name).filter(|ip| messages.is_empty() && ip.to_string() != name) {
        messages.push(format!("must be in canonical form (\"{ip}\")"));
    }
    messages
}

fn address(subject: &Subject<'_>, report: &mut Report) {
    let parent = get(&subject.new["spec"], "parentRef");
    if subject.old.is_some() {
        // Upstream validates the whole object again before the change.
        let found = std::mem::take(report);
        subject.metadata(report);
        report.extend(found.errors);
    }
    let path = Path::at("spec.parentRef");
    match parent {
        None => report.required(path, ""),
        Some(parent) => {
            let group = text(parent, "group");
            if !group.is_empty() {
                report.each(path.field("group"), group, meta::dns1123_subdomain(group));
            }
            for key in ["resource", "name"] {
                match text(parent, key) {
                    "" => report.required(path.field(key), ""),
                    value => report.each(path.field(key), value, meta::path_segment(value, false)),
                }
            }
            let namespace = text(parent, "namespace");
            if !namespace.is_empty() {
                report.each(path.field("namespace"), namespace, meta::path_segment(namespace, false));
            }
        }
    }
    if let Some(old) = subject.old {
        let before = get(&old["spec"], "parentRef");
        if parent != before {
            let none = Value::Null;
            let of = |key: &str| parent.and_then(|parent| parent.get(key)).unwrap_or(&none).clone();
            let text = |key: &str| match of(key) {
                Value::Null => Value::from(""),
                value => value,
            };
            let shown = match parent {
                None => "null".to_owned(),
                Some(_) => super::report::internal(&[
                    ("Group", &text("group")),
                    ("Resource", &text("resource")),
                    ("Namespace", &text("namespace")),
                    ("Name", &text("name")),
                ]),
            };
            report.invalid_as(path, shown, meta::IMMUTABLE);
        }
    }
}

fn ranges(spec: &Value, report: &mut Report) {
    let path = Path::at("spec.cidrs");
    let all = texts(spec, "cidrs");
    if all.is_empty() {
        report.required(path, "at least one CIDR required");
        return;
    }
    if all.len() > MAX_RANGES {
        let shown = super::report::internal(&[("CIDRs", &spec["cidrs"])]);
        report.invalid_as(path, shown, "may only hold up to 2 values");
        return;
    }
    for (index, range) in all.iter().enumerate() {
        canonical_range(range, path.index(index), report);
    }
    let family = |range: &&str| parse_cidr(range).map(|(ip, ..)| ip.is_ipv4());
    if let [first, second] = &all[..]
        && family(first).is_some_and(|of_first| Some(of_first) == family(second))
    {
        let detail =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        report.invalid(path, spec["cidrs"].clone(), detail);
    }
}

fn canonical_range(range: &str, path: Path<'_>, report: &mut Report) {
    let before = report.errors.len();
    legacy_cidr(range, &[], path, report);
    if report.errors.len() > before {
        return;
    }
    if let Some((ip, bits, _)) = parse_cidr(range) {
        let canonical = format!("{ip}/{bits}");
        if canonical != range {
            report.invalid(path, range, format!("must be in canonical form (\"{canonical}\")"));
        }
    }
}

/// A second range may be added; nothing else changes.
fn ranges_update(new: &Value, old: &Value, report: &mut Report) {
    let path = Path::at("spec.cidrs");
    let (new_ranges, old_ranges) = (list(new, "cidrs"), list(old, "cidrs"));
    let changed = |index: usize, report: &mut Report| {
        if new_ranges[index] != old_ranges[index] {
            report.invalid(path.index(index), new_ranges[index].clone(), meta::IMMUTABLE);
        }
    };
    match (new_ranges.len(), old_ranges.len()) {
        (new, old) if new == old => (0..new).for_each(|index| changed(index, report)),
        (2, 1) => {
            changed(0, report);
            ranges(new, report);
        }
        _ => report.invalid(path, json!(new_ranges), meta::IMMUTABLE),
    }
}

/// The family in the label of an IPAddress.
pub fn family(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}
