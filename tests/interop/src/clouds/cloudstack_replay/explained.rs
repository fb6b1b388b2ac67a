//! Known differences, each with the command and the cause by which it is recognised, whatever its case is called.

use serde_json::Value;

use super::case::Case;

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

/// A difference that is expected.
struct Known {
    /// Commands whose replies have it; of any command if empty.
    commands: &'static [&'static str],
    /// The cause is there: in what was asked and recorded, and in what differs.
    applies: fn(&Case, &str) -> bool,
    why: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        commands: &[],
        applies: |_, difference| is_capability(difference) && difference.contains("recorded \"[{"),
        why: "two capabilities of network services have long texts",
    },
    Known {
        commands: &["listNetworkOfferings"],
        applies: |_, difference| {
            is_capability(difference) && difference.ends_with("recorded \"false\", ours \"true\"")
        },
        why: "load balancers of other makers scale no machines, and are not simulated",
    },
    Known {
        commands: &["listZones", "listCapacity"],
        applies: |_, difference| difference.contains("/capacity") || difference.starts_with("/count:"),
        why: "capacities have no order, and the collector had not finished when this was recorded",
    },
    Known {
        commands: &["listTemplates"],
        applies: |_, difference| difference.contains("/downloaddetails"),
        why: "the copy on primary storage is not shown",
    },
    Known {
        commands: &["listOsTypes"],
        applies: |_, difference| difference.starts_with("/count:"),
        why: "the server knows 374 guest types, the simulator a few",
    },
    Known {
        commands: &["listTags"],
        applies: |case, difference| difference.contains("/tag/") && entries(case).len() > 1,
        why: "within a type, tags come in no order",
    },
    Known {
        commands: &["listVolumes"],
        applies: |case, difference| {
            difference.contains("/volume/") && (is_page(case) || share_a_second(case))
        },
        why: "disks created within one second have no order",
    },
    Known {
        commands: &["deployVirtualMachine"],
        applies: |case, difference| difference.starts_with("job") && found_no_host(case, difference),
        why: "the server places machines at random, so which of several large ones fits is chance",
    },
    Known {
        commands: &["listHosts"],
        applies: |_, difference| difference.contains("/id:"),
        why: "the server places machines at random, so the same machine is on another host",
    },
    Known {
        commands: &["listVirtualMachines", "listVirtualMachinesMetrics"],
        applies: |_, difference| difference.contains("/hostid:"),
        why: "the server places machines at random",
    },
    Known {
        commands: &["listPublicIpAddresses"],
        applies: |_, difference| difference.contains("/id:"),
        why: "which address is free depends on cases that are not replayed",
    },
    Known {
        commands: &["listVirtualMachines", "listVolumes", "listNetworks"],
        applies: |case, difference| difference.starts_with("/count:") && is_broad(case),
        why: "cases that are not replayed created or removed some",
    },
];

/// The value of a capability differs.
fn is_capability(difference: &str) -> bool {
    difference.contains("/capability/") && difference.contains("/value:")
}

/// Entries of the recorded list.
fn entries(case: &Case) -> &[Value] {
    let body = case.body().and_then(|(_, body)| body.as_object());
    let list = body.and_then(|body| body.values().find_map(Value::as_array));
    list.map_or(&[], Vec::as_slice)
}

/// What stands before and after the entries is not in the reply.
fn is_page(case: &Case) -> bool {
    case.param("pagesize").is_some()
}

fn share_a_second(case: &Case) -> bool {
    let times: Vec<_> = entries(case).iter().map(|entry| &entry["created"]).collect();
    times.windows(2).any(|two| two[0] == two[1])
}

/// One of the two clouds had no host for a machine.
fn found_no_host(case: &Case, difference: &str) -> bool {
    let recorded = case.job_end().and_then(|end| end["jobresultcode"].as_u64());
    recorded == Some(533) || difference.contains("No destination found")
}

/// A list of everything that somebody has.
fn is_broad(case: &Case) -> bool {
    !["id", "ids", "name", "keyword", "virtualmachineid"].iter().any(|name| case.param(name).is_some())
}

/// Why a difference is expected.
pub fn reason(case: &Case, difference: &str) -> Option<&'static str> {
    if COLLECTED.iter().any(|field| difference.contains(field)) {
        return Some("the collector updates statistics of machines once a minute");
    }
    let command = case.command.as_deref().unwrap_or_default();
    let of_command = |known: &&Known| known.commands.is_empty() || known.commands.contains(&command);
    KNOWN.iter().filter(of_command).find(|known| (known.applies)(case, difference)).map(|known| known.why)
}
