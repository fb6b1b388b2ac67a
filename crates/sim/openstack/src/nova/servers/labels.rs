//! Metadata and tags of servers.

use serde_json::{Value, json};

use super::super::{body, quotas};
use super::{find, own};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply, validate};

fn metadata_schema(key: &str) -> Value {
    let map = json!({
        "type": "object", "patternProperties": {"^[a-zA-Z0-9-_:. ]{1,255}$": {"type": "string", "maxLength": 255}},
        "additionalProperties": false,
    });
    json!({"type": "object", "required": [key], "properties": {key: map}, "additionalProperties": false})
}

pub(super) fn metadata(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    let verb = match call.method.as_str() {
        "GET" => "index",
        "POST" => "create",
        "PUT" => "update_all",
        _ => "delete",
    };
    let server = match call.method.as_str() {
        "GET" => find(cloud, call, id)?,
        _ => own(cloud, call, id, &format!("server-metadata:{verb}"))?,
    };
    let mut held = server.object("metadata").cloned().unwrap_or_default();
    let missing = || Fail::missing("Metadata item was not found");
    let reply = match (call.method.as_str(), rest) {
        ("GET", []) => return Ok(Reply::ok(json!({"metadata": held}))),
        ("GET", [key]) => {
            let value = held.get(*key).ok_or_else(missing)?;
            return Ok(Reply::ok(json!({"meta": {*key: value}})));
        }
        ("POST" | "PUT", []) => {
            let body = body(call, &metadata_schema("metadata"))?;
            let given = body.object("metadata").cloned().unwrap_or_default();
            if call.method == "PUT" {
                held = Object::new();
            }
            held.extend(given);
            quotas::check_metadata(cloud, call, held.len())?;
            Reply::ok(json!({"metadata": held}))
        }
        ("PUT", [key]) => {
            let body = body(call, &metadata_schema("meta"))?;
            let given = body.object("meta").cloned().unwrap_or_default();
            let value = given.get(*key).ok_or_else(|| Fail::bad("Request body and URI mismatch"))?;
            held.insert((*key).to_owned(), value.clone());
            quotas::check_metadata(cloud, call, held.len())?;
            Reply::ok(json!({"meta": {*key: value}}))
        }
        ("DELETE", [key]) => {
            held.remove(*key).ok_or_else(missing)?;
            Reply::nothing(204)
        }
        _ => return Err(Fail::missing("The resource could not be found.")),
    };
    cloud.set("servers", id, "metadata", held);
    Ok(reply)
}

pub(super) fn tag_schema() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 60, "pattern": "^[^,/]*$"})
}

pub(super) fn tags(cloud: &mut Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    if !call.at_least(26) {
        return Err(Fail::missing("The resource could not be found."));
    }
    let verb = match (call.method.as_str(), rest.is_empty()) {
        ("PUT", true) => "update_all",
        ("PUT", false) => "update",
        ("DELETE", true) => "delete_all",
        _ => "delete",
    };
    let server = match call.method.as_str() {
        "GET" => find(cloud, call, id)?,
        _ => own(cloud, call, id, &format!("os-server-tags:{verb}"))?,
    };
    let mut held: Vec<String> = server.texts("tags").into_iter().map(str::to_owned).collect();
    let has = |tag: &str| server.texts("tags").contains(&tag);
    let missing = |tag: &str| Fail::missing(format!("Server {id} has no tag '{tag}'"));
    let reply = match (call.method.as_str(), rest) {
        ("GET", []) => return Ok(Reply::ok(json!({"tags": held}))),
        ("GET", [tag]) => {
            return if has(tag) { Ok(Reply::nothing(204)) } else { Err(missing(tag)) };
        }
        ("PUT", []) => {
            let list = json!({"type": "array", "maxItems": 50, "items": tag_schema()});
            let schema = json!({
                "type": "object", "required": ["tags"], "properties": {"tags": list}, "additionalProperties": false,
            });
            let body = body(call, &schema)?;
            held = body.texts("tags").into_iter().map(str::to_owned).collect();
            Reply::ok(json!({"tags": held}))
        }
        ("PUT", [tag]) => {
            validate("tag", &json!(tag), &tag_schema()).map_err(Fail::bad)?;
            if has(tag) {
                return Ok(Reply::html(204));
            }
            held.push((*tag).to_owned());
            let location = format!("{}/v2.1/servers/{id}/tags/{tag}", call.base);
            Reply::html(201).with("location", location)
        }
        ("DELETE", []) => {
            held.clear();
            Reply::nothing(204)
        }
        ("DELETE", [tag]) => {
            if !has(tag) {
                return Err(missing(tag));
            }
            held.retain(|it| it != tag);
            Reply::nothing(204)
        }
        _ => return Err(Fail::missing("The resource could not be found.")),
    };
    held.sort();
    cloud.set("servers", id, "tags", held);
    Ok(reply)
}
