//! Resource names and quantities.

use capstan_schema::meta;
use capstan_schema::path::Path;
use serde_json::{Map, Value};

use super::report::{NOT_NEGATIVE, Report};
use crate::quantity::Quantity;

/// Countable and compute resources that are known without a domain.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

pub(super) fn huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn quota_huge_pages(name: &str) -> bool {
    huge_pages(name) || name.starts_with("requests.hugepages-")
}

/// Known to quotas.
pub(super) fn is_quota_resource(name: &str) -> bool {
    STANDARD.contains(&name) && name != "storage" || quota_huge_pages(name)
}

fn native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// An extended resource: has a domain that is not Kubernetes' own.
pub(super) fn extended(name: &str) -> bool {
    !native(name)
        && !name.starts_with("requests.")
        && meta::qualified_name(&format!("requests.{name}")).is_empty()
}

pub(super) fn resource_name(name: &str, path: Path<'_>, report: &mut Report) {
    let messages = meta::qualified_name(name);
    if !messages.is_empty() {
        report.each(path, name, messages);
    } else if !name.contains('/') && !STANDARD.contains(&name) && !quota_huge_pages(name) {
        report.invalid(path, name, "must be a standard resource type or fully qualified");
    }
}

/// A resource that a container may request.
pub(super) fn container_resource_name(name: &str, path: Path<'_>, report: &mut Report) {
    resource_name(name, path, report);
    if !name.contains('/') {
        if !["cpu", "memory", "ephemeral-storage"].contains(&name) && !huge_pages(name) {
            report.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !native(name) && !extended(name) {
        report.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// A quantity; texts were parsed when the object was decoded.
pub(super) fn amount(value: &Value) -> Quantity {
    value.as_str().and_then(|t| Quantity::parse(t).ok()).unwrap_or_else(|| Quantity::from_integer(0))
}

pub(super) fn amount_of(map: Option<&Map<String, Value>>, name: &str) -> Option<Quantity> {
    map.and_then(|m| m.get(name)).map(amount)
}

/// Not negative, and an integer if the resource is countable.
pub(super) fn resource_amount(name: &str, value: &Value, path: Path<'_>, report: &mut Report) {
    let quantity = amount(value);
    if quantity.is_negative() {
        report.invalid(path, quantity.to_string(), NOT_NEGATIVE);
    }
    if (COUNTED.contains(&name) || extended(name)) && !quantity.is_integer() {
        report.invalid(path, quantity.to_string(), "must be an integer");
    }
}

pub(super) fn positive_amount(value: &Value, path: Path<'_>, report: &mut Report) {
    let quantity = amount(value);
    if quantity.is_zero() || quantity.is_negative() {
        report.invalid(path, quantity.to_string(), "must be greater than zero");
    }
}

/// Resources of volumes: any non-negative quantity.
pub(super) fn basic_amount(value: &Value, path: Path<'_>, report: &mut Report) {
    let quantity = amount(value);
    if quantity.value() < 0 {
        report.invalid(path, quantity.value(), "must be a valid resource quantity");
    }
}
