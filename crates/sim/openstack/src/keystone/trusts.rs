//! Trusts: a user lets another act for it in a project.

use serde_json::{Value, json};

use super::{absent, body, collection, denied, is_get, not_allowed, roles_of};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object, shown};
use crate::wire::{Call, Fail, Handled, Reply};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Handled {
    match rest {
        [] if call.method == "POST" => create(cloud, call),
        [] if is_get(call) => {
            let wanted = |field: &str, it: &Object| call.param(field).is_none_or(|id| it.text(field) == id);
            if !call.caller.is_admin()
                && call.param("trustor_user_id") != Some(&call.caller.user)
                && call.param("trustee_user_id") != Some(&call.caller.user)
            {
                return Err(denied("list_trusts"));
            }
            let found = cloud
                .all("trusts")
                .filter(|it| wanted("trustor_user_id", it) && wanted("trustee_user_id", it))
                .map(|it| {
                    let mut it = show(call, it);
                    it.as_object_mut().map(|it| (it.remove("roles"), it.remove("roles_links")));
                    it
                })
                .collect();
            Ok(collection(call, "trusts", found))
        }
        [id] => {
            let trust = cloud.get("trusts", id).cloned();
            let concerned = |field: &str| trust.as_ref().is_some_and(|it| it.text(field) == call.caller.user);
            if is_get(call) {
                if !concerned("trustor_user_id") && !concerned("trustee_user_id") && !call.caller.is_admin() {
                    return Err(denied("get_trust"));
                }
                let trust = trust.ok_or_else(|| absent("trust", id))?;
                return Ok(Reply::ok(json!({"trust": show(call, &trust)})));
            }
            if call.method != "DELETE" {
                return Err(not_allowed("DELETE, GET, HEAD, OPTIONS"));
            }
            if !concerned("trustor_user_id") && !call.caller.is_admin() {
                return Err(denied("delete_trust"));
            }
            cloud.remove("trusts", id).ok_or_else(|| absent("trust", id))?;
            Ok(Reply::empty(204))
        }
        _ => Err(not_allowed("GET, HEAD, OPTIONS, POST")),
    }
}

fn create(cloud: &mut Cloud, call: &Call) -> Handled {
    let given = body(call, "trust")?;
    if call.caller.credential.is_some() {
        let text = "Delegated tokens cannot manage trusts.";
        return Err(Fail::forbidden(format!(
            "You are not authorized to perform the requested action: {text}."
        )));
    }
    if given.text("trustor_user_id") != call.caller.user {
        return Err(denied("create_trust"));
    }
    let trustee = given.text("trustee_user_id");
    cloud.get("users", trustee).ok_or_else(|| absent("user", trustee))?;
    let held = roles_of(cloud, &call.caller.user, given.text("project_id"));
    let mut roles = Vec::new();
    for role in given.list("roles") {
        let found = held.iter().find(|(id, name)| role["id"] == id.as_str() || role["name"] == name.as_str());
        let word = role["name"].as_str().or(role["id"].as_str()).unwrap_or_default();
        let (id, _) = found.ok_or_else(|| absent("role", word))?;
        roles.extend(cloud.get("roles", id).map(|role| Value::Object(role.clone())));
    }
    let trust = object(json!({
        "id": cloud.hex(),
        "trustor_user_id": call.caller.user,
        "trustee_user_id": trustee,
        "project_id": given.get("project_id").cloned().unwrap_or_default(),
        "impersonation": given.flag("impersonation"),
        "expires_at": given.get("expires_at").cloned().unwrap_or_default(),
        "remaining_uses": given.get("remaining_uses").cloned().unwrap_or_default(),
        "deleted_at": null,
        "redelegated_trust_id": null,
        "redelegation_count": 0,
        "roles": roles,
    }));
    cloud.put("trusts", trust.clone());
    Ok(Reply::json(201, json!({"trust": show(call, &trust)})))
}

fn show(call: &Call, trust: &Object) -> Value {
    let mut shown = shown(trust);
    let id = trust.text("id");
    let roles: Vec<Value> = trust
        .list("roles")
        .iter()
        .map(|role| {
            let mut role = role.clone();
            let link = format!("{}/v3/roles/{}", call.base, role["id"].as_str().unwrap_or_default());
            role["links"] = json!({"self": link});
            role
        })
        .collect();
    shown.insert("roles".to_owned(), Value::Array(roles));
    let roles_link = format!("{}/v3/{id}/roles", call.base);
    shown.insert("roles_links".to_owned(), json!({"self": roles_link, "next": null, "previous": null}));
    shown.insert("links".to_owned(), json!({"self": format!("{}/v3/OS-TRUST/trusts/{id}", call.base)}));
    Value::Object(shown)
}
