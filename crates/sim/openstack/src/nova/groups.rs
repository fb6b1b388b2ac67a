//! Server groups.

use serde_json::{Value, json};

use super::{body, policy, quotas};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    Some(match (call.method.as_str(), rest) {
        ("GET", []) => {
            let all = call.caller.is_admin() && call.param("all_projects").is_some();
            let number = |name: &str| call.param(name).and_then(|it| it.parse::<usize>().ok());
            let groups: Vec<Value> = cloud
                .all("server_groups")
                .filter(|it| all || it.text("project_id") == call.caller.project())
                .skip(number("offset").unwrap_or_default())
                .take(number("limit").unwrap_or(1000))
                .map(|it| show(cloud, call, it))
                .collect();
            Ok(Reply::ok(json!({"server_groups": groups})))
        }
        ("POST", []) => create(cloud, call),
        ("GET", [id]) => {
            find(cloud, call, id).map(|it| Reply::ok(json!({"server_group": show(cloud, call, &it)})))
        }
        ("DELETE", [id]) => find(cloud, call, id).and_then(|_| {
            if !call.caller.is_member() {
                return Err(policy("os-server-groups:delete"));
            }
            cloud.remove("server_groups", id);
            Ok(Reply::nothing(204))
        }),
        _ => return None,
    })
}

pub(super) fn find(cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
    let found = cloud
        .get("server_groups", id)
        .filter(|it| call.caller.is_admin() || it.text("project_id") == call.caller.project());
    found.cloned().ok_or_else(|| Fail::missing(format!("Instance group {id} could not be found.")))
}

/// Servers of a group, those in ERROR included.
pub(super) fn members<'a>(cloud: &'a Cloud, group: &'a str) -> impl Iterator<Item = &'a Object> {
    cloud.all("servers").filter(move |it| it.text("group") == group && it.text("vm_state") != "deleted")
}

fn show(cloud: &Cloud, call: &Call, it: &Object) -> Value {
    let members: Vec<&str> = members(cloud, it.text("id")).map(|it| it.text("id")).collect();
    let mut shown = json!({"id": it["id"], "name": it["name"], "members": members});
    if call.at_least(64) {
        shown["policy"] = it["policy"].clone();
        shown["rules"] = it["rules"].clone();
    } else {
        shown["policies"] = json!([it["policy"]]);
        shown["metadata"] = json!({});
    }
    if call.at_least(13) {
        shown["project_id"] = it["project_id"].clone();
        shown["user_id"] = it["user_id"].clone();
    }
    shown
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    if !call.caller.is_member() {
        return Err(policy("os-server-groups:create"));
    }
    let name = json!({"type": "string", "minLength": 1, "maxLength": 255});
    let group = if call.at_least(64) {
        json!({
            "type": "object", "required": ["name", "policy"], "additionalProperties": false,
            "properties": {
                "name": name,
                "policy": {"type": "string", "enum": ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"]},
                "rules": {"type": "object", "additionalProperties": false,
                    "properties": {"max_server_per_host": {"type": ["integer", "string"], "minimum": 1}}},
            },
        })
    } else {
        let allowed = if call.at_least(15) {
            json!(["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"])
        } else {
            json!(["anti-affinity", "affinity"])
        };
        json!({
            "type": "object", "required": ["name", "policies"], "additionalProperties": false,
            "properties": {
                "name": name,
                "policies": {"type": "array", "minItems": 1, "maxItems": 1, "items": {"enum": allowed}},
            },
        })
    };
    let schema = json!({
        "type": "object", "required": ["server_group"], "additionalProperties": false, "properties": {"server_group": group},
    });
    let body = body(call, &schema)?;
    let given = body.object("server_group").cloned().unwrap_or_default();
    let policy = match given.get("policy").and_then(Value::as_str) {
        Some(policy) => policy.to_owned(),
        None => given.texts("policies").first().map(|it| (*it).to_owned()).unwrap_or_default(),
    };
    let rules = given.get("rules").cloned().unwrap_or_else(|| json!({}));
    if policy != "anti-affinity" && rules.as_object().is_some_and(|it| !it.is_empty()) {
        return Err(Fail::bad("Only anti-affinity policy supports rules."));
    }
    quotas::check_groups(cloud, call)?;
    let row = object(json!({
        "id": cloud.uuid(), "name": given["name"], "policy": policy, "rules": rules,
        "project_id": call.caller.project(), "user_id": call.caller.user,
    }));
    cloud.put("server_groups", row.clone());
    Ok(Reply::ok(json!({"server_group": show(cloud, call, &row)})))
}
