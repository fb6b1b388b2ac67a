//! Data of images: upload, staging, import, download.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{absent, own, visible};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Body, Call, Fail, Handled, Reply};
use crate::work::Task;

/// Data up to this size can be downloaded again; of more only size and checksums are kept.
const KEPT: usize = 1 << 20;

fn unsupported(call: &Call) -> Fail {
    let kind = call.header("content-type").unwrap_or("application/json");
    let text = format!("The request media type {kind} is not supported by this server.\n<br /><br />\n");
    Fail::new(415, "whole", text)
}

pub(super) fn file(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    if call.method == "GET" {
        let image = visible(cloud, call, id)?;
        if image.text("status") == "deactivated" && !call.caller.is_admin() {
            return Err(Fail::forbidden(
                "The requested image has been deactivated. Image data download is forbidden.",
            ));
        }
        let Some(data) = image.get("_data").and_then(Value::as_str) else { return Ok(Reply::html(204)) };
        let bytes = Bytes::from(BASE64.decode(data).unwrap_or_default());
        let reply = Reply { status: 200, headers: Vec::new(), body: Body::Bytes(bytes) };
        return Ok(reply.with("content-md5", image.text("checksum")));
    }
    if call.header("content-type") != Some("application/octet-stream") {
        return Err(unsupported(call));
    }
    let image = own(cloud, call, id, "upload_image")?;
    if !matches!(image.text("status"), "queued" | "saving") {
        let text = format!("Image status transition from {} to saving is not allowed", image.text("status"));
        return Err(Fail::conflict(text));
    }
    need_formats(&image)?;
    if image.text("disk_format") == "qcow2" && !call.body.starts_with(b"QFI\xfb") {
        keep(cloud, id, &call.body);
        for field in ["size", "virtual_size", "_data"] {
            cloud.set("images", id, field, Value::Null);
        }
        return Err(unsupported(call));
    }
    keep(cloud, id, &call.body);
    cloud.set("images", id, "status", "active");
    Ok(Reply {
        status: 204,
        headers: Vec::new(),
        body: Body::Text("text/html; charset=UTF-8", String::new()),
    })
}

fn need_formats(image: &Object) -> Result<(), Fail> {
    let unset: Vec<&str> =
        ["disk_format", "container_format"].into_iter().filter(|name| !image.has(name)).collect();
    match unset.is_empty() {
        true => Ok(()),
        false => Err(Fail::bad(format!("Properties {} must be set prior to saving data.", unset.join(", ")))),
    }
}

fn keep(cloud: &mut Cloud, id: &str, data: &[u8]) {
    use sha2::Digest as _;
    let hash: String = sha2::Sha512::digest(data).iter().map(|byte| format!("{byte:02x}")).collect();
    let now = cloud.stamp();
    if let Some(image) = cloud.get_mut("images", id) {
        image.insert("size".to_owned(), json!(data.len()));
        image.insert("virtual_size".to_owned(), json!(data.len()));
        image.insert("checksum".to_owned(), json!(hash[..32]));
        image.insert("os_hash_algo".to_owned(), json!("sha512"));
        image.insert("os_hash_value".to_owned(), json!(hash));
        image.insert("updated_at".to_owned(), json!(now));
        if data.len() <= KEPT {
            image.insert("_data".to_owned(), json!(BASE64.encode(data)));
        }
    }
}

pub(super) fn stage(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    if call.header("content-type") != Some("application/octet-stream") {
        return Err(unsupported(call));
    }
    let image = own(cloud, call, id, "upload_image")?;
    if image.text("status") != "queued" {
        let text =
            format!("Image status transition from {} to uploading is not allowed", image.text("status"));
        return Err(Fail::conflict(text));
    }
    cloud.set("images", id, "status", "uploading");
    cloud.set("images", id, "size", call.body.len());
    cloud.set("images", id, "_staged", BASE64.encode(&call.body));
    Ok(Reply {
        status: 204,
        headers: Vec::new(),
        body: Body::Text("text/html; charset=UTF-8", String::new()),
    })
}

pub(super) fn import(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let body = call.json().unwrap_or_default();
    let method = body["method"]["name"].as_str().unwrap_or_default();
    if !cloud.settings.import_methods.iter().any(|enabled| enabled == method) {
        return Err(Fail::bad(format!("Unknown import method name '{method}'.")));
    }
    let image = own(cloud, call, id, "modify_image")?;
    let mut end = "active";
    if method == "web-download" {
        let uri = body["method"]["uri"].as_str().unwrap_or_default();
        let passes = is_allowed(uri);
        if image.text("status") != "queued" {
            return Err(Fail::conflict("Image needs to be in 'queued' state to use 'web-download' method"));
        }
        if let Some(name) = ["container_format", "disk_format"].into_iter().find(|name| !image.has(name)) {
            return Err(Fail::conflict(format!("'{name}' needs to be set before import")));
        }
        if !passes {
            return Err(Fail::bad(format!("URI for web-download does not pass filtering: {uri}")));
        }
        if cloud.faults.failing_imports > 0 {
            cloud.faults.failing_imports -= 1;
            end = "queued";
        }
    } else {
        if image.text("status") != "uploading" {
            return Err(Fail::conflict("Image needs to be staged before 'glance-direct' method can be used"));
        }
        need_formats(&image)?;
    }
    cloud.set("images", id, "status", "importing");
    let task = json!({
        "id": cloud.uuid(), "type": "api_image_import", "status": "processing", "owner": call.caller.project(),
        "created_at": cloud.micros(), "updated_at": cloud.micros(), "expires_at": null, "message": "", "result": null,
        "input": {"image_id": id, "import_req": body, "backend": ["file"]}, "image_id": id,
        "request_id": call.request_id, "user_id": call.caller.user, "deleted": false, "deleted_at": null,
    });
    let mut tasks = image.list("_tasks").to_vec();
    tasks.push(task);
    cloud.set("images", id, "_tasks", tasks);
    let after = cloud.settings.timings.image;
    cloud.later(after, Task::ImageStatus { id: id.to_owned(), status: end.to_owned() });
    Ok(Reply {
        status: 202,
        headers: Vec::new(),
        body: Body::Text("text/html; charset=UTF-8", String::new()),
    })
}

/// Glance's default filter: HTTP on its own ports.
fn is_allowed(uri: &str) -> bool {
    let Ok(uri) = uri.parse::<http::Uri>() else { return false };
    let host = uri.host().is_some_and(|host| !host.is_empty());
    host && matches!(uri.scheme_str(), Some("http" | "https"))
        && matches!(uri.port_u16(), None | Some(80 | 443))
}

/// Size of what is downloaded in the simulation.
const DOWNLOADED: u64 = 2_361_393_152;

/// The end of an import: the image is active, or waits for another.
fn end_import(cloud: &mut Cloud, id: &str, status: &str) {
    let now = cloud.micros();
    let Some(image) = cloud.get_mut("images", id) else { return };
    let failed = status != "active";
    if !failed && !image.has("size") {
        image.insert("size".to_owned(), json!(DOWNLOADED));
        image.insert("virtual_size".to_owned(), json!(DOWNLOADED * 4));
        let hash = Cloud::digest(id).repeat(2);
        image.insert("checksum".to_owned(), json!(hash[..32]));
        image.insert("os_hash_algo".to_owned(), json!("sha512"));
        image.insert("os_hash_value".to_owned(), json!(hash));
    }
    let Some(Value::Array(tasks)) = image.get_mut("_tasks") else { return };
    for task in tasks.iter_mut().filter(|task| task["status"] == "processing") {
        task["updated_at"] = json!(now);
        task["expires_at"] = json!(now);
        if failed {
            task["status"] = json!("failure");
            task["message"] = json!("Task failed due to Internal Error");
        } else {
            task["status"] = json!("success");
            task["message"] = json!("Copied 0 MiB");
            task["result"] = json!({"image_id": id});
        }
    }
}

/// An image reaches a status.
pub(crate) fn reach(cloud: &mut Cloud, id: &str, status: &str) {
    let Some(image) = cloud.get("images", id).cloned() else { return };
    if let Some(staged) = image.get("_staged").and_then(Value::as_str).and_then(|it| BASE64.decode(it).ok()) {
        keep(cloud, id, &staged);
        cloud.set("images", id, "_staged", Value::Null);
    }
    if image.text("status") == "importing" {
        end_import(cloud, id, status);
    }
    if image.text("image_type") == "snapshot" {
        cloud.set("images", id, "disk_format", "qcow2");
        cloud.set("images", id, "container_format", "bare");
        cloud.set("images", id, "size", 1 << 30);
    }
    cloud.set("images", id, "status", status);
}

pub(super) fn tasks(cloud: &Cloud, call: &Call, id: &str) -> Handled {
    let image = visible(cloud, call, id)?;
    Ok(Reply::ok(json!({"tasks": image.get("_tasks").cloned().unwrap_or_else(|| json!([]))})))
}

pub(super) fn act(cloud: &mut Cloud, call: &Call, id: &str, action: &str) -> Handled {
    let rule = match action {
        "deactivate" => "deactivate",
        "reactivate" => "reactivate",
        _ => return Err(absent(id)),
    };
    let image = own(cloud, call, id, rule)?;
    let (from, to) =
        if action == "deactivate" { ("active", "deactivated") } else { ("deactivated", "active") };
    match image.text("status") {
        status if status == from || status == to => cloud.set("images", id, "status", to),
        status => {
            return Err(Fail::forbidden(format!("Not allowed to {action} image in status '{status}'")));
        }
    }
    Ok(Reply::html(204))
}
