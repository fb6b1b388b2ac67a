//! Known differences, with their reasons.

use crate::case::Case;

/// Start of the case's name, a part of the difference, and why.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("", "catalog[]: recorded item", "Magnum is not simulated, so the catalog lacks it"),
    ("ks.services", "services[]: recorded item", "Magnum is not simulated, so the catalog lacks it"),
    ("ks.domains", "domains[]: recorded item", "the domain is Magnum's"),
    ("glance.schemas", "properties.", "the schema has what the simulator validates"),
    ("ks.teardown.admin_after_revoke", "status", "several revocations in one second kept a token alive"),
    ("cache.compute.after_revoke", "status", "the call that filled the cache is not in the recording"),
    ("neutron.quotas.details", ".used", "objects of other recordings count"),
    ("", "bound_drivers", "the recorded mechanism driver is a stand-in"),
    ("", "os-vol-host-attr:host", "the recorded volume driver is a stand-in"),
    ("nova.action.console", "output", "the recorded console text is that of the fake driver"),
];

pub fn reason(case: &Case, difference: &str) -> Option<&'static str> {
    EXPLAINED
        .iter()
        .find(|(name, part, _)| case.case.starts_with(name) && difference.contains(part))
        .map(|(_, _, why)| *why)
}
