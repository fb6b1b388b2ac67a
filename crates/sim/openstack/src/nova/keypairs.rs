//! Keypairs, which belong to users.

use base64::Engine as _;
use serde_json::{Value, json};

use super::{body, policy, quotas};
use crate::cloud::Cloud;
use crate::keystone::same_name;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    let user = call.caller.user.clone();
    Some(match (call.method.as_str(), rest) {
        ("GET", []) => {
            let all: Vec<Value> = cloud
                .all("keypairs")
                .filter(|it| it.text("user_id") == user)
                .map(|it| {
                    let mut shown = json!({"name": it["name"], "public_key": it["public_key"], "fingerprint": it["fingerprint"]});
                    if call.at_least(2) {
                        shown["type"] = it["type"].clone();
                    }
                    json!({"keypair": shown})
                })
                .collect();
            Ok(Reply::ok(json!({"keypairs": all})))
        }
        ("POST", []) => create(cloud, call),
        ("GET", [name]) => find(cloud, &user, name).map(|it| {
            let mut shown = json!({
                "name": it["name"], "public_key": it["public_key"], "fingerprint": it["fingerprint"],
                "user_id": it["user_id"], "created_at": it["created_at"], "deleted": false, "deleted_at": null,
                "id": it["number"], "updated_at": null,
            });
            if call.at_least(2) {
                shown["type"] = it["type"].clone();
            }
            Reply::ok(json!({"keypair": shown}))
        }),
        ("DELETE", [name]) => {
            if !call.caller.is_member() && !call.caller.has("reader") {
                return Some(Err(policy("os-keypairs:delete")));
            }
            find(cloud, &user, name).map(|it| {
                cloud.remove("keypairs", it.text("id"));
                Reply::nothing(if call.at_least(2) { 204 } else { 202 })
            })
        }
        _ => return None,
    })
}

pub(super) fn find(cloud: &Cloud, user: &str, name: &str) -> Result<Object, Fail> {
    let found =
        cloud.all("keypairs").find(|it| it.text("user_id") == user && same_name(it.text("name"), name));
    found.cloned().ok_or_else(|| Fail::missing(format!("Keypair {name} not found for user {user}")))
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let pattern = if call.at_least(92) { "^[_\\- a-zA-Z0-9.@]+$" } else { "^[_\\- a-zA-Z0-9]+$" };
    let mut schema = json!({
        "type": "object", "required": ["keypair"], "additionalProperties": false,
        "properties": {"keypair": {
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": pattern},
                "public_key": {"type": "string"},
                "user_id": {"type": "string"},
            },
        }},
    });
    if call.at_least(2) {
        schema["properties"]["keypair"]["properties"]["type"] =
            json!({"type": "string", "enum": ["ssh", "x509"]});
    }
    if call.at_least(92) {
        schema["properties"]["keypair"]["required"] = json!(["name", "public_key"]);
    }
    let body = body(call, &schema)?;
    let given = body.object("keypair").cloned().unwrap_or_default();
    let name = given.text("name").to_owned();
    let user = call.caller.user.clone();
    let generated = !given.contains_key("public_key");
    let public = match given.get("public_key").and_then(Value::as_str) {
        Some(key) => key.to_owned(),
        None => format!(
            "ssh-rsa {} Generated-by-Nova",
            base64::engine::general_purpose::STANDARD.encode(cloud.hex().repeat(8))
        ),
    };
    let blob =
        public.split(' ').nth(1).and_then(|it| base64::engine::general_purpose::STANDARD.decode(it).ok());
    let Some(blob) = blob else {
        return Err(Fail::bad("Keypair data is invalid: failed to generate fingerprint"));
    };
    quotas::check_keypairs(cloud, call)?;
    if cloud.all("keypairs").any(|it| it.text("user_id") == user && same_name(it.text("name"), &name)) {
        return Err(Fail::conflict(format!("Key pair '{name}' already exists.")));
    }
    let digest = Cloud::digest(&format!("{blob:?}"));
    let fingerprint: Vec<&str> = (0..16).map(|i| &digest[2 * i..2 * i + 2]).collect();
    let number = cloud.all("keypairs").map(|it| it.number("number")).max().unwrap_or_default() + 1;
    let row = object(json!({
        "id": format!("{user} {name}"), "name": name, "public_key": public, "fingerprint": fingerprint.join(":"),
        "user_id": user, "type": "ssh", "created_at": cloud.naive() + ".000000", "number": number,
        "_project": call.caller.project(),
    }));
    cloud.put("keypairs", row.clone());
    let mut shown = json!({
        "name": row["name"], "public_key": row["public_key"], "fingerprint": row["fingerprint"], "user_id": user,
    });
    if call.at_least(2) {
        shown["type"] = row["type"].clone();
    }
    if generated {
        shown["private_key"] =
            json!("-----BEGIN RSA PRIVATE KEY-----\nsimulated\n-----END RSA PRIVATE KEY-----\n");
    }
    Ok(Reply::json(if call.at_least(2) { 201 } else { 200 }, json!({"keypair": shown})))
}
