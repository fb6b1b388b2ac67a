//! Volumes.

use serde_json::{Value, json};

use super::{MALFORMED, absent, body, find, quotas, zones};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply, validate};
use crate::work::Task;

pub(super) fn links(call: &Call, kind: &str, id: &str) -> Value {
    let project = call.caller.project();
    json!([
        {"rel": "self", "href": format!("{}/v3/{project}/{kind}/{id}", call.base)},
        {"rel": "bookmark", "href": format!("{}/{project}/{kind}/{id}", call.base)},
    ])
}

pub(super) fn brief(call: &Call, it: &Object) -> Value {
    json!({"id": it["id"], "name": it["name"], "links": links(call, "volumes", it.text("id"))})
}

/// A volume as a create or an update answers it.
fn basic(call: &Call, it: &Object) -> Value {
    let mut shown = json!({"links": links(call, "volumes", it.text("id"))});
    let fields = [
        "id",
        "status",
        "size",
        "availability_zone",
        "created_at",
        "updated_at",
        "name",
        "description",
        "volume_type",
        "snapshot_id",
        "source_volid",
        "metadata",
        "user_id",
        "bootable",
        "encrypted",
        "replication_status",
        "consistencygroup_id",
        "multiattach",
        "attachments",
    ];
    for field in fields {
        shown[field] = it.get(field).cloned().unwrap_or_default();
    }
    if call.at_least(13) {
        shown["group_id"] = Value::Null;
    }
    if call.at_least(21) {
        shown["provider_id"] = Value::Null;
        if !call.caller.is_admin()
            && let Some(shown) = shown.as_object_mut()
        {
            shown.remove("provider_id");
        }
    }
    if call.at_least(48) {
        shown["shared_targets"] = json!(if call.at_least(69) { Value::Bool(false) } else { json!(true) });
        shown["service_uuid"] = it["_service"].clone();
    }
    if call.at_least(61) && call.caller.is_admin() {
        shown["cluster_name"] = Value::Null;
    }
    if call.at_least(63) {
        shown["volume_type_id"] = it["_type"].clone();
    }
    if call.at_least(65) {
        shown["consumes_quota"] = json!(true);
    }
    shown
}

pub(super) fn detail(call: &Call, it: &Object) -> Value {
    let mut shown = basic(call, it);
    shown["os-vol-tenant-attr:tenant_id"] = it["_project"].clone();
    if it.has("volume_image_metadata") && it.text("status") != "creating" {
        shown["volume_image_metadata"] = it["volume_image_metadata"].clone();
    }
    if call.caller.is_admin() {
        shown["migration_status"] = Value::Null;
        shown["os-vol-mig-status-attr:migstat"] = Value::Null;
        shown["os-vol-mig-status-attr:name_id"] = Value::Null;
        shown["os-vol-host-attr:host"] = json!("cinder@sim#sim");
    }
    shown
}

pub(super) fn summary(cloud: &Cloud, call: &Call) -> Reply {
    let own = cloud.all("volumes").filter(|it| it.text("_project") == call.caller.project());
    let (count, size) = own.fold((0, 0), |(count, size), it| (count + 1, size + it.number("size")));
    Reply::ok(json!({"volume-summary": {"total_size": size, "total_count": count}}))
}

fn schema() -> Value {
    let number = json!({"type": ["integer", "string", "null"], "pattern": "^[0-9]+$", "minimum": 1});
    let text = json!({"type": ["string", "null"], "maxLength": 255});
    let uuid = json!({"type": ["string", "null"], "format": "uuid"});
    json!({"type": "object", "properties": {
        "size": number, "name": text, "description": {"type": ["string", "null"]},
        "availability_zone": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
        "snapshot_id": uuid, "source_volid": uuid, "volume_type": {"type": ["string", "object", "null"], "maxLength": 255},
        "imageRef": {"type": ["string", "null"], "maxLength": 255}, "metadata": {"type": ["object", "null"]},
    }})
}

pub(super) fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let given = body(call, "volume")?;
    validate("volume", &Value::Object(given.clone()), &schema()).map_err(Fail::bad)?;
    let size = given.get("size").and_then(|it| it.as_i64().or_else(|| it.as_str()?.parse().ok()));
    let source = match (
        given.get("snapshot_id").and_then(Value::as_str),
        given.get("source_volid").and_then(Value::as_str),
    ) {
        (Some(id), _) => Some(find(cloud, call, "snapshots", id)?),
        (None, Some(id)) => Some(find(cloud, call, "volumes", id)?),
        _ => None,
    };
    let Some(size) = size.or(source.as_ref().map(|it| it.number("size"))) else {
        return Err(Fail::bad(MALFORMED));
    };
    if let Some(source) = source.as_ref().filter(|it| size < it.number("size")) {
        let word = if given.has("snapshot_id") { "snapshot" } else { "source volume" };
        let held = source.number("size");
        return Err(Fail::bad(format!(
            "Invalid input received: Volume size '{size}'GB cannot be smaller than the {word} size {held}GB. They must be >= original {word} size."
        )));
    }
    let zone = given.text("availability_zone");
    let zones = zones(cloud);
    if !zone.is_empty() && !zones.iter().any(|it| it == zone) {
        return Err(Fail::bad(format!("Availability zone '{zone}' is invalid.")));
    }
    let kind = given.text("volume_type");
    let kind = if kind.is_empty() { "__DEFAULT__" } else { kind };
    let found =
        cloud.all("volume_types").find(|it| it.text("name") == kind || it.text("id") == kind).cloned();
    let text = match crate::neutron::is_id(kind) {
        true => format!("Volume type {kind} could not be found."),
        false => format!("Volume type with name {kind} could not be found."),
    };
    let kind = found.ok_or_else(|| Fail::missing(text))?;
    let image = match given
        .get("imageRef")
        .or(given.get("image_id"))
        .and_then(Value::as_str)
        .filter(|it| !it.is_empty())
    {
        None => None,
        Some(id) => {
            let found = cloud.get("images", id).filter(|it| {
                it.text("owner") == call.caller.project()
                    || matches!(it.text("visibility"), "public" | "community")
            });
            let text = "Invalid image identifier or unable to access requested image.";
            let image = found.cloned().ok_or_else(|| Fail::bad(text))?;
            if image.number("min_disk") > size {
                return Err(Fail::bad(format!(
                    "Invalid input received: Volume size {size}GB cannot be smaller than the image minDisk size {}GB.",
                    image.number("min_disk")
                )));
            }
            Some(image)
        }
    };
    quotas::check(cloud, call.caller.project(), size)?;
    let zone = if zone.is_empty() {
        zones.first().cloned().unwrap_or_else(|| "nova".to_owned())
    } else {
        zone.to_owned()
    };
    let row =
        volume(cloud, call.caller.project(), &call.caller.user, &given, size, &zone, &kind, image.as_ref());
    let shown = basic(call, &row);
    let id = row.text("id").to_owned();
    cloud.put("volumes", row);
    let after = cloud.settings.timings.volume;
    cloud.later(after, Task::VolumeStatus { id, status: "available".to_owned() });
    Ok(Reply::json(202, json!({"volume": shown})))
}

/// A new volume, still to be created.
#[expect(clippy::too_many_arguments, reason = "two callers that have all of it at hand")]
pub(super) fn volume(
    cloud: &Cloud,
    project: &str,
    user: &str,
    given: &Object,
    size: i64,
    zone: &str,
    kind: &Object,
    image: Option<&Object>,
) -> Object {
    let mut row = object(json!({
        "id": cloud.uuid(), "status": "creating", "size": size, "availability_zone": zone,
        "created_at": cloud.micros(), "updated_at": null, "name": given.get("name").cloned().unwrap_or_default(),
        "description": given.get("description").cloned().unwrap_or_default(), "volume_type": kind["name"],
        "snapshot_id": given.get("snapshot_id").cloned().unwrap_or_default(),
        "source_volid": given.get("source_volid").cloned().unwrap_or_default(),
        "metadata": given.get("metadata").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({})),
        "user_id": user, "bootable": "false", "encrypted": false, "replication_status": null,
        "consistencygroup_id": null, "multiattach": given.flag("multiattach"), "attachments": [],
        "_project": project, "_type": kind["id"], "_service": "0b0d59fc-57b7-4f94-b584-5875bbabece9",
    }));
    if let Some(image) = image {
        let mut metadata = Object::new();
        for (name, value) in image.iter().filter(|(name, _)| !name.starts_with('_')) {
            if !crate::glance::BASE.contains(&name.as_str()) {
                metadata.insert(name.clone(), value.clone());
            }
        }
        for (name, field) in [
            ("image_id", "id"),
            ("image_name", "name"),
            ("checksum", "checksum"),
            ("container_format", "container_format"),
            ("disk_format", "disk_format"),
            ("min_disk", "min_disk"),
            ("min_ram", "min_ram"),
            ("size", "size"),
        ] {
            let value = image.get(field).map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            metadata.insert(name.to_owned(), json!(value));
        }
        row.insert("_image".to_owned(), image["id"].clone());
        row.insert("volume_image_metadata".to_owned(), Value::Object(metadata));
    }
    row
}

pub(super) fn update(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let given = body(call, "volume")?;
    find(cloud, call, "volumes", id)?;
    for name in ["name", "description", "metadata"] {
        if let Some(value) = given.get(name) {
            cloud.set("volumes", id, name, value.clone());
        }
    }
    let row = find(cloud, call, "volumes", id)?;
    Ok(Reply::ok(json!({"volume": basic(call, &row)})))
}

pub(super) fn delete(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let row = find(cloud, call, "volumes", id)?;
    let status = row.text("status").to_owned();
    let has_snapshots = cloud.all("snapshots").any(|it| it.text("volume_id") == id);
    if !matches!(
        status.as_str(),
        "available" | "error" | "error_restoring" | "error_extending" | "error_managing" | "creating"
    ) || has_snapshots
        || !row.list("attachments").is_empty()
    {
        return Err(Fail::bad(format!(
            "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer. Volume ID: {id} Status: {status}"
        ).split(" Volume ID:").next().unwrap_or_default().to_owned()));
    }
    if status == "creating" {
        // Nothing was made yet.
        cloud.remove("volumes", id);
        return Ok(Reply::html(202));
    }
    cloud.set("volumes", id, "status", "deleting");
    let after = cloud.settings.timings.volume;
    cloud.later(after, Task::VolumeStatus { id: id.to_owned(), status: "gone".to_owned() });
    Ok(Reply::html(202))
}

pub(super) fn metadata(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    let row = find(cloud, call, "volumes", id)?;
    let mut held = row.object("metadata").cloned().unwrap_or_default();
    let missing = |key: &str| Fail::missing(format!("Volume {id} has no metadata with key {key}."));
    let reply = match (call.method.as_str(), rest) {
        ("GET", []) => return Ok(Reply::ok(json!({"metadata": held}))),
        ("GET", [key]) => {
            let value = held.get(*key).ok_or_else(|| missing(key))?;
            return Ok(Reply::ok(json!({"meta": {*key: value}})));
        }
        ("POST" | "PUT", []) => {
            let given = body(call, "metadata")?;
            if call.method == "PUT" {
                held.clear();
            }
            held.extend(given);
            Reply::ok(json!({"metadata": held}))
        }
        ("PUT", [key]) => {
            let given = body(call, "meta")?;
            let value = given.get(*key).ok_or_else(|| Fail::bad("Request body and URI mismatch"))?;
            held.insert((*key).to_owned(), value.clone());
            Reply::ok(json!({"meta": {*key: value}}))
        }
        ("DELETE", [key]) => {
            held.remove(*key).ok_or_else(|| missing(key))?;
            Reply::html(200)
        }
        _ => return Err(absent("volumes", id)),
    };
    cloud.set("volumes", id, "metadata", held);
    Ok(reply)
}
