//! Zones and hosts.

use serde_json::{Value, json};

use super::server::percent;
use super::{job, root_admin, sync};
use crate::call::{Answer, Call};
use crate::catalog::Command;
use crate::cloud::Cloud;
use crate::error::{ApiError, Result};
use crate::jobs::{Next, Submission};
use crate::model::place::HostState;

pub(super) const COMMANDS: &[Command] = &[
    sync(
        "listZones",
        "id:zone name available:flag showcapacities:flag domainid:domain ids:zone[]",
        list_zones,
    ),
    root_admin(sync("updateZone", "id:zone! allocationstate name sortkey:number", update_zone)),
    root_admin(sync(
        "listHosts",
        "id:host zoneid:zone type name state resourcestate details:long clusterid:cluster \
         managementserverid:managementserver podid:pod virtualmachineid:vm",
        list_hosts,
    )),
    root_admin(sync("updateHost", "id:host! allocationstate oscategoryid:oscategory", update_host)),
    root_admin(job(
        "prepareHostForMaintenance",
        "id:host!",
        "admin.host.PrepareForHostMaintenanceCmd",
        prepare_for_maintenance,
    )),
    root_admin(job(
        "cancelHostMaintenance",
        "id:host!",
        "admin.host.CancelHostMaintenanceCmd",
        cancel_maintenance,
    )),
];

fn list_zones(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let mut shown = Vec::new();
    let ids = call.keys(&cloud.zones, "ids");
    for zone in cloud.zones.iter() {
        let visible = zone.enabled || call.caller.is_root();
        let used = || cloud.vms.iter().any(|vm| vm.account == call.caller.account && vm.zone == zone.key);
        if !visible
            || !call.selects(&cloud.zones, "id", zone.key)
            || !(ids.is_empty() || ids.contains(&zone.key))
            || !call.names("name", &zone.name)
            || !call.keyword_in(&[&zone.name])
            || (call.flag("available") == Some(false) && !used())
        {
            continue;
        }
        let mut fields = cloud.show_zone(zone.key, call.caller);
        if call.is("showcapacities") {
            let capacities: Vec<Value> = cloud
                .capacity(zone.key)
                .into_iter()
                .map(|(kind, name, _, used, total)| {
                    json!({
                        "type": kind,
                        "name": name,
                        "capacityused": used,
                        "capacitytotal": total,
                        "percentused": percent(used, total),
                    })
                })
                .collect();
            fields.put("capacity", capacities);
        }
        shown.push(fields.done());
    }
    Ok(Answer::List("zone", shown))
}

fn update_zone(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let zone = call.the(&cloud.zones, "id")?;
    match call.text("allocationstate") {
        Some("Enabled") => cloud.zones[zone].enabled = true,
        Some("Disabled") => cloud.zones[zone].enabled = false,
        Some(other) => return Err(ApiError::invalid(format!("Invalid Allocation State value: {other}"))),
        None => {}
    }
    if let Some(name) = call.filled("name") {
        cloud.zones[zone].name = name.to_owned();
    }
    Ok(Answer::Object("zone", cloud.show_zone(zone, call.caller).done()))
}

/// Fields of hosts by the group of `details` that shows them.
const HOST_GROUPS: [(&[&str], &[&str]); 4] = [
    (&["capacity", "stats", "events"], &["zonename", "podname", "clustername", "clustertype"]),
    (
        &["capacity"],
        &[
            "memorytotal",
            "memorywithoverprovisioning",
            "memoryallocated",
            "memoryallocatedbytes",
            "memoryallocatedpercentage",
            "hahost",
            "hypervisorversion",
            "arch",
            "cpuallocatedvalue",
            "cpuallocated",
            "cpuallocatedpercentage",
            "cpuallocatedwithoverprovisioning",
            "cpuwithoverprovisioning",
        ],
    ),
    (&["stats"], &["cpuused", "cpuloadaverage", "memoryused", "networkkbsread", "networkkbswrite"]),
    (&["events"], &["events"]),
];

/// Leaves out the fields of the groups that were not asked for.
fn leave_out(mut host: Value, details: &[String]) -> Value {
    let asked = |group: &&str| details.iter().any(|word| word == group);
    if let Some(host) = host.as_object_mut().filter(|_| !details.is_empty() && !asked(&"all")) {
        for (groups, fields) in HOST_GROUPS {
            if !groups.iter().any(asked) {
                host.retain(|name, _| !fields.contains(&name.as_str()));
            }
        }
    }
    host
}

fn list_hosts(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let details: Vec<String> =
        call.filled("details").into_iter().flat_map(|list| list.split(',')).map(str::to_lowercase).collect();
    if details.iter().any(|word| !["all", "capacity", "events", "stats", "min"].contains(&word.as_str())) {
        return Err(ApiError::invalid(
            "The details parameter contains a non permitted value. The allowed values are [all, capacity, events, stats, min]",
        ));
    }
    let shown = cloud
        .hosts
        .iter()
        .filter(|host| {
            call.selects(&cloud.hosts, "id", host.key)
                && call.selects(&cloud.zones, "zoneid", host.zone)
                && call.names("name", &host.name)
                && call.names("type", "Routing")
                && call.names("state", "Up")
                && call.names("resourcestate", host.state.name())
                && call.names("clusterid", &host.cluster.0)
                && call.names("podid", &cloud.zones[host.zone].pod)
                && call.keyword_in(&[&host.name, "Up", "Routing", crate::VERSION])
        })
        .map(|host| leave_out(cloud.show_host(host.key), &details))
        .collect();
    Ok(Answer::List("host", shown))
}

fn update_host(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let host = call.the(&cloud.hosts, "id")?;
    match call.text("allocationstate") {
        Some("Enable") => cloud.hosts[host].state = HostState::Enabled,
        Some("Disable") => cloud.hosts[host].state = HostState::Disabled,
        Some(other) => return Err(ApiError::invalid(format!("Invalid resource state event: {other}"))),
        None => {}
    }
    Ok(Answer::Object("host", cloud.show_host(host)))
}

fn prepare_for_maintenance(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let host = call.the(&cloud.hosts, "id")?;
    let uuid = cloud.hosts[host].uuid.clone();
    let timings = cloud.settings.timings;
    let submission = Submission::new(timings.submit, move |cloud, _| {
        if cloud.hosts[host].state != HostState::Enabled {
            return Next::Done(Err(ApiError::runtime(format!(
                "Failed to prepare host for maintenance due to: Host is already in state {}. Cannot recall for \
                 maintenance until resolved.",
                cloud.hosts[host].state.name()
            ))));
        }
        cloud.hosts[host].state = HostState::PrepareForMaintenance;
        cloud.hosts[host].system = (0, 0, 0);
        let shown = cloud.show_host(host);
        // System machines and, in a real cloud, all others are moved away in the background.
        cloud.schedule(
            timings.power,
            crate::jobs::Event::Chore(Box::new(move |cloud| {
                if cloud.hosts[host].state == HostState::PrepareForMaintenance {
                    cloud.hosts[host].state = HostState::Maintenance;
                }
            })),
        );
        Next::Done(Ok(json!({"host": shown})))
    });
    Ok(Answer::Job(submission.about_the("Host", &uuid)))
}

fn cancel_maintenance(cloud: &mut Cloud, call: &Call) -> Result<Answer> {
    let host = call.the(&cloud.hosts, "id")?;
    let uuid = cloud.hosts[host].uuid.clone();
    let submission = Submission::once(cloud.settings.timings.rule, move |cloud, _| {
        cloud.hosts[host].state = HostState::Enabled;
        Ok(json!({"host": cloud.show_host(host)}))
    });
    Ok(Answer::Job(submission.about_the("Host", &uuid)))
}
