//! Servers as a version of the API shows them.

use serde_json::{Value, json};

use super::super::{bookmark, links};
use crate::cloud::Cloud;
use crate::neutron;
use crate::table::{Fields as _, Object};
use crate::wire::Call;

/// Status out of the states, as Nova derives it.
pub(super) fn status(server: &Object) -> &'static str {
    let task = server.text("task_state");
    let resizing = matches!(task, "resize_prep" | "resize_migrating" | "resize_migrated" | "resize_finish");
    let rebuilding = task.starts_with("rebuild");
    match server.text("vm_state") {
        "building" => "BUILD",
        "active" => match task {
            _ if resizing => "RESIZE",
            _ if rebuilding => "REBUILD",
            "rebooting" | "reboot_pending" | "reboot_started" => "REBOOT",
            "rebooting_hard" | "reboot_pending_hard" | "reboot_started_hard" => "HARD_REBOOT",
            _ => "ACTIVE",
        },
        "stopped" if resizing => "RESIZE",
        "stopped" if rebuilding => "REBUILD",
        "stopped" => "SHUTOFF",
        "resized" if task == "resize_reverting" => "REVERT_RESIZE",
        "resized" => "VERIFY_RESIZE",
        "paused" => "PAUSED",
        "suspended" => "SUSPENDED",
        "shelved" => "SHELVED",
        "shelved_offloaded" => "SHELVED_OFFLOADED",
        "deleted" => "DELETED",
        "soft-delete" => "SOFT_DELETED",
        _ if rebuilding => "REBUILD",
        _ => "ERROR",
    }
}

/// Addresses by the name of their network.
pub(super) fn addresses(cloud: &Cloud, server: &Object) -> Object {
    let mut all = Object::new();
    // Nova knows the addresses of its ports only when it has read them back.
    if server.text("vm_state") == "building" && server.text("task_state") != "spawning" {
        return all;
    }
    for held in server.list("ports") {
        let Some(port) = held["id"].as_str().and_then(|id| cloud.get("ports", id)) else { continue };
        let Some(network) = cloud.get("networks", port.text("network_id")) else { continue };
        let list = all.entry(network.text("name").to_owned()).or_insert_with(|| json!([]));
        let mac = &port["mac_address"];
        let mut add = |addr: &str, kind: &str| {
            let version = if addr.contains(':') { 6 } else { 4 };
            if let Some(list) = list.as_array_mut() {
                list.push(json!({
                    "version": version, "addr": addr, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac,
                }));
            }
        };
        for (fixed, floating) in neutron::addresses_of(cloud, port) {
            add(&fixed, "fixed");
            for address in floating {
                add(&address, "floating");
            }
        }
    }
    all
}

pub(super) fn brief(call: &Call, server: &Object) -> Value {
    let id = server.text("id");
    json!({"id": id, "name": server["name"], "links": links(call, "servers", id)})
}

/// A server as a detailed list has it.
pub(super) fn listed(cloud: &Cloud, call: &Call, server: &Object) -> Value {
    let mut shown = detail(cloud, call, server);
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("server_groups");
    }
    shown
}

/// Leaves what replies to changes had in the first version of the API, which is what they have up to 2.74.
pub(super) fn strip(shown: &mut Object) {
    shown.retain(|name, _| {
        !name.starts_with("OS-EXT")
            && !name.starts_with("OS-SRV")
            && !name.starts_with("os-extended")
            && !matches!(name.as_str(), "config_drive" | "key_name" | "security_groups")
    });
    for address in shown.get_mut("addresses").and_then(Value::as_object_mut).into_iter().flatten() {
        for entry in address.1.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.retain(|name, _| !name.starts_with("OS-EXT"));
        }
    }
}

pub(super) fn detail(cloud: &Cloud, call: &Call, server: &Object) -> Value {
    let id = server.text("id");
    let admin = call.caller.is_admin();
    let flavor = server.object("flavor").cloned().unwrap_or_default();
    let shown_flavor = if call.at_least(47) {
        json!({
            "vcpus": flavor["vcpus"], "ram": flavor["ram"], "disk": flavor["disk"], "ephemeral": flavor["ephemeral"],
            "swap": flavor["swap"], "original_name": flavor["name"], "extra_specs": flavor["extra_specs"],
        })
    } else {
        let flavor = flavor.text("id");
        json!({"id": flavor, "links": bookmark(call, "flavors", flavor)})
    };
    let image = match server.text("image") {
        "" => json!(""),
        image => {
            let mut shown = json!({"id": image, "links": bookmark(call, "images", image)});
            if call.at_least(98) {
                shown["properties"] = server.get("image_properties").cloned().unwrap_or_else(|| json!({}));
            }
            shown
        }
    };
    let scheduled = !server.text("host").is_empty();
    let status = status(server);
    let mut shown = json!({
        "id": id, "name": server["name"], "status": status, "tenant_id": server["tenant_id"],
        "user_id": server["user_id"], "metadata": server["metadata"], "image": image, "flavor": shown_flavor,
        "created": server["created"], "updated": server["updated"], "addresses": addresses(cloud, server),
        "accessIPv4": server["accessIPv4"], "accessIPv6": server["accessIPv6"], "links": links(call, "servers", id),
        "OS-DCF:diskConfig": server["OS-DCF:diskConfig"], "key_name": server["key_name"],
        "config_drive": if server.flag("config_drive") { "True" } else { "" },
        "hostId": if scheduled { Cloud::digest(&format!("{}{}", server.text("tenant_id"), server.text("host"))) } else { String::new() },
        "OS-EXT-AZ:availability_zone": if server.text("zone").is_empty() { server.text("wanted_zone") } else { server.text("zone") },
        "OS-SRV-USG:launched_at": server["launched_at"], "OS-SRV-USG:terminated_at": server["terminated_at"],
        "OS-EXT-STS:task_state": server["task_state"], "OS-EXT-STS:vm_state": server["vm_state"],
        "OS-EXT-STS:power_state": server["power_state"],
    });
    if matches!(status, "BUILD" | "ACTIVE" | "REBUILD" | "RESIZE" | "VERIFY_RESIZE" | "MIGRATING") {
        shown["progress"] = json!(0);
    }
    if server.has("fault") && matches!(status, "ERROR" | "DELETED") {
        let mut fault = server["fault"].clone();
        if !admin && let Some(fault) = fault.as_object_mut() {
            fault.remove("details");
        }
        shown["fault"] = fault;
    }
    let mut groups: Vec<&str> = Vec::new();
    for held in server.list("ports") {
        let port = held["id"].as_str().and_then(|id| cloud.get("ports", id));
        for group in port.map(|it| it.texts("security_groups")).unwrap_or_default() {
            if let Some(name) = cloud
                .get("security_groups", group)
                .map(|it| it.text("name"))
                .filter(|it| !groups.contains(it))
            {
                groups.push(name);
            }
        }
    }
    if !groups.is_empty() {
        shown["security_groups"] = groups.iter().map(|name| json!({"name": name})).collect();
    }
    let attached: Vec<Value> = server
        .list("volumes")
        .iter()
        .map(|it| match call.at_least(3) {
            true => json!({"id": it["id"], "delete_on_termination": it["delete_on_termination"]}),
            false => json!({"id": it["id"]}),
        })
        .collect();
    shown["os-extended-volumes:volumes_attached"] = Value::Array(attached);
    if call.at_least(9) {
        shown["locked"] = server["locked"].clone();
    }
    if call.at_least(19) {
        shown["description"] = server["description"].clone();
    }
    if call.at_least(26) {
        shown["tags"] = server["tags"].clone();
    }
    if call.at_least(63) {
        shown["trusted_image_certificates"] = Value::Null;
    }
    if call.at_least(71) {
        let group = server.text("group");
        let known = cloud.get("server_groups", group).is_some();
        shown["server_groups"] = if known { json!([group]) } else { json!([]) };
    }
    if call.at_least(73) {
        shown["locked_reason"] = server["locked_reason"].clone();
    }
    if call.at_least(90) {
        shown["OS-EXT-SRV-ATTR:hostname"] = server["hostname"].clone();
    }
    if call.at_least(96) {
        shown["pinned_availability_zone"] = server["wanted_zone"].clone();
    }
    if call.at_least(100) {
        shown["scheduler_hints"] = server["hints"].clone();
    }
    if admin {
        let host = if scheduled { server["host"].clone() } else { Value::Null };
        shown["OS-EXT-SRV-ATTR:host"] = host.clone();
        shown["OS-EXT-SRV-ATTR:hypervisor_hostname"] = host;
        shown["OS-EXT-SRV-ATTR:instance_name"] = server["instance_name"].clone();
        if call.at_least(3) {
            shown["OS-EXT-SRV-ATTR:reservation_id"] = server["reservation"].clone();
            shown["OS-EXT-SRV-ATTR:launch_index"] = json!(0);
            shown["OS-EXT-SRV-ATTR:hostname"] = server["hostname"].clone();
            shown["OS-EXT-SRV-ATTR:kernel_id"] = json!("");
            shown["OS-EXT-SRV-ATTR:ramdisk_id"] = json!("");
            shown["OS-EXT-SRV-ATTR:root_device_name"] =
                if scheduled { json!("/dev/vda") } else { Value::Null };
            shown["OS-EXT-SRV-ATTR:user_data"] = server["_user_data"].clone();
        }
        if call.at_least(16) {
            shown["host_status"] = json!(if scheduled { "UP" } else { "" });
        }
    }
    shown
}
