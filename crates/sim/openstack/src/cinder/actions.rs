//! Actions on volumes, and what Nova does with them.

use serde_json::{Value, json};

use super::{find, policy, volumes};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};
use crate::work::Task;

pub(super) fn act(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let body = match call.json() {
        Some(Value::Object(body)) if body.len() == 1 => body,
        _ => return Err(Fail::bad("Malformed request body")),
    };
    let (name, argument) = body.into_iter().next().unwrap_or_default();
    let known = [
        "os-extend",
        "os-reset_status",
        "os-force_delete",
        "os-set_bootable",
        "os-update_readonly_flag",
        "os-attach",
        "os-detach",
        "os-reserve",
        "os-unreserve",
        "os-begin_detaching",
        "os-roll_detaching",
        "os-retype",
        "os-set_image_metadata",
        "os-force_detach",
    ];
    if !known.contains(&name.as_str()) {
        let text = format!(
            "There is no such action: {name}. Verify the request body and Content-Type header and try again."
        );
        return Err(Fail::bad(text));
    }
    let row = find(cloud, call, "volumes", id)?;
    let done = || Ok(Reply::nothing(202));
    let admin_only = |rule: &str| match call.caller.is_admin() {
        true => Ok(()),
        false => Err(policy(&format!("volume_extension:volume_admin_actions:{rule}"))),
    };
    match name.as_str() {
        "os-extend" => extend(cloud, call, &row, &argument),
        "os-reset_status" => {
            admin_only("reset_status")?;
            let status = argument["status"].as_str().unwrap_or("error");
            if status == "in-use" && row.list("attachments").is_empty() {
                let text = "Cannot reset-state to in-use because volume does not have any attachments.";
                return Err(Fail::bad(text));
            }
            cloud.set("volumes", id, "status", status);
            done()
        }
        "os-force_delete" => {
            admin_only("force_delete")?;
            cloud.remove("volumes", id);
            done()
        }
        "os-force_detach" => {
            admin_only("force_detach")?;
            cloud.set("volumes", id, "attachments", json!([]));
            cloud.set("volumes", id, "status", "available");
            done()
        }
        "os-set_bootable" => {
            let bootable = argument["bootable"] == true || argument["bootable"] == "true";
            cloud.set("volumes", id, "bootable", if bootable { "true" } else { "false" });
            Ok(Reply::nothing(200))
        }
        _ => done(),
    }
}

fn extend(cloud: &mut Cloud, call: &Call, row: &Object, argument: &Value) -> Handled {
    let id = row.text("id");
    let size = argument["new_size"].as_i64().or_else(|| argument["new_size"].as_str()?.parse().ok());
    let size = size.ok_or_else(|| Fail::bad("'new_size' is a required property"))?;
    let status = row.text("status");
    let allowed = status == "available" || (status == "in-use" && call.at_least(42));
    if !allowed {
        return Err(Fail::bad(format!(
            "Invalid volume: Volume {id} status must be '{{'status': 'available'}}' to extend, currently {status}."
        )));
    }
    if size <= row.number("size") {
        return Err(Fail::bad(format!(
            "Invalid input received: New size for extend must be greater than current size. (current: {}, extended: {size}).",
            row.number("size")
        )));
    }
    super::quotas::check_growth(cloud, call.caller.project(), size - row.number("size"))?;
    let back = status.to_owned();
    cloud.set("volumes", id, "status", "extending");
    cloud.set("volumes", id, "size", size);
    let after = cloud.settings.timings.volume;
    cloud.later(after, Task::VolumeStatus { id: id.to_owned(), status: back });
    Ok(Reply::nothing(202))
}

/// The next free device name of a server.
pub(crate) fn next_device(server: &Object) -> String {
    let used: Vec<&str> = server.list("volumes").iter().filter_map(|it| it["device"].as_str()).collect();
    let first = if server.text("image").is_empty() { b'a' } else { b'b' };
    let free = (first..=b'z')
        .map(|letter| format!("/dev/sd{}", char::from(letter)))
        .find(|it| !used.contains(&it.as_str()));
    free.unwrap_or_else(|| "/dev/sdz".to_owned())
}

/// A volume is attached to a server.
pub(crate) fn attached(cloud: &mut Cloud, id: &str, server: &str, device: &str) {
    if cloud.get("servers", server).is_none_or(|it| it.text("vm_state") == "deleted")
        || cloud.get("volumes", id).is_none()
    {
        return;
    }
    let now = cloud.naive() + ".000000";
    let held = cloud
        .get("servers", server)
        .and_then(|it| it.list("volumes").iter().find(|it| it["id"] == id).cloned());
    let attachment = held.map_or_else(|| json!(cloud.uuid()), |it| it["attachment_id"].clone());
    let row = json!({
        "id": id, "attachment_id": attachment, "volume_id": id, "server_id": server, "host_name": null, "device": device,
        "attached_at": now,
    });
    if let Some(volume) = cloud.get_mut("volumes", id) {
        if let Some(Value::Array(all)) = volume.get_mut("attachments") {
            all.push(row);
        }
        volume.insert("status".to_owned(), json!("in-use"));
        volume.insert("updated_at".to_owned(), json!(now));
    }
}

/// A volume is taken off a server.
pub(crate) fn detached(cloud: &mut Cloud, id: &str, server: &str) {
    if let Some(volume) = cloud.get_mut("volumes", id) {
        let mut free = true;
        if let Some(Value::Array(all)) = volume.get_mut("attachments") {
            all.retain(|it| it["server_id"] != server);
            free = all.is_empty();
        }
        if free {
            volume.insert("status".to_owned(), json!("available"));
        }
    }
    crate::nova::detach_volume(cloud, server, id);
}

/// What a server keeps of a volume.
fn hold(cloud: &mut Cloud, server: &str, device: &Value, volume: &str) -> String {
    let row = cloud.get("servers", server).cloned().unwrap_or_default();
    let name = next_device(&row);
    let index = device.get("boot_index").and_then(|it| it.as_i64().or_else(|| it.as_str()?.parse().ok()));
    let held = json!({
        "id": volume, "device": name, "delete_on_termination": device["delete_on_termination"] == true,
        "tag": device.get("tag").cloned().unwrap_or_default(), "attachment_id": cloud.uuid(), "bdm_uuid": cloud.uuid(),
        "root": index == Some(0),
    });
    let mut all = row.list("volumes").to_vec();
    all.push(held);
    cloud.set("servers", server, "volumes", all);
    name
}

fn given_volumes(cloud: &Cloud, server: &str) -> Vec<Value> {
    let devices = cloud.get("servers", server).map(|it| it.list("devices").to_vec()).unwrap_or_default();
    devices.into_iter().filter(|it| it["source_type"] == "volume").collect()
}

/// Volumes that a server is created with are its own from now on.
pub(crate) fn reserve_devices(cloud: &mut Cloud, server: &str) {
    for device in given_volumes(cloud, server) {
        cloud.set("volumes", device["uuid"].as_str().unwrap_or_default(), "status", "reserved");
    }
}

/// A server that has a host shows them.
pub(crate) fn hold_devices(cloud: &mut Cloud, server: &str) {
    for device in given_volumes(cloud, server) {
        hold(cloud, server, &device, device["uuid"].as_str().unwrap_or_default());
    }
}

/// Volumes that a server boots from or comes with: made or attached.
pub(crate) fn attach_devices(cloud: &mut Cloud, server: &Object) -> Result<(), String> {
    let id = server.text("id").to_owned();
    for device in server.list("devices") {
        let source = device["source_type"].as_str().unwrap_or_default();
        let destination = device["destination_type"].as_str().unwrap_or(if source == "volume" {
            "volume"
        } else {
            "local"
        });
        if destination != "volume" {
            continue;
        }
        let (volume, name) = if source == "volume" {
            let volume = device["uuid"].as_str().unwrap_or_default().to_owned();
            let row = cloud.get("servers", &id).cloned().unwrap_or_default();
            let held = row.list("volumes").iter().find(|it| it["id"] == volume.as_str());
            let name = held.and_then(|it| it["device"].as_str()).unwrap_or("/dev/sda").to_owned();
            (volume, name)
        } else {
            let volume = new_volume(cloud, server, device)?;
            let name = hold(cloud, &id, device, &volume);
            (volume, name)
        };
        attached(cloud, &volume, &id, &name);
    }
    Ok(())
}

fn new_volume(cloud: &mut Cloud, server: &Object, device: &Value) -> Result<String, String> {
    let size = device
        .get("volume_size")
        .and_then(|it| it.as_i64().or_else(|| it.as_str()?.parse().ok()))
        .unwrap_or(1);
    let project = server.text("tenant_id").to_owned();
    super::quotas::check(cloud, &project, size).map_err(|fail| fail.message)?;
    let blank = device["source_type"] == "blank";
    let name = if blank { format!("{}-blank-vol", server.text("id")) } else { String::new() };
    let given = object(json!({"name": name, "description": "", "metadata": {}}));
    let image = device["uuid"].as_str().and_then(|it| cloud.get("images", it)).cloned();
    let wanted = device["volume_type"].as_str().unwrap_or("__DEFAULT__");
    let kind =
        cloud.all("volume_types").find(|it| it.text("name") == wanted || it.text("id") == wanted).cloned();
    let kind = kind.ok_or_else(|| format!("Volume type {wanted} could not be found."))?;
    let zone = super::zones(cloud).first().cloned().unwrap_or_default();
    let mut row =
        volumes::volume(cloud, &project, server.text("user_id"), &given, size, &zone, &kind, image.as_ref());
    let id = row.text("id").to_owned();
    if image.is_some() {
        row.insert("bootable".to_owned(), json!("true"));
    }
    cloud.put("volumes", row);
    Ok(id)
}
