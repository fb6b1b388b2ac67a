//! Flavors and their extra specs.

use serde_json::{Value, json};

use super::{body, links, listed, page, policy};
use crate::cloud::Cloud;
use crate::keystone::same_name;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    Some(match (call.method.as_str(), rest) {
        ("GET", []) => list(cloud, call, false),
        ("GET", ["detail"]) => list(cloud, call, true),
        ("POST", []) => create(cloud, call),
        ("GET", [id]) => find(cloud, call, id).map(|it| Reply::ok(json!({"flavor": show(call, &it, true)}))),
        ("DELETE", [id]) => match call.caller.is_admin() {
            true => cloud.remove("flavors", id).map(|_| Reply::nothing(202)).ok_or_else(|| absent(id)),
            false => Err(policy("os-flavor-manage:delete")),
        },
        (_, [id, "os-extra_specs", rest @ ..]) => specs(cloud, call, id, rest),
        ("GET", [id, "os-flavor-access"]) => match call.caller.is_admin() {
            true => find(cloud, call, id).map(|_| Reply::ok(json!({"flavor_access": []}))),
            false => Err(policy("os-flavor-access")),
        },
        _ => return None,
    })
}

fn absent(id: &str) -> Fail {
    Fail::missing(format!("Flavor {id} could not be found."))
}

/// A flavor by id, whatever its case.
pub(super) fn find(cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
    let found = cloud.all("flavors").find(|it| same_name(it.text("id"), id));
    found.filter(|it| it.flag("is_public") || call.caller.is_admin()).cloned().ok_or_else(|| absent(id))
}

fn list(cloud: &Cloud, call: &Call, detail: bool) -> Handled {
    let admin = call.caller.is_admin();
    let public = match call.param("is_public") {
        Some("None" | "none") if admin => None,
        Some("False" | "false" | "0") if admin => Some(false),
        _ => Some(true),
    };
    let least = |name: &str| call.param(name).and_then(|it| it.parse::<i64>().ok()).unwrap_or_default();
    let (ram, disk) = (least("minRam"), least("minDisk"));
    let mut rows: Vec<&Object> = cloud
        .all("flavors")
        .filter(|it| public.is_none_or(|public| it.flag("is_public") == public))
        .filter(|it| it.number("ram") >= ram && it.number("disk") >= disk)
        .collect();
    let key = match call.param("sort_key") {
        None | Some("flavorid") => "id",
        Some("memory_mb") => "ram",
        Some("root_gb") => "disk",
        Some(key) => key,
    };
    rows.sort_by(|a, b| match (a.get(key), b.get(key)) {
        (Some(Value::Number(x)), Some(Value::Number(y))) => x.as_i64().cmp(&y.as_i64()),
        _ => a.text(key).cmp(b.text(key)),
    });
    if call.param("sort_dir") == Some("desc") {
        rows.reverse();
    }
    let rows = rows.into_iter().map(|it| show(call, it, detail)).collect();
    Ok(listed("flavors", page(call, "flavors", rows)?))
}

fn show(call: &Call, it: &Object, detail: bool) -> Value {
    let id = it.text("id");
    if !detail {
        let mut shown = json!({"id": id, "name": it["name"], "links": links(call, "flavors", id)});
        if call.at_least(55) {
            shown["description"] = it["description"].clone();
        }
        return shown;
    }
    let swap = match it.number("swap") {
        0 if !call.at_least(75) => json!(""),
        swap => json!(swap),
    };
    let mut shown = json!({
        "id": id, "name": it["name"], "ram": it["ram"], "disk": it["disk"], "swap": swap,
        "OS-FLV-EXT-DATA:ephemeral": it["ephemeral"], "OS-FLV-DISABLED:disabled": false, "vcpus": it["vcpus"],
        "os-flavor-access:is_public": it["is_public"], "rxtx_factor": it["rxtx_factor"],
        "links": links(call, "flavors", id),
    });
    if call.at_least(55) {
        shown["description"] = it["description"].clone();
    }
    if call.at_least(61) {
        shown["extra_specs"] = it["extra_specs"].clone();
    }
    shown
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    if !call.caller.is_admin() {
        return Err(policy("os-flavor-manage:create"));
    }
    let number = |least: i64| json!({"type": ["integer", "string"], "pattern": "^[0-9]*$", "minimum": least});
    let schema = json!({
        "type": "object", "required": ["flavor"], "additionalProperties": false,
        "properties": {"flavor": {
            "type": "object", "required": ["name", "ram", "vcpus", "disk"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 255}, "id": {"type": ["string", "number", "null"]},
                "ram": number(1), "vcpus": number(1), "disk": number(0), "swap": number(0),
                "OS-FLV-EXT-DATA:ephemeral": number(0), "rxtx_factor": {}, "os-flavor-access:is_public": {},
                "description": {"type": ["string", "null"]},
            },
        }},
    });
    let body = body(call, &schema)?;
    let given = body.object("flavor").cloned().unwrap_or_default();
    let number = |name: &str| {
        given.get(name).and_then(|it| it.as_i64().or_else(|| it.as_str()?.parse().ok())).unwrap_or_default()
    };
    let id = match given.get("id") {
        Some(Value::String(id)) if id != "auto" => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => cloud.uuid(),
    };
    let name = given.text("name").to_owned();
    if cloud.all("flavors").any(|it| same_name(it.text("name"), &name)) {
        return Err(Fail::conflict(format!("Flavor with name {name} already exists.")));
    }
    if cloud.all("flavors").any(|it| same_name(it.text("id"), &id)) {
        return Err(Fail::conflict(format!("Flavor with ID {id} already exists.")));
    }
    let public = given.get("os-flavor-access:is_public").and_then(Value::as_bool).unwrap_or(true);
    let row = object(json!({
        "id": id, "name": name, "ram": number("ram"), "disk": number("disk"), "vcpus": number("vcpus"),
        "swap": number("swap"), "ephemeral": number("OS-FLV-EXT-DATA:ephemeral"), "rxtx_factor": 1.0,
        "is_public": public, "description": given.get("description"), "extra_specs": {},
    }));
    cloud.put("flavors", row.clone());
    Ok(Reply::ok(json!({"flavor": show(call, &row, true)})))
}

fn specs(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    let mut flavor = find(cloud, call, id)?;
    let mut specs = flavor.object("extra_specs").cloned().unwrap_or_default();
    let missing = |key: &str| Fail::missing(format!("Flavor {id} has no extra specs with key {key}."));
    match (call.method.as_str(), rest) {
        ("GET", []) => Ok(Reply::ok(json!({"extra_specs": specs}))),
        ("GET", [key]) => match specs.get(*key) {
            Some(value) => Ok(Reply::ok(json!({*key: value}))),
            None => Err(missing(key)),
        },
        ("POST", []) => {
            if !call.caller.is_admin() {
                return Err(policy("os-flavor-extra-specs:create"));
            }
            let text = json!({"type": ["string", "number"]});
            let each = json!({"type": "object", "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": text}, "additionalProperties": false});
            let schema =
                json!({"type": "object", "required": ["extra_specs"], "properties": {"extra_specs": each}});
            let body = body(call, &schema)?;
            let given = body.object("extra_specs").cloned().unwrap_or_default();
            specs.extend(given.clone());
            flavor.insert("extra_specs".to_owned(), Value::Object(specs));
            cloud.put("flavors", flavor);
            Ok(Reply::ok(json!({"extra_specs": given})))
        }
        ("PUT", [key]) => {
            if !call.caller.is_admin() {
                return Err(policy("os-flavor-extra-specs:update"));
            }
            let value = call.json().and_then(|body| body.get(*key).cloned());
            let value = value.ok_or_else(|| Fail::bad("Request body and URI mismatch"))?;
            specs.insert((*key).to_owned(), value.clone());
            flavor.insert("extra_specs".to_owned(), Value::Object(specs));
            cloud.put("flavors", flavor);
            Ok(Reply::ok(json!({*key: value})))
        }
        ("DELETE", [key]) => {
            if !call.caller.is_admin() {
                return Err(policy("os-flavor-extra-specs:delete"));
            }
            specs.remove(*key).ok_or_else(|| missing(key))?;
            flavor.insert("extra_specs".to_owned(), Value::Object(specs));
            cloud.put("flavors", flavor);
            Ok(Reply::nothing(200))
        }
        _ => Err(Fail::missing("The resource could not be found.")),
    }
}
