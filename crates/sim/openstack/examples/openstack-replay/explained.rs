//! Known differences, with their reasons.

use crate::case::Case;

/// Start of the case's name, a part of the difference, and why.
const EXPLAINED: &[(&str, &str, &str)] = &[
    ("", "catalog[]: recorded item", "Magnum is not simulated, so the catalog lacks it"),
    ("ks.services", "services[]: recorded item", "Magnum is not simulated, so the catalog lacks it"),
    ("ks.domains", "domains[]: recorded item", "the domain is Magnum's"),
    ("", "server.addresses", "when addresses are read back varies from server to server"),
    ("nova.create.soft_1.wait", "security_groups", "when ports are read back varies from server to server"),
    ("nova.detail", "task_state", "servers are built at another pace"),
    ("nova.detail", "servers[].addresses", "servers are built at another pace"),
    ("nova.detail", "servers[].security_groups", "servers are built at another pace"),
    ("nova.race", "", "a race: the server is polled between calls"),
    ("nova.delete.wait", "status: recorded 200", "the server was polled late, and was still shown"),
    ("nova.list", "servers[]", "servers of one second have no order"),
    ("cinder.volumes.with_count", "volumes[]", "volumes of one second have no order"),
    ("neutron.ports.list.page", "ports[]", "ports are sorted by their random ids"),
    ("nova.action.pause", "power_state", "the fake driver reports a paused server as running"),
    ("nova.action.unpause", "power_state", "the fake driver reports a paused server as running"),
    ("nova.get.reset_error", "fault", "the call that left the fault is not in the recording"),
    ("nova.get.error_fault.admin", "fault.details", "a traceback of the recorded deployment"),
    ("nova.action.create_image.wait.timeout", "", "snapshots never finish on the recorded deployment"),
    ("nova.quota.put", "already used and reserved", "servers that the recording does not delete count"),
    ("placement.allocation_candidates", ".used", "amphorae are servers on the recorded deployment"),
    ("neutron.sg.list.default", "security_groups[]: recorded item", "groups of other recordings"),
    ("octavia.net.sg.left", "security_groups[]", "groups of other recordings"),
    ("teardown.sg.list", "security_groups[]: recorded item", "groups of other recordings"),
    ("octavia.net.ports_on_net", "ports[]", "the name has the amphora's random id"),
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
