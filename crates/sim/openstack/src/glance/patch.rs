//! Changes of images, as a JSON patch.

use serde_json::{Value, json};

use super::{BASE, READ_ONLY, check, denied, own, show};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

const KINDS: &[&str] =
    &["application/openstack-images-v2.1-json-patch", "application/openstack-images-v2.0-json-patch"];

pub(super) fn patch(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let kind = call.header("content-type").unwrap_or("application/json");
    if !KINDS.contains(&kind) {
        let text = format!("The request media type {kind} is not supported by this server.\n<br /><br />\n");
        return Err(Fail::new(415, "whole", text));
    }
    let Some(Value::Array(operations)) = call.json() else {
        return Err(Fail::bad("Request body must be a JSON array of operation objects."));
    };
    for operation in &operations {
        let op = operation["op"].as_str().unwrap_or_default();
        if !matches!(op, "add" | "remove" | "replace") {
            let text =
                format!("Invalid operation: `{op}`. It must be one of the following: add, remove, replace.");
            return Err(Fail::bad(text));
        }
        if op != "remove" && operation.get("value").is_none() {
            return Err(Fail::bad(format!("Operation \"{op}\" requires a member named \"value\".")));
        }
    }
    let mut image = own(cloud, call, id, "modify_image")?;
    for operation in &operations {
        let op = operation["op"].as_str().unwrap_or_default();
        let name = operation["path"]
            .as_str()
            .unwrap_or_default()
            .trim_start_matches('/')
            .replace("~1", "/")
            .replace("~0", "~");
        apply(call, &mut image, op, &name, operation.get("value").cloned().unwrap_or_default())?;
    }
    let now = cloud.stamp();
    image.insert("updated_at".to_owned(), json!(now));
    if let Some(version) = image.get("kube_version").cloned() {
        image.insert("_kubernetes".to_owned(), version);
    }
    cloud.put("images", image.clone());
    Ok(Reply::ok(Value::Object(show(&image))))
}

fn apply(call: &Call, image: &mut Object, op: &str, name: &str, value: Value) -> Result<(), Fail> {
    if READ_ONLY.contains(&name) || name == "id" {
        return Err(Fail::forbidden(format!("Attribute '{name}' is read-only.")));
    }
    let base = BASE.contains(&name);
    let conflict = |text: String| {
        let message =
            format!("There was a conflict when trying to complete your request.<br /><br />\n{text}\n\n");
        Fail::new(409, "whole", message)
    };
    match op {
        "remove" => {
            if base {
                return Err(Fail::forbidden(format!("Property {name} may not be removed.")));
            }
            image.remove(name).ok_or_else(|| conflict(format!("Property {name} does not exist.")))?;
            return Ok(());
        }
        "add" if !base && image.contains_key(name) => {
            return Err(conflict(format!("Property {name} already present.")));
        }
        "replace" if !base && !image.contains_key(name) => {
            return Err(conflict(format!("Property {name} does not exist.")));
        }
        _ => {}
    }
    check(&[(name.to_owned(), value.clone())].into_iter().collect())?;
    if matches!(name, "disk_format" | "container_format") && image.text("status") != "queued" {
        return Err(Fail::forbidden(format!("Attribute {name} can be only replaced for a queued image.")));
    }
    if name == "visibility" && value == "public" && !call.caller.is_admin() {
        return Err(denied("publicize_image"));
    }
    image.insert(name.to_owned(), value);
    Ok(())
}
