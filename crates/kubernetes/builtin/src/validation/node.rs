//! Nodes.

use std::collections::BTreeSet;

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Value, json};

use super::Subject;
use super::network::{legacy_cidr, parse_cidr};
use super::quantities::resource_amount;
use super::report::{Report, entries, internal, list, text, texts};

pub(super) fn node(subject: &Subject<'_>, report: &mut Report) {
    let (spec, status) = (&subject.new["spec"], &subject.new["status"]);
    if subject.old.is_none() {
        taints(spec, report);
    }
    for key in ["capacity", "allocatable"] {
        for (name, value) in entries(status, key) {
            resource_amount(name, value, Path::at("status").field(key).field(name), report);
        }
    }
    let Some(old) = subject.old else {
        return pod_ranges(spec, report);
    };
    let mut addresses = BTreeSet::new();
    for (index, address) in list(status, "addresses").iter().enumerate() {
        if !addresses.insert((text(address, "type"), text(address, "address"))) {
            let shown = internal(&[("Type", &address["type"]), ("Address", &address["address"])]);
            report.duplicate_as(Path::at("status.addresses").index(index), shown);
        }
    }
    let (before, after) = (texts(&old["spec"], "podCIDRs"), texts(spec, "podCIDRs"));
    if !before.is_empty() {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        let changed = if before.len() == after.len() {
            before.iter().zip(&after).filter(|(b, a)| b != a).count()
        } else {
            1
        };
        for _ in 0..changed {
            report.forbidden(Path::at("spec.podCIDRs"), detail);
        }
    }
    let provider = text(&old["spec"], "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        report.forbidden(Path::at("spec.providerID"), detail);
    }
    taints(spec, report);
    if text(spec, "externalID") != text(&old["spec"], "externalID") {
        report.forbidden(Path::at("spec.externalID"), "may not be updated");
    }
}

fn pod_ranges(spec: &Value, report: &mut Report) {
    let ranges = texts(spec, "podCIDRs");
    let path = Path::at("spec.podCIDRs");
    for (index, range) in ranges.iter().enumerate() {
        legacy_cidr(range, &[], path.index(index), report);
    }
    let is_v6 = |range: &&str| range.contains(':');
    let odd = ranges.iter().position(|r| parse_cidr(r).is_none());
    if let Some(index) = odd.filter(|_| ranges.len() > 1) {
        let detail = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> \
             (invalid CIDR address: {})",
            ranges[index]
        );
        report.internal(path, detail);
    }
    if ranges.len() > 2 || ranges.len() == 2 && is_v6(&ranges[0]) == is_v6(&ranges[1]) {
        report.invalid(path, json!(ranges), "may specify no more than one CIDR for each IP family");
    }
}

/// Upstream puts taints below the metadata when it reports them.
fn taints(spec: &Value, report: &mut Report) {
    let taints = Path::at("metadata.taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        let path = taints.index(index);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        report.each(path.field("key"), key, meta::qualified_name(key));
        let messages = meta::label_value(value);
        if !messages.is_empty() {
            report.invalid(path.field("value"), value, messages.join(";"));
        }
        taint_effect(effect, path.field("effect"), report);
        if !seen.insert((effect, key)) {
            let none = Value::Null;
            let shown = internal(&[
                ("Key", &taint["key"]),
                ("Value", &json!(value)),
                ("Effect", &taint["effect"]),
                ("TimeAdded", taint.get("timeAdded").unwrap_or(&none)),
            ]);
            report.duplicate_with(path, shown, "taints must be unique by key and effect pair");
        }
    }
}

pub(super) fn taint_effect(effect: &str, path: Path<'_>, report: &mut Report) {
    if effect.is_empty() {
        report.required(path, "");
    } else {
        report.one_of(path, effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    }
}
