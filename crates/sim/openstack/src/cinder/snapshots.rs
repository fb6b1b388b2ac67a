//! Snapshots of volumes.

use serde_json::{Value, json};

use super::{body, find, quotas};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object, shown};
use crate::wire::{Call, Fail, Handled, Reply};
use crate::work::Task;

pub(super) fn basic(call: &Call, it: &Object) -> Value {
    let mut shown = shown(it);
    shown.retain(|name, _| !name.starts_with("os-extended"));
    if call.at_least(41) {
        shown.insert("user_id".to_owned(), it["_user"].clone());
    }
    if call.at_least(65) {
        shown.insert("consumes_quota".to_owned(), json!(true));
    }
    Value::Object(shown)
}

pub(super) fn detail(call: &Call, it: &Object) -> Value {
    let mut shown = basic(call, it);
    for name in ["os-extended-snapshot-attributes:project_id", "os-extended-snapshot-attributes:progress"] {
        shown[name] = it[name].clone();
    }
    shown
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    Some(match (call.method.as_str(), rest) {
        ("POST", []) => create(cloud, call),
        ("GET", [id]) => {
            find(cloud, call, "snapshots", id).map(|it| Reply::ok(json!({"snapshot": detail(call, &it)})))
        }
        ("PUT", [id]) => update(cloud, call, id),
        ("DELETE", [id]) => delete(cloud, call, id),
        _ => return None,
    })
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let given = body(call, "snapshot")?;
    let volume = given.text("volume_id");
    if volume.is_empty() {
        return Err(Fail::bad(
            "Invalid input for field/attribute snapshot. Value: ".to_owned()
                + &crate::wire::repr(&Value::Object(given))
                + ". 'volume_id' is a required property",
        ));
    }
    let volume = find(cloud, call, "volumes", volume)?;
    let forced =
        given.get("force").is_some_and(|it| *it == json!(true) || *it == json!("true")) || call.at_least(66);
    if volume.text("status") != "available" && !(forced && volume.text("status") == "in-use") {
        return Err(Fail::bad(format!(
            "Invalid volume: Volume {} status must be available, but current status is: {}.",
            volume.text("id"),
            volume.text("status")
        )));
    }
    quotas::check_snapshots(cloud, call.caller.project(), volume.number("size"))?;
    let row = object(json!({
        "id": cloud.uuid(), "created_at": cloud.micros(), "updated_at": null,
        "name": given.get("name").cloned().unwrap_or_default(),
        "description": given.get("description").cloned().unwrap_or_default(), "volume_id": volume["id"],
        "status": "creating", "size": volume["size"],
        "metadata": given.get("metadata").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({})),
        "os-extended-snapshot-attributes:project_id": call.caller.project(),
        "os-extended-snapshot-attributes:progress": "0%", "_project": call.caller.project(), "_user": call.caller.user,
    }));
    let shown = basic(call, &row);
    let id = row.text("id").to_owned();
    cloud.put("snapshots", row);
    let after = cloud.settings.timings.volume;
    cloud.later(after, Task::SnapshotStatus { id, status: "available".to_owned() });
    Ok(Reply::json(202, json!({"snapshot": shown})))
}

fn update(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let given = body(call, "snapshot")?;
    find(cloud, call, "snapshots", id)?;
    for name in ["name", "description"] {
        if let Some(value) = given.get(name) {
            cloud.set("snapshots", id, name, value.clone());
        }
    }
    let row = find(cloud, call, "snapshots", id)?;
    Ok(Reply::ok(json!({"snapshot": basic(call, &row)})))
}

fn delete(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let row = find(cloud, call, "snapshots", id)?;
    if !matches!(row.text("status"), "available" | "error") {
        return Err(Fail::bad(format!(
            "Invalid snapshot: Snapshot status must be one of available, error, but is {}.",
            row.text("status")
        )));
    }
    cloud.set("snapshots", id, "status", "deleting");
    let after = cloud.settings.timings.volume;
    cloud.later(after, Task::SnapshotStatus { id: id.to_owned(), status: "gone".to_owned() });
    Ok(Reply::html(202))
}
