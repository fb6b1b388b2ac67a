//! Interfaces and volumes of servers.

use serde_json::{Value, json};

use super::super::body;
use super::{build, find, own};
use crate::cinder;
use crate::cloud::Cloud;
use crate::neutron::ports;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};
use crate::work::Task;

fn interface(port: &Object) -> Value {
    let ips: Vec<Value> = port
        .list("fixed_ips")
        .iter()
        .map(|ip| json!({"subnet_id": ip["subnet_id"], "ip_address": ip["ip_address"]}))
        .collect();
    json!({
        "net_id": port["network_id"], "port_id": port["id"], "mac_addr": port["mac_address"], "port_state": port["status"],
        "fixed_ips": ips,
    })
}

pub(super) fn interfaces(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            let server = find(cloud, call, id)?;
            let all: Vec<Value> = held_ports(cloud, &server).iter().map(interface).collect();
            Ok(Reply::ok(json!({"interfaceAttachments": all})))
        }
        ("GET", [port]) => {
            let server = find(cloud, call, id)?;
            let ports = held_ports(cloud, &server);
            let port = ports.iter().find(|it| it.text("id") == *port);
            let port = port.ok_or_else(|| {
                Fail::missing(format!("Instance {id} does not have fixed IP address. {}", rest[0]))
            })?;
            Ok(Reply::ok(json!({"interfaceAttachment": interface(port)})))
        }
        ("POST", []) => attach(cloud, call, id),
        ("DELETE", [port]) => {
            let server = own(cloud, call, id, "os-attach-interfaces:delete")?;
            let mut held = server.list("ports").to_vec();
            let Some(at) = held.iter().position(|it| it["id"] == *port) else {
                // Nova answers from its cache, which may still have the port.
                return match server.texts("detached").contains(port) {
                    true => Ok(Reply::nothing(202)),
                    false => Err(Fail::missing(format!("Port {port} not found for instance {id}"))),
                };
            };
            let gone = held.remove(at);
            cloud.set("servers", id, "ports", held);
            let mut detached: Vec<String> = server.texts("detached").into_iter().map(str::to_owned).collect();
            detached.push((*port).to_owned());
            cloud.set("servers", id, "detached", detached);
            match gone["made"] == true {
                true => ports::free(cloud, port),
                false => ports::unbind(cloud, port),
            }
            Ok(Reply::nothing(202))
        }
        _ => Err(Fail::missing("The resource could not be found.")),
    }
}

fn held_ports(cloud: &Cloud, server: &Object) -> Vec<Object> {
    server.list("ports").iter().filter_map(|it| cloud.get("ports", it["id"].as_str()?).cloned()).collect()
}

fn attach(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let uuid = json!({"type": "string", "format": "uuid"});
    let given = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"net_id": uuid, "port_id": uuid, "fixed_ips": {"type": "array", "minItems": 1, "maxItems": 1}, "tag": {"type": "string"}},
    });
    let schema = json!({"type": "object", "properties": {"interfaceAttachment": given}});
    let body = body(call, &schema)?;
    let server = own(cloud, call, id, "os-attach-interfaces:create")?;
    let mut ask = body.object("interfaceAttachment").cloned().unwrap_or_default();
    if ask.contains_key("net_id") && ask.contains_key("port_id") {
        return Err(Fail::bad("Must not input both network_id and port_id"));
    }
    if ask.contains_key("fixed_ips") && !ask.contains_key("net_id") {
        return Err(Fail::bad("Must input network_id when request IP address"));
    }
    if server.text("vm_state") == "building" || server.text("host").is_empty() {
        return Err(super::not_ready(id));
    }
    let (port, made) = match ask.get("port_id").and_then(Value::as_str) {
        Some(port) => {
            let row = cloud.get("ports", port).filter(|it| it.text("project_id") == server.text("tenant_id"));
            let row = row.ok_or_else(|| Fail::missing(format!("Port id {port} could not be found.")))?;
            if !row.text("device_id").is_empty() {
                return Err(Fail::conflict(format!("Port {port} is still in use.")));
            }
            (port.to_owned(), false)
        }
        None => {
            if !ask.contains_key("net_id") {
                let network = held_ports(cloud, &server).first().map(|it| it["network_id"].clone());
                ask.insert("net_id".to_owned(), network.unwrap_or_default());
            }
            if cloud.get("networks", ask.text("net_id")).is_none() {
                let text = "Unexpected API Error. Please report this at http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\n<class 'oslo_messaging.rpc.client.RemoteError'>";
                return Err(Fail::new(500, "", text));
            }
            let port = build::new_port(cloud, &server, &Value::Object(ask)).map_err(Fail::bad)?;
            (port, true)
        }
    };
    ports::bind(cloud, &port, id, &format!("compute:{}", server.text("zone")), server.text("host"));
    let mut held = server.list("ports").to_vec();
    held.push(json!({"id": port, "made": made}));
    cloud.set("servers", id, "ports", held);
    let row = cloud.get("ports", &port).cloned().unwrap_or_default();
    Ok(Reply::ok(json!({"interfaceAttachment": interface(&row)})))
}

fn attachment(call: &Call, server: &str, it: &Value) -> Value {
    let mut shown = json!({"serverId": server, "volumeId": it["id"], "device": it["device"]});
    if !call.at_least(89) {
        shown["id"] = it["id"].clone();
    }
    if call.at_least(70) {
        shown["tag"] = it["tag"].clone();
    }
    if call.at_least(79) {
        shown["delete_on_termination"] = it["delete_on_termination"].clone();
    }
    if call.at_least(89) {
        shown["attachment_id"] = it["attachment_id"].clone();
        shown["bdm_uuid"] = it["bdm_uuid"].clone();
    }
    shown
}

pub(super) fn volumes(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    match (call.method.as_str(), rest) {
        ("GET", []) => {
            let server = find(cloud, call, id)?;
            let all: Vec<Value> = server.list("volumes").iter().map(|it| attachment(call, id, it)).collect();
            Ok(Reply::ok(json!({"volumeAttachments": all})))
        }
        ("GET", [volume]) => {
            let server = find(cloud, call, id)?;
            let found = server.list("volumes").iter().find(|it| it["id"] == *volume);
            let text = format!("Instance {id} is not attached to volume {volume}");
            let found = found.ok_or_else(|| Fail::missing(text))?;
            Ok(Reply::ok(json!({"volumeAttachment": attachment(call, id, found)})))
        }
        ("POST", []) => attach_volume(cloud, call, id),
        ("DELETE", [volume]) => detach(cloud, call, id, volume),
        _ => Err(Fail::missing("The resource could not be found.")),
    }
}

fn attach_volume(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let mut given = json!({
        "type": "object", "required": ["volumeId"], "additionalProperties": false,
        "properties": {"volumeId": {"type": "string", "format": "uuid"}, "device": {"type": ["string", "null"]}},
    });
    if call.at_least(49) {
        given["properties"]["tag"] = json!({"type": "string"});
    }
    if call.at_least(79) {
        given["properties"]["delete_on_termination"] = json!({"type": "boolean"});
    }
    let schema = json!({"type": "object", "required": ["volumeAttachment"], "properties": {"volumeAttachment": given}});
    let body = body(call, &schema)?;
    let server = own(cloud, call, id, "os-volumes-attachments:create")?;
    let given = body.object("volumeAttachment").cloned().unwrap_or_default();
    let volume = given.text("volumeId").to_owned();
    if server.text("vm_state") == "building" || server.text("host").is_empty() {
        return Err(super::not_ready(id));
    }
    let row = cloud
        .get("volumes", &volume)
        .filter(|it| call.caller.is_admin() || it.text("_project") == call.caller.project());
    let row = row.cloned().ok_or_else(|| Fail::missing(format!("Volume {volume} could not be found.")))?;
    let holders: Vec<&str> =
        row.list("attachments").iter().filter_map(|it| it["server_id"].as_str()).collect();
    if server.list("volumes").iter().any(|it| it["id"] == volume.as_str())
        || (!holders.is_empty() && !row.flag("multiattach"))
    {
        let holders = if holders.is_empty() { id.to_owned() } else { holders.join(", ") };
        return Err(Fail::bad(format!(
            "Invalid volume: volume {volume} is already attached to instances: {holders}"
        )));
    }
    if row.text("status") != "available" && !(row.flag("multiattach") && row.text("status") == "in-use") {
        return Err(Fail::bad(format!(
            "Invalid volume: volume '{volume}' status must be 'available'. Currently in '{}'",
            row.text("status")
        )));
    }
    let device = cinder::next_device(&server);
    cloud.set("volumes", &volume, "status", "reserved");
    let held = json!({
        "id": volume, "device": device, "delete_on_termination": given.flag("delete_on_termination"),
        "tag": given.get("tag").cloned().unwrap_or_default(), "attachment_id": cloud.uuid(), "bdm_uuid": cloud.uuid(), "root": false,
    });
    let mut volumes = server.list("volumes").to_vec();
    volumes.push(held.clone());
    cloud.set("servers", id, "volumes", volumes);
    let after = cloud.settings.timings.power;
    cloud.later(after / 2, Task::VolumeStatus { id: volume.clone(), status: "attaching".to_owned() });
    cloud.later(after, Task::VolumeAttached { id: volume, server: id.to_owned(), device });
    Ok(Reply::ok(json!({"volumeAttachment": attachment(call, id, &held)})))
}

fn detach(cloud: &mut Cloud, call: &Call, id: &str, volume: &str) -> Handled {
    let server = own(cloud, call, id, "os-volumes-attachments:delete")?;
    let Some(held) = server.list("volumes").iter().find(|it| it["id"] == volume) else {
        if cloud.get("volumes", volume).is_none() {
            return Err(Fail::missing(format!("Volume {volume} could not be found.")));
        }
        return Err(Fail::bad(format!(
            "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach. (HTTP 400) (Request-ID: {})",
            call.request_id
        )));
    };
    if held["root"] == true {
        return Err(Fail::bad("Cannot detach a root device volume"));
    }
    if cloud.get("volumes", volume).is_some_and(|it| it.text("status") != "in-use") {
        return Err(Fail::bad(format!(
            "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach. (HTTP 400) (Request-ID: {})",
            call.request_id
        )));
    }
    cloud.set("volumes", volume, "status", "detaching");
    let after = cloud.settings.timings.power;
    cloud.later(after, Task::VolumeDetached { id: volume.to_owned(), server: id.to_owned() });
    Ok(Reply::nothing(202))
}

/// A volume leaves its server.
pub(crate) fn detach_volume(cloud: &mut Cloud, server: &str, volume: &str) {
    let held = cloud.get("servers", server).map(|it| it.list("volumes").to_vec()).unwrap_or_default();
    let kept: Vec<Value> = held.into_iter().filter(|it| it["id"] != volume).collect();
    cloud.set("servers", server, "volumes", kept);
}
