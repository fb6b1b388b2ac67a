//! Volume types.

use serde_json::{Value, json};

use super::{body, policy};
use crate::cloud::Cloud;
use crate::keystone::same_name;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

fn show(call: &Call, it: &Object) -> Value {
    let mut shown = json!({
        "id": it["id"], "name": it["name"], "is_public": it["is_public"], "description": it["description"],
        "extra_specs": it["extra_specs"], "os-volume-type-access:is_public": it["is_public"],
    });
    if call.caller.is_admin() {
        shown["qos_specs_id"] = Value::Null;
    } else {
        shown["extra_specs"] = json!({});
    }
    shown
}

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    let admin = call.caller.is_admin();
    Some(match (call.method.as_str(), rest) {
        ("GET", []) => {
            let mut rows: Vec<&Object> =
                cloud.all("volume_types").filter(|it| admin || it.flag("is_public")).collect();
            rows.reverse();
            let rows: Vec<Value> = rows.into_iter().map(|it| show(call, it)).collect();
            Ok(Reply::ok(json!({"volume_types": rows})))
        }
        ("GET", ["default"]) => match cloud.find("volume_types", "name", "__DEFAULT__") {
            Some(it) => {
                let mut shown = show(call, it);
                if let Some(shown) = shown.as_object_mut() {
                    shown.remove("os-volume-type-access:is_public");
                }
                Ok(Reply::ok(json!({"volume_type": shown})))
            }
            None => Err(Fail::missing("Default volume type can not be found.")),
        },
        ("GET", [id]) => match cloud.get("volume_types", id) {
            Some(it) => Ok(Reply::ok(json!({"volume_type": show(call, it)}))),
            None => Err(Fail::missing(format!("Volume type {id} could not be found."))),
        },
        ("GET", [id, "extra_specs"]) => match cloud.get("volume_types", id) {
            Some(it) => Ok(Reply::ok(json!({"extra_specs": it["extra_specs"]}))),
            None => Err(Fail::missing(format!("Volume type {id} could not be found."))),
        },
        ("POST", []) => match admin {
            true => create(cloud, call),
            false => Err(policy("volume_extension:type_create")),
        },
        ("DELETE", [id]) => match admin {
            true => {
                if cloud.all("volumes").any(|it| it.text("_type") == *id) {
                    return Some(Err(Fail::bad("Target volume type is still in use.")));
                }
                let text = format!("Volume type {id} could not be found.");
                cloud.remove("volume_types", id).map(|_| Reply::html(202)).ok_or_else(|| Fail::missing(text))
            }
            false => Err(policy("volume_extension:type_delete")),
        },
        _ => return None,
    })
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let given = body(call, "volume_type")?;
    let name = given.text("name").to_owned();
    if name.is_empty() {
        return Err(Fail::bad("Invalid input for field/attribute name. Value: . '' should be non-empty"));
    }
    if cloud.all("volume_types").any(|it| same_name(it.text("name"), &name)) {
        return Err(Fail::conflict(format!("Volume Type {name} already exists.")));
    }
    let public = given.get("os-volume-type-access:is_public").and_then(Value::as_bool).unwrap_or(true);
    let row = object(json!({
        "id": cloud.uuid(), "name": name, "is_public": public,
        "description": given.get("description").cloned().unwrap_or_default(),
        "extra_specs": given.get("extra_specs").cloned().unwrap_or_else(|| json!({})),
    }));
    cloud.put("volume_types", row.clone());
    let mut shown = show(call, &row);
    if let Some(shown) = shown.as_object_mut() {
        shown.remove("qos_specs_id");
    }
    Ok(Reply::ok(json!({"volume_type": shown})))
}
