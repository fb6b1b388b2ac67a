//! Network policies.

use std::net::IpAddr;

use capstan_schema::path::Path;
use capstan_schema::selector::labels;
use serde_json::Value;

use super::Subject;
use super::network::{legacy_cidr, parse_cidr, port_name};
use super::report::{Report, get, list, maybe_int, text, texts};

pub(super) fn network_policy(subject: &Subject<'_>, report: &mut Report) {
    let spec = &subject.new["spec"];
    let path = Path::at("spec");
    let mut before = subject.old.map(|old| ranges(&old["spec"])).unwrap_or_default();
    before.sort_unstable();
    report.extend(labels::validate(&spec["podSelector"], &path.field("podSelector")));
    for (direction, others) in [("ingress", "from"), ("egress", "to")] {
        let path = path.field(direction);
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = path.index(index);
            let ports = path.field("ports");
            for (index, port) in list(rule, "ports").iter().enumerate() {
                policy_port(port, ports.index(index), report);
            }
            let peers = path.field(others);
            for (index, other) in list(rule, others).iter().enumerate() {
                peer(other, &before, peers.index(index), report);
            }
        }
    }
    let types = path.field("policyTypes");
    if list(spec, "policyTypes").len() > 2 {
        report.invalid(types, spec["policyTypes"].clone(), "may not specify more than two policyTypes");
        return;
    }
    for (index, kind) in texts(spec, "policyTypes").into_iter().enumerate() {
        report.one_of(types.index(index), kind, &["Ingress", "Egress"]);
    }
}

/// All CIDRs of a policy: existing ones may stay in any format.
fn ranges(spec: &Value) -> Vec<&str> {
    let rules = [("ingress", "from"), ("egress", "to")];
    let peers = rules.iter().flat_map(|(direction, others)| {
        list(spec, direction).iter().flat_map(move |rule| list(rule, others))
    });
    let blocks = peers.filter_map(|peer| get(peer, "ipBlock"));
    blocks.flat_map(|block| texts(block, "except").into_iter().chain([text(block, "cidr")])).collect()
}

fn policy_port(port: &Value, path: Path<'_>, report: &mut Report) {
    if let Some(protocol) = get(port, "protocol").and_then(Value::as_str) {
        report.one_of(path.field("protocol"), protocol, &["TCP", "UDP", "SCTP"]);
    }
    let end = maybe_int(port, "endPort");
    match get(port, "port") {
        Some(Value::String(name)) => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is non-numeric";
                report.invalid(path.field("endPort"), end, detail);
            }
            report.each(path.field("port"), name, port_name(name));
        }
        Some(number) => {
            let number = number.as_i64().unwrap_or_default();
            report.port(path.field("port"), number);
            if let Some(end) = end {
                if end < number {
                    report.invalid(path.field("endPort"), number, "must be greater than or equal to `port`");
                }
                report.port(path.field("endPort"), end);
            }
        }
        None => {
            if let Some(end) = end {
                let detail = "may not be specified when `port` is not specified";
                report.invalid(path.field("endPort"), end, detail);
            }
        }
    }
}

fn peer(peer: &Value, before: &[&str], path: Path<'_>, report: &mut Report) {
    let mut named = 0;
    for key in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = get(peer, key) {
            named += 1;
            report.extend(labels::validate(selector, &path.field(key)));
        }
    }
    let block = get(peer, "ipBlock");
    if let Some(block) = block {
        named += 1;
        ip_block(block, before, path.field("ipBlock"), report);
    }
    if named == 0 {
        report.required(path, "must specify a peer");
    } else if named > 1 && block.is_some() {
        report.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn ip_block(block: &Value, before: &[&str], path: Path<'_>, report: &mut Report) {
    let cidr = text(block, "cidr");
    if cidr.is_empty() {
        report.required(path.field("cidr"), "");
        return;
    }
    legacy_cidr(cidr, before, path.field("cidr"), report);
    let Some(outer) = parse_cidr(cidr) else { return };
    let excepts = path.field("except");
    for (index, except) in texts(block, "except").into_iter().enumerate() {
        legacy_cidr(except, before, excepts.index(index), report);
        if let Some(inner) = parse_cidr(except)
            && !within(inner, outer)
        {
            report.invalid(excepts.index(index), except, "must be a strict subset of `cidr`");
        }
    }
}

type Range = (IpAddr, u8, u8);

/// Whether a CIDR is strictly inside another.
fn within((inner, inner_bits, inner_width): Range, (outer, outer_bits, outer_width): Range) -> bool {
    let value = |ip: IpAddr| match ip {
        IpAddr::V4(v4) => u128::from(u32::from(v4)),
        IpAddr::V6(v6) => u128::from(v6),
    };
    let network = |ip| value(ip).checked_shr(u32::from(outer_width - outer_bits)).unwrap_or(0);
    inner_width == outer_width && outer_bits < inner_bits && network(inner) == network(outer)
}
