//! Known differences, each with its reason.

/// Statistics of machines are updated by a collector once a minute.
const COLLECTED: &[&str] = &[
    "/cpuused:",
    "/networkkbs",
    "/diskkbs",
    "/diskio",
    "/memorykbs:",
    "/memoryintfreekbs:",
    "/memorytargetkbs:",
];

/// Prefix of a case's name (empty for all), a part of the difference, and its reason.
const EXPLAINED: &[(&str, &str, &str)] = &[
    (
        "",
        "/service/",
        "services and their capabilities come in the order of a hash set, which differs between the recording's own \
         replies, and two capabilities have long texts",
    ),
    ("listZones_showcapacities", "/capacity", "capacities have no order, and the collector had not finished"),
    ("listCapacity", "/capacity", "the collector had not finished when this was recorded"),
    ("listCapacity", "/count", "the collector had not finished when this was recorded"),
    ("listTemplates_admin_all", "/downloaddetails", "the copy on primary storage is not shown"),
    ("listOsTypes", "/count", "the server knows 374 guest types, the simulator a few"),
    ("paging_", "/count", "the server knows 374 guest types, the simulator a few"),
    ("listTags_listall", "/tag/", "within a type, tags come in no order"),
    ("listVolumes_user", "/volume/0/", "disks created within one second have no order"),
    (
        "capacity_fill_3",
        "job",
        "the server places machines at random, so which of three large ones fits is chance",
    ),
    (
        "listHosts_after_fill",
        "/id",
        "the server places machines at random, so the same machine is on another host",
    ),
    ("listVirtualMachines_after_failed_destroy", "/hostid", "the server places machines at random"),
    (
        "listPublicIpAddresses_after_network_gc",
        "/id",
        "which address is free depends on cases that are not replayed",
    ),
];

/// Cases whose counts depend on cases that are not replayed.
const COUNTS: &[&str] = &[
    "listVirtualMachines_project_minus1",
    "listVirtualMachines_admin_account_domain",
    "listVirtualMachines_domainadmin_domainid",
    "listVolumes_user",
    "listVolumes_nopage",
    "listNetworks_user_listall",
    "listNetworks_canusefordeploy",
];

/// Why a difference is expected.
pub fn reason(case: &str, difference: &str) -> Option<&'static str> {
    if COLLECTED.iter().any(|field| difference.contains(field)) {
        return Some("the collector updates statistics of machines once a minute");
    }
    if COUNTS.contains(&case) && difference.starts_with("/count:") {
        return Some("cases that are not replayed created or removed some");
    }
    EXPLAINED
        .iter()
        .find(|(start, part, _)| case.starts_with(start) && difference.contains(part))
        .map(|(_, _, why)| *why)
}
