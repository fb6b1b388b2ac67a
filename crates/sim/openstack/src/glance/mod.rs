//! Glance v2: images, their data, members and tags.

mod data;
mod list;
mod members;
mod patch;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object, shown};
use crate::wire::{Call, Fail, Handled, Reply, repr};

pub(crate) use data::reach;

/// Attributes that every image has; others are custom properties.
pub(crate) const BASE: &[&str] = &[
    "id",
    "name",
    "status",
    "visibility",
    "protected",
    "checksum",
    "owner",
    "size",
    "virtual_size",
    "container_format",
    "disk_format",
    "created_at",
    "updated_at",
    "min_ram",
    "min_disk",
    "tags",
    "os_hash_algo",
    "os_hash_value",
    "os_hidden",
    "self",
    "file",
    "schema",
    "direct_url",
    "locations",
    "stores",
];
/// Attributes that Glance alone sets.
const READ_ONLY: &[&str] = &[
    "status",
    "checksum",
    "size",
    "virtual_size",
    "created_at",
    "updated_at",
    "os_hash_algo",
    "os_hash_value",
    "self",
    "file",
    "schema",
    "direct_url",
    "stores",
];
const DISK_FORMATS: &[&str] =
    &["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop"];
const CONTAINER_FORMATS: &[&str] = &["ami", "ari", "aki", "bare", "ovf", "ova", "docker", "compressed"];

pub(crate) fn versions(call: &Call) -> Option<Reply> {
    let status = match call.segments().as_slice() {
        [] => 300,
        ["versions"] => 200,
        _ => return None,
    };
    let minors = [15, 13, 12, 11, 10, 9, 8, 17, 7, 6, 5, 4, 3, 2, 1, 0];
    let all: Vec<Value> = minors
        .iter()
        .map(|minor| {
            let status = if *minor == 17 { "CURRENT" } else { "SUPPORTED" };
            let link = json!([{"rel": "self", "href": format!("{}/v2/", call.base)}]);
            json!({"id": format!("v2.{minor}"), "status": status, "links": link})
        })
        .collect();
    Some(Reply::json(status, json!({"versions": all})))
}

pub(crate) fn handle(cloud: &mut Cloud, call: &Call) -> Handled {
    let path = call.segments();
    let Some((&"v2", path)) = path.split_first() else { return Err(unknown_path()) };
    match (call.method.as_str(), path) {
        ("GET", ["images"]) => list::list(cloud, call),
        ("POST", ["images"]) => create(cloud, call),
        ("GET", ["images", id]) => visible(cloud, call, id).map(|it| Reply::ok(Value::Object(show(&it)))),
        ("PATCH", ["images", id]) => patch::patch(cloud, call, id),
        ("DELETE", ["images", id]) => delete(cloud, call, id),
        ("GET" | "PUT", ["images", id, "file"]) => data::file(cloud, call, id),
        ("PUT", ["images", id, "stage"]) => data::stage(cloud, call, id),
        ("POST", ["images", id, "import"]) => data::import(cloud, call, id),
        ("GET", ["images", id, "tasks"]) => data::tasks(cloud, call, id),
        ("POST", ["images", id, "actions", action]) => data::act(cloud, call, id, action),
        ("PUT" | "DELETE", ["images", id, "tags", tag]) => tag_image(cloud, call, id, tag),
        (_, ["images", id, "members", rest @ ..]) => members::handle(cloud, call, id, rest),
        ("GET", ["info", "import"]) => Ok(Reply::ok(json!({"import-methods": {
            "description": "Import methods available.", "type": "array",
            "value": cloud.settings.import_methods,
        }}))),
        ("GET", ["info", "stores"]) => Ok(Reply::ok(json!({"stores": [{"id": "file", "default": "true"}]}))),
        ("GET", ["info", "usage"]) => Ok(Reply::ok(json!({"usage": {}}))),
        ("GET", ["schemas", "image"]) => Ok(Reply::ok(json!({
            "name": "image", "properties": schema(), "additionalProperties": {"type": "string"},
            "links": [
                {"rel": "self", "href": "{self}"}, {"rel": "enclosure", "href": "{file}"},
                {"rel": "describedby", "href": "{schema}"},
            ],
        }))),
        _ => Err(unknown_path()),
    }
}

fn unknown_path() -> Fail {
    Fail::missing("The resource could not be found.")
}

/// Errors in Glance's shape.
pub(crate) fn refuse(fail: Fail) -> Reply {
    if let Some(reply) = fail.reply {
        return *reply;
    }
    let title = match fail.status {
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let message = match fail.kind {
        // The text already says where the break is.
        "whole" => fail.message,
        _ => format!("{}<br /><br />\n\n\n", fail.message),
    };
    let body = json!({"message": message, "code": format!("{} {title}", fail.status), "title": title});
    Reply::json(fail.status, body)
}

fn denied(action: &str) -> Fail {
    Fail::forbidden(format!("You are not authorized to complete {action} action."))
}

fn absent(id: &str) -> Fail {
    Fail::missing(format!("No image found with ID {id}"))
}

fn is_member(cloud: &Cloud, image: &str, project: &str) -> bool {
    cloud.all("image_members").any(|it| it.text("image_id") == image && it.text("member_id") == project)
}

fn visible(cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
    let project = call.caller.project();
    let found = cloud.get("images", id).filter(|it| {
        call.caller.is_admin()
            || it.text("owner") == project
            || matches!(it.text("visibility"), "public" | "community")
            || (it.text("visibility") == "shared" && is_member(cloud, id, project))
    });
    found.cloned().ok_or_else(|| absent(id))
}

/// An image that the caller may change.
fn own(cloud: &Cloud, call: &Call, id: &str, action: &str) -> Result<Object, Fail> {
    let found = visible(cloud, call, id)?;
    let owner = call.caller.is_admin() || found.text("owner") == call.caller.project();
    if !owner || !call.caller.is_member() {
        return Err(denied(action));
    }
    Ok(found)
}

fn show(image: &Object) -> Object {
    let mut shown = shown(image);
    let id = image.text("id");
    shown.insert("self".to_owned(), json!(format!("/v2/images/{id}")));
    shown.insert("file".to_owned(), json!(format!("/v2/images/{id}/file")));
    shown.insert("schema".to_owned(), json!("/v2/schemas/image"));
    if image.has("os_hash_value") {
        shown.insert("stores".to_owned(), json!("file"));
    }
    shown
}

fn schema() -> Value {
    let mut disk: Vec<Value> = vec![Value::Null];
    disk.extend(DISK_FORMATS.iter().map(|it| json!(it)));
    let mut container: Vec<Value> = vec![Value::Null];
    container.extend(CONTAINER_FORMATS.iter().map(|it| json!(it)));
    json!({
        "id": {"type": "string", "description": "An identifier for the image",
            "pattern": "^([0-9a-fA-F]){8}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){4}-([0-9a-fA-F]){12}$"},
        "name": {"type": ["null", "string"], "description": "Descriptive name for the image", "maxLength": 255},
        "status": {"type": "string", "readOnly": true, "description": "Status of the image",
            "enum": ["queued", "saving", "active", "killed", "deleted", "uploading", "importing", "pending_delete", "deactivated"]},
        "visibility": {"type": "string", "description": "Scope of image accessibility",
            "enum": ["community", "public", "private", "shared"]},
        "protected": {"type": "boolean", "description": "If true, image will not be deletable."},
        "os_hidden": {"type": "boolean", "description": "If true, image will not appear in default image list response."},
        "owner": {"type": ["null", "string"], "description": "Owner of the image", "maxLength": 255},
        "container_format": {"type": ["null", "string"], "description": "Format of the container", "enum": container},
        "disk_format": {"type": ["null", "string"], "description": "Format of the disk", "enum": disk},
        "min_ram": {"type": "integer", "description": "Amount of ram (in MB) required to boot image."},
        "min_disk": {"type": "integer", "description": "Amount of disk space (in GB) required to boot image."},
        "tags": {"type": "array", "description": "List of strings related to the image",
            "items": {"type": "string", "maxLength": 255}},
    })
}

/// A schema as Python prints it over several lines.
fn print_schema(schema: &Value) -> String {
    let order = ["type", "description", "enum", "pattern", "maxLength", "items"];
    let parts: Vec<String> =
        order.iter().filter_map(|name| Some(format!("'{name}': {}", repr(schema.get(*name)?)))).collect();
    let text = format!("{{{}}}", parts.join(", "));
    if text.len() < 76 { text } else { format!("{{{}}}", parts.join(",\n     ")) }
}

fn check(given: &Object) -> Result<(), Fail> {
    let schema = schema();
    for (name, value) in given {
        let (at, expected) = match schema.get(name) {
            Some(expected) => (format!("schema['properties']['{name}']"), expected.clone()),
            None => ("schema['additionalProperties']".to_owned(), json!({"type": "string"})),
        };
        let Err(why) = crate::wire::validate("", value, &expected) else { continue };
        let word = match () {
            () if why.contains("is not of type") => "type",
            () if why.contains("is not one of") => "enum",
            () if why.contains("does not match") => "pattern",
            () => "maxLength",
        };
        return Err(Fail::bad(format!(
            "Provided object does not match schema 'image': {why}\n\nFailed validating '{word}' in {at}:\n    {}\n\nOn instance['{name}']:\n    {}",
            print_schema(&expected),
            repr(value)
        )));
    }
    Ok(())
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    if call.body.is_empty() {
        return Err(Fail::bad("Body expected in request."));
    }
    let Some(Value::Object(given)) = call.json() else {
        return Err(Fail::bad("Malformed JSON in request body."));
    };
    for name in given.keys() {
        if READ_ONLY.contains(&name.as_str()) {
            return Err(Fail::forbidden(format!("Attribute '{name}' is read-only.")));
        }
    }
    check(&given)?;
    if !call.caller.is_member() {
        return Err(denied("add_image"));
    }
    if given.text("visibility") == "public" && !call.caller.is_admin() {
        return Err(denied("publicize_image"));
    }
    if given.has("owner") && given.text("owner") != call.caller.project() && !call.caller.is_admin() {
        return Err(Fail::forbidden(
            "You are not permitted to create images owned by '".to_owned() + given.text("owner") + "'.",
        ));
    }
    let id = given.get("id").and_then(Value::as_str).map_or_else(|| cloud.uuid(), str::to_owned);
    if cloud.get("images", &id).is_some() || cloud.get("deleted_images", &id).is_some() {
        return Err(Fail::conflict(format!("Image ID {id} already exists!")));
    }
    let mut row = object(json!({
        "name": null, "disk_format": null, "container_format": null, "visibility": "shared", "size": null,
        "virtual_size": null, "status": "queued", "checksum": null, "protected": false, "min_ram": 0, "min_disk": 0,
        "owner": call.caller.project(), "os_hidden": false, "os_hash_algo": null, "os_hash_value": null,
        "created_at": cloud.stamp(), "updated_at": cloud.stamp(), "tags": [],
    }));
    row.extend(given);
    row.insert("id".to_owned(), json!(id));
    let kubernetes = row.get("kube_version").cloned();
    row.insert("_kubernetes".to_owned(), kubernetes.unwrap_or_default());
    cloud.put("images", row.clone());
    Ok(Reply::json(201, Value::Object(show(&row)))
        .with("location", format!("{}/v2/images/{id}", call.base))
        .with("openstack-image-import-methods", cloud.settings.import_methods.join(","))
        .with("openstack-image-store-ids", "file,os_glance_staging_store,os_glance_tasks_store"))
}

fn delete(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let image = own(cloud, call, id, "delete_image")?;
    if image.flag("protected") {
        return Err(Fail::forbidden(format!("Image {id} is protected and cannot be deleted.")));
    }
    cloud.remove("images", id);
    cloud.table_mut("image_members").retain(|it| it.text("image_id") != id);
    cloud.put("deleted_images", object(json!({"id": id})));
    Ok(Reply::html(204))
}

fn tag_image(cloud: &mut Cloud, call: &Call, id: &str, tag: &str) -> Handled {
    let image = own(cloud, call, id, "modify_image")?;
    let mut tags: Vec<String> = image.texts("tags").into_iter().map(str::to_owned).collect();
    let held = tags.iter().any(|it| it == tag);
    match (call.method.as_str(), held) {
        ("PUT", false) => tags.push(tag.to_owned()),
        ("DELETE", true) => tags.retain(|it| it != tag),
        ("DELETE", false) => return Err(unknown_path()),
        _ => {}
    }
    cloud.set("images", id, "tags", tags);
    Ok(Reply::html(204))
}
