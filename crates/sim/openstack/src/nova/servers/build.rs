//! How a server is built and removed, step by step, and where it is placed.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::groups;
use super::{record, set_state};
use crate::cloud::Cloud;
use crate::neutron::ports;
use crate::table::{Fields as _, Object};
use crate::wire::Call;
use crate::work::Task;
use crate::{cinder, guests};

/// Virtual processors per real one, as Nova offers them.
const CPU_RATIO: i64 = 4;

/// Steps of building a server, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BuildStep {
    Schedule,
    Network,
    BlockDevices,
    Spawn,
    Active,
}

/// Processors, memory, disk and servers on a host.
pub(crate) fn used_on(cloud: &Cloud, host: &str) -> (i64, i64, i64, i64) {
    cloud.all("servers").filter(|it| it.text("host") == host && it.text("vm_state") != "deleted").fold(
        (0, 0, 0, 0),
        |(vcpus, ram, disk, count), it| {
            let flavor = it.object("flavor").cloned().unwrap_or_default();
            let root = if it.text("image").is_empty() { 0 } else { flavor.number("disk") };
            (vcpus + flavor.number("vcpus"), ram + flavor.number("ram"), disk + root, count + 1)
        },
    )
}

/// A host for a server, or why there is none.
fn schedule(cloud: &Cloud, server: &Object) -> Result<String, &'static str> {
    const NO_ROOM: &str = "No valid host was found. ";
    const FILTERED: &str = "No valid host was found. There are not enough hosts available.";
    if cloud.faults.no_host {
        return Err(FILTERED);
    }
    let flavor = server.object("flavor").cloned().unwrap_or_default();
    let disk = if server.text("image").is_empty() { 0 } else { flavor.number("disk") };
    let mut hosts: Vec<_> = cloud
        .all("hosts")
        .map(|host| (host, used_on(cloud, host.text("id"))))
        .filter(|(host, used)| {
            used.0 + flavor.number("vcpus") <= host.number("vcpus") * CPU_RATIO
                && used.1 + flavor.number("ram") <= host.number("memory")
                && used.2 + disk <= host.number("disk")
        })
        .collect();
    if hosts.is_empty() {
        return Err(NO_ROOM);
    }
    let zone = server.text("wanted_zone");
    hosts.retain(|(host, _)| zone.is_empty() || host.text("zone") == zone);
    let forced = server.text("forced_host");
    hosts.retain(|(host, _)| forced.is_empty() || host.text("id") == forced);
    let group = cloud.get("server_groups", server.text("group"));
    let members = |host: &str| {
        groups::members(cloud, server.text("group"))
            .filter(|it| it.text("host") == host && it.text("id") != server.text("id"))
            .count()
    };
    if let Some(group) = group {
        let most = group.object("rules").map_or(0, |rules| rules.number("max_server_per_host")).max(1);
        let most = usize::try_from(most).unwrap_or(1);
        match group.text("policy") {
            "anti-affinity" => hosts.retain(|(host, _)| members(host.text("id")) < most),
            "affinity" => {
                let held: Vec<&str> = groups::members(cloud, server.text("group"))
                    .map(|it| it.text("host"))
                    .filter(|host| !host.is_empty())
                    .collect();
                hosts.retain(|(host, _)| held.is_empty() || held.contains(&host.text("id")));
            }
            _ => {}
        }
    }
    let soft = group.map_or("", |it| it.text("policy"));
    hosts
        .into_iter()
        .min_by_key(|(host, used)| {
            let same = i64::try_from(members(host.text("id"))).unwrap_or_default();
            let affinity = match soft {
                "soft-anti-affinity" => same,
                "soft-affinity" => -same,
                _ => 0,
            };
            (affinity, used.3, used.1)
        })
        .map(|(host, _)| host.text("id").to_owned())
        .ok_or(FILTERED)
}

fn fail(cloud: &mut Cloud, id: &str, code: u16, message: &str) {
    let now = cloud.stamp();
    let details = "Traceback (most recent call last):\n  the simulator keeps no traceback\n";
    let fault = json!({"code": code, "created": now, "message": message, "details": details});
    cloud.set("servers", id, "fault", fault);
    set_state(cloud, id, Some("error"), None);
}

fn abort(cloud: &mut Cloud, id: &str, why: &str) {
    release(cloud, id);
    cloud.set("servers", id, "host", "");
    cloud.set("servers", id, "zone", "");
    fail(cloud, id, 500, &format!("Build of instance {id} aborted: {why}"));
}

/// Carries out a step and plans the next.
pub(crate) fn build(cloud: &mut Cloud, id: &str, step: BuildStep) {
    let Some(server) = cloud.get("servers", id).cloned() else { return };
    if server.text("vm_state") != "building" || server.text("task_state") == "deleting" {
        return;
    }
    let spawn = cloud.settings.timings.spawn;
    let (next, after) = match step {
        BuildStep::Schedule => match schedule(cloud, &server) {
            Ok(host) => {
                let zone = cloud.get("hosts", &host).map(|it| it.text("zone").to_owned()).unwrap_or_default();
                cloud.set("servers", id, "host", host);
                cloud.set("servers", id, "zone", zone);
                cinder::hold_devices(cloud, id);
                set_state(cloud, id, None, None);
                (BuildStep::Network, spawn / 10)
            }
            Err(why) => return fail(cloud, id, 500, why),
        },
        BuildStep::Network => {
            set_state(cloud, id, None, Some("networking"));
            (BuildStep::BlockDevices, spawn / 5)
        }
        BuildStep::BlockDevices => {
            if let Err(why) = connect(cloud, &server) {
                return abort(cloud, id, &why);
            }
            set_state(cloud, id, None, Some("block_device_mapping"));
            (BuildStep::Spawn, spawn / 5)
        }
        BuildStep::Spawn => {
            if let Err(why) = cinder::attach_devices(cloud, &server) {
                return abort(cloud, id, &why);
            }
            set_state(cloud, id, None, Some("spawning"));
            (BuildStep::Active, spawn / 2)
        }
        BuildStep::Active => {
            if cloud.faults.failing_builds > 0 {
                cloud.faults.failing_builds -= 1;
                release(cloud, id);
                return fail(
                    cloud,
                    id,
                    500,
                    &format!("Build of instance {id} aborted: the hypervisor failed"),
                );
            }
            let now = cloud.naive() + ".000000";
            cloud.set("servers", id, "launched_at", now);
            cloud.set("servers", id, "power_state", 1);
            set_state(cloud, id, Some("active"), None);
            let tags: Vec<String> = {
                let mut tags: Vec<String> = server.texts("tags").into_iter().map(str::to_owned).collect();
                tags.sort();
                tags
            };
            cloud.set("servers", id, "tags", tags);
            guests::boot(cloud, id);
            return;
        }
    };
    cloud.later(after, Task::ServerBuild { id: id.to_owned(), step: next });
}

/// Gives a server its ports: those it was created with, and new ones on networks.
fn connect(cloud: &mut Cloud, server: &Object) -> Result<(), String> {
    let id = server.text("id").to_owned();
    let host = cloud.get("servers", &id).map(|it| it.text("host").to_owned()).unwrap_or_default();
    let zone = cloud.get("servers", &id).map(|it| it.text("zone").to_owned()).unwrap_or_default();
    let mut held: Vec<Value> = Vec::new();
    for ask in server.list("networks") {
        let (port, made) = match ask["port"].as_str() {
            Some(port) => (port.to_owned(), false),
            None => (new_port(cloud, server, ask)?, true),
        };
        ports::bind(cloud, &port, &id, &format!("compute:{zone}"), &host);
        held.push(json!({"id": port, "made": made}));
        cloud.set("servers", &id, "ports", held.clone());
    }
    Ok(())
}

/// A port that Nova makes for a server.
pub(super) fn new_port(cloud: &mut Cloud, server: &Object, ask: &Value) -> Result<String, String> {
    let project = server.text("tenant_id");
    let network = ask["uuid"].as_str().or(ask["net_id"].as_str()).unwrap_or_default().to_owned();
    let secured = cloud.get("networks", &network).is_some_and(|it| it.flag("port_security_enabled"));
    // An interface that is added later gets the project's default group.
    let wanted = if ask.get("net_id").is_some() { vec!["default"] } else { server.texts("security_groups") };
    let groups: Vec<String> = wanted
        .iter()
        .filter_map(|name| {
            cloud.all("security_groups").find(|it| {
                it.text("project_id") == project && (it.text("name") == *name || it.text("id") == *name)
            })
        })
        .map(|it| it.text("id").to_owned())
        .collect();
    let mut port = json!({"network_id": network, "project_id": project});
    if secured {
        port["security_groups"] = json!(groups);
    }
    if let Some(address) = ask["fixed_ip"].as_str() {
        port["fixed_ips"] = json!([{"ip_address": address}]);
    } else if let Some(ips) = ask.get("fixed_ips") {
        port["fixed_ips"] = ips.clone();
    }
    ports::service_port(cloud, port).map_err(|fail| match (fail.kind, ask["fixed_ip"].as_str()) {
        ("InvalidIpForNetwork" | "InvalidIpForSubnet", Some(address)) => {
            format!(
                "Invalid input received: Fixed IP {address} is not a valid ip address for network {network}."
            )
        }
        _ => fail.message,
    })
}

/// Takes ports and volumes off a server.
pub(super) fn release(cloud: &mut Cloud, id: &str) {
    let Some(server) = cloud.get("servers", id).cloned() else { return };
    for held in server.list("ports") {
        let port = held["id"].as_str().unwrap_or_default();
        if held["made"] == true {
            ports::free(cloud, port);
        } else if cloud.get("ports", port).is_some_and(|it| it.text("device_id") == id) {
            ports::unbind(cloud, port);
        }
    }
    // Ports that were reserved and never bound.
    for ask in server.list("networks") {
        let port = ask["port"].as_str().unwrap_or_default();
        if cloud.get("ports", port).is_some_and(|it| it.text("device_id") == id) {
            ports::unbind(cloud, port);
        }
    }
    cloud.set("servers", id, "ports", json!([]));
    for device in server.list("devices").iter().filter(|it| it["source_type"] == "volume") {
        let volume = device["uuid"].as_str().unwrap_or_default();
        if cloud.get("volumes", volume).is_some_and(|it| it.text("status") == "reserved") {
            cloud.set("volumes", volume, "status", "available");
        }
    }
    for held in server.list("volumes") {
        let volume = held["id"].as_str().unwrap_or_default();
        cinder::detached(cloud, volume, id);
        if held["delete_on_termination"] == true {
            cloud.remove("volumes", volume);
        }
    }
    cloud.set("servers", id, "volumes", json!([]));
}

pub(super) fn begin_delete(cloud: &mut Cloud, call: &Call, server: &Object) {
    let id = server.text("id");
    if server.text("task_state") == "deleting" || server.text("vm_state") == "deleted" {
        return;
    }
    record(cloud, call, id, "delete");
    if server.text("host").is_empty() {
        // Nothing is to be done on a host.
        release(cloud, id);
        cloud.remove("servers", id);
        return;
    }
    set_state(cloud, id, None, Some("deleting"));
    let after = cloud.settings.timings.delete;
    cloud.later(after, Task::ServerDeleted { id: id.to_owned() });
}

/// The server is gone from its host.
pub(crate) fn deleted(cloud: &mut Cloud, id: &str) {
    if cloud.get("servers", id).is_none() {
        return;
    }
    guests::destroy(cloud, id);
    let volumes = cloud.get("servers", id).map(|it| it.list("volumes").to_vec()).unwrap_or_default();
    release(cloud, id);
    // Shown for as long as the server is.
    cloud.set("servers", id, "volumes", volumes);
    let now = cloud.naive() + ".000000";
    cloud.set("servers", id, "terminated_at", now);
    cloud.set("servers", id, "power_state", 0);
    cloud.set("servers", id, "_gone", true);
    set_state(cloud, id, Some("deleted"), None);
    let after = cloud.settings.timings.linger;
    cloud.later(after, Task::ServerForgotten { id: id.to_owned() });
}

/// The server is not shown any more.
pub(crate) fn forget(cloud: &mut Cloud, id: &str) {
    cloud.remove("servers", id);
}
