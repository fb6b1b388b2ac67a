//! Projects, users, roles, grants and the administrator's lists.

use serde_json::{Value, json};

use super::{
    absent, body, collection, denied, implied, linked, not_allowed, roles_of, same_name, unauthorized,
};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply, validate};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, path: &[&str]) -> Handled {
    let admin = call.caller.is_admin();
    match (call.method.as_str(), path) {
        ("GET" | "HEAD", ["projects", id]) => {
            if !admin && call.caller.project.as_deref() != Some(id) {
                return Err(denied("get_project"));
            }
            show(cloud, call, "projects", id)
        }
        ("GET" | "HEAD", ["users", id]) => {
            if !admin && call.caller.user != *id {
                return Err(denied("get_user"));
            }
            show(cloud, call, "users", id)
        }
        ("GET" | "HEAD", ["regions", id]) => show(cloud, call, "regions", id),
        ("GET", ["regions"]) => list(cloud, call, "regions"),
        ("GET", ["projects" | "users" | "roles" | "domains" | "services"]) => {
            if !admin {
                return Err(denied(&format!("list_{}", path[0])));
            }
            list(cloud, call, path[0])
        }
        ("GET", ["endpoints"]) => {
            if !admin {
                return Err(denied("list_endpoints"));
            }
            let all = super::catalog::endpoints(cloud);
            let all = all.into_iter().map(|(_, it)| linked(call, "endpoints", &it)).collect();
            Ok(collection(call, "endpoints", all))
        }
        ("GET" | "HEAD", [kind @ ("roles" | "domains" | "services"), id]) => {
            if !admin {
                return Err(denied(&format!("get_{}", singular(kind))));
            }
            show(cloud, call, kind, id)
        }
        ("POST", [kind @ ("projects" | "users" | "roles")]) => {
            if !admin {
                return Err(denied(&format!("create_{}", singular(kind))));
            }
            create(cloud, call, kind)
        }
        ("PATCH", [kind @ ("projects" | "users" | "roles"), id]) => {
            if !admin {
                return Err(denied(&format!("update_{}", singular(kind))));
            }
            update(cloud, call, kind, id)
        }
        ("DELETE", [kind @ ("projects" | "users" | "roles"), id]) => {
            if !admin {
                return Err(denied(&format!("delete_{}", singular(kind))));
            }
            remove(cloud, kind, id)
        }
        ("GET", ["roles", id, "implies"]) => implications(cloud, call, id),
        ("GET", ["role_assignments"]) => assignments(cloud, call),
        (_, ["projects", project, "users", user, "roles", rest @ ..]) => {
            grant(cloud, call, (project, user), rest)
        }
        (_, [_]) => Err(not_allowed("GET, HEAD, OPTIONS, POST")),
        _ => Err(not_allowed("DELETE, GET, HEAD, OPTIONS, PATCH")),
    }
}

fn singular(kind: &str) -> &str {
    kind.strip_suffix('s').unwrap_or(kind)
}

fn show(cloud: &Cloud, call: &Call, kind: &str, id: &str) -> Handled {
    let word = singular(kind);
    let found = cloud.get(kind, id).ok_or_else(|| absent(word, id))?;
    Ok(Reply::ok(json!({word: linked(call, kind, found)})))
}

fn list(cloud: &Cloud, call: &Call, kind: &str) -> Handled {
    const IGNORED: &[&str] =
        &["limit", "marker", "sort_key", "sort_dir", "tags", "tags-any", "not-tags", "not-tags-any"];
    let tagged = |it: &Object| {
        let held = it.texts("tags");
        let given = |name: &str| -> Option<Vec<String>> {
            Some(call.param(name)?.split(',').map(str::to_owned).collect())
        };
        let has = |tag: &String| held.contains(&tag.as_str());
        given("tags").is_none_or(|tags| tags.iter().all(has))
            && given("tags-any").is_none_or(|tags| tags.iter().any(has))
            && given("not-tags").is_none_or(|tags| !tags.iter().all(has))
            && given("not-tags-any").is_none_or(|tags| !tags.iter().any(has))
    };
    let matches = |it: &Object| {
        call.query.iter().filter(|(name, _)| !IGNORED.contains(&name.as_str())).all(|(name, value)| {
            let (field, how) = name.split_once("__").unwrap_or((name, "equals"));
            let held = match it.get(field) {
                Some(Value::String(text)) => text.to_lowercase(),
                Some(Value::Bool(held)) => return *held == is_true(value),
                _ => return !matches!(field, "name" | "domain_id" | "parent_id" | "enabled" | "type"),
            };
            let value = value.to_lowercase();
            match how {
                "contains" | "icontains" => held.contains(&value),
                "startswith" | "istartswith" => held.starts_with(&value),
                "endswith" | "iendswith" => held.ends_with(&value),
                _ => same_name(&held, &value),
            }
        })
    };
    let mut found: Vec<&Object> = cloud.all(kind).filter(|it| matches(it) && tagged(it)).collect();
    found.sort_by_key(|it| it.text("id"));
    Ok(collection(call, kind, found.into_iter().map(|it| linked(call, kind, it)).collect()))
}

fn is_true(text: &str) -> bool {
    !matches!(text.to_lowercase().as_str(), "false" | "0")
}

/// What a body of a kind may hold.
fn schema(kind: &str, required: bool) -> Value {
    let longest = if kind == "projects" { 64 } else { 255 };
    let booleans = json!([
        true, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t", false, "False",
        "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f"
    ]);
    let mut schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": longest, "pattern": "[\\S]+"},
            "description": {"type": ["string", "null"]},
            "enabled": {"enum": booleans},
            "domain_id": {"type": ["string", "null"]},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 255}},
            "password": {"type": ["string", "null"]},
        },
    });
    if required {
        schema["required"] = json!(["name"]);
    }
    schema
}

/// Strings that stand for a boolean become one.
fn settle_enabled(object: &mut Object) {
    if let Some(Value::String(text)) = object.get("enabled") {
        let enabled = matches!(text.to_lowercase().as_str(), "true" | "1" | "on" | "yes" | "y" | "t");
        object.insert("enabled".to_owned(), json!(enabled));
    }
}

fn create(cloud: &mut Cloud, call: &Call, kind: &str) -> Handled {
    let word = singular(kind);
    let mut given = body(call, word)?;
    validate(word, &Value::Object(given.clone()), &schema(kind, true)).map_err(Fail::bad)?;
    settle_enabled(&mut given);
    if let Some(domain) = given.get("domain_id").and_then(Value::as_str)
        && cloud.get("domains", domain).is_none()
    {
        return Err(Fail::bad(format!("Could not find domain: {domain}.")));
    }
    unique(cloud, kind, given.text("name"), "")?;
    let mut made = match kind {
        "projects" => object(json!({
            "domain_id": "default", "description": "", "enabled": true, "parent_id": "default", "is_domain": false,
            "tags": [], "options": {},
        })),
        "users" => object(
            json!({"domain_id": "default", "enabled": true, "password_expires_at": null, "options": {}}),
        ),
        _ => object(json!({"domain_id": null, "description": null, "options": {}})),
    };
    if let Some(password) = given.remove("password") {
        made.insert("_password".to_owned(), json!(Cloud::digest(password.as_str().unwrap_or_default())));
    }
    made.extend(given);
    made.insert("id".to_owned(), json!(cloud.hex()));
    let reply = Reply::json(201, json!({word: linked(call, kind, &made)}));
    cloud.put(kind, made);
    Ok(reply)
}

fn unique(cloud: &Cloud, kind: &str, name: &str, except: &str) -> Result<(), Fail> {
    if !cloud.all(kind).any(|it| same_name(it.text("name"), name) && it.text("id") != except) {
        return Ok(());
    }
    let word = singular(kind);
    let place = match kind {
        "roles" => format!("Duplicate entry found with name {name}"),
        "projects" => {
            format!("it is not permitted to have two projects with the same name in the same domain : {name}")
        }
        _ => format!("Duplicate entry found with name {name} at domain ID default"),
    };
    Err(Fail::conflict(format!("Conflict occurred attempting to store {word} - {place}.")))
}

fn update(cloud: &mut Cloud, call: &Call, kind: &str, id: &str) -> Handled {
    let word = singular(kind);
    let mut given = body(call, word)?;
    validate(word, &Value::Object(given.clone()), &schema(kind, false)).map_err(Fail::bad)?;
    settle_enabled(&mut given);
    let mut held = cloud.get(kind, id).cloned().ok_or_else(|| absent(word, id))?;
    if given.contains_key("name") {
        unique(cloud, kind, given.text("name"), id)?;
    }
    if let Some(password) = given.remove("password") {
        held.insert("_password".to_owned(), json!(Cloud::digest(password.as_str().unwrap_or_default())));
        revoke_of_user(cloud, id);
    }
    held.extend(given);
    let mut shown = linked(call, kind, &held);
    if kind != "roles" {
        let known = [
            "parent_id",
            "is_domain",
            "tags",
            "id",
            "name",
            "domain_id",
            "enabled",
            "default_project_id",
            "password_expires_at",
            "options",
            "links",
        ];
        let extra: Object = shown
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(k, _)| !known.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let extra: Object =
            extra.into_iter().filter(|(name, _)| kind == "users" || name != "description").collect();
        shown["extra"] = Value::Object(extra);
    }
    cloud.put(kind, held);
    Ok(Reply::ok(json!({word: shown})))
}

fn remove(cloud: &mut Cloud, kind: &str, id: &str) -> Handled {
    let word = singular(kind);
    cloud.remove(kind, id).ok_or_else(|| absent(word, id))?;
    cloud.table_mut("grants").retain(|grant| grant.text(word) != id);
    match kind {
        "users" => {
            cloud.table_mut("application_credentials").retain(|it| it.text("user_id") != id);
            cloud
                .table_mut("trusts")
                .retain(|it| it.text("trustor_user_id") != id && it.text("trustee_user_id") != id);
        }
        "projects" => {
            cloud.table_mut("application_credentials").retain(|it| it.text("project_id") != id);
            cloud.table_mut("trusts").retain(|it| it.text("project_id") != id);
        }
        _ => {}
    }
    Ok(Reply::empty(204))
}

fn revoke_of_user(cloud: &mut Cloud, user: &str) {
    for token in
        cloud.table_mut("tokens").iter_mut().filter(|it| it.text("user") == user && !it.has("credential"))
    {
        token.insert("revoked".to_owned(), json!(true));
    }
}

pub(super) fn change_password(cloud: &mut Cloud, call: &Call, user: &str) -> Handled {
    let given = body(call, "user")?;
    if call.caller.user != user {
        return Err(unauthorized());
    }
    let held = cloud.get("users", user).ok_or_else(|| absent("user", user))?;
    if held.text("_password") != Cloud::digest(given.text("original_password")) {
        return Err(unauthorized());
    }
    let password = Cloud::digest(given.text("password"));
    cloud.set("users", user, "_password", password);
    revoke_of_user(cloud, user);
    Ok(Reply::empty(204))
}

fn implications(cloud: &Cloud, call: &Call, id: &str) -> Handled {
    if !call.caller.is_admin() {
        return Err(denied("list_implied_roles"));
    }
    let role = cloud.get("roles", id).ok_or_else(|| absent("role", id))?;
    let brief = |role: &Object| {
        let link = format!("{}/v3/roles/{}", call.base, role.text("id"));
        json!({"id": role["id"], "name": role["name"], "links": {"self": link}})
    };
    let all: Vec<Value> = implied(role.text("name"))
        .and_then(|name| cloud.find("roles", "name", name))
        .map(brief)
        .into_iter()
        .collect();
    let link = format!("{}/v3/roles/{id}/implies", call.base);
    Ok(Reply::ok(
        json!({"role_inference": {"prior_role": brief(role), "implies": all}, "links": {"self": link}}),
    ))
}

fn grant(cloud: &mut Cloud, call: &Call, (project, user): (&str, &str), rest: &[&str]) -> Handled {
    let verb = match call.method.as_str() {
        "GET" | "HEAD" if rest.is_empty() => "list_grants",
        "GET" | "HEAD" => "check_grant",
        "PUT" => "create_grant",
        "DELETE" => "revoke_grant",
        _ => return Err(not_allowed("DELETE, GET, HEAD, OPTIONS, PUT")),
    };
    if !call.caller.is_admin() {
        return Err(denied(verb));
    }
    let Some(role) = rest.first() else {
        let held: Vec<Value> = cloud
            .all("grants")
            .filter(|it| it.text("project") == project && it.text("user") == user)
            .filter_map(|it| Some(linked(call, "roles", cloud.get("roles", it.text("role"))?)))
            .collect();
        return Ok(collection(call, "roles", held));
    };
    cloud.get("projects", project).ok_or_else(|| absent("project", project))?;
    cloud.get("roles", role).ok_or_else(|| absent("role", role))?;
    let id = format!("{project} {user} {role}");
    match verb {
        "create_grant" => {
            cloud.get("users", user).ok_or_else(|| absent("user", user))?;
            cloud.put("grants", object(json!({"id": id, "project": project, "user": user, "role": role})));
        }
        _ => {
            let text = format!(
                "Could not find role assignment with role: {role}, user or group: {user}, project, domain, or system: {project}."
            );
            cloud.get("grants", &id).ok_or_else(|| Fail::missing(text))?;
            if verb == "revoke_grant" {
                cloud.remove("grants", &id);
                // Keystone does not ask which of them needed the role.
                let lost = |it: &Object| it.text("user_id") == user && it.text("project_id") == project;
                let all = cloud.all("application_credentials");
                let ids: Vec<_> = all.filter(|it| lost(it)).map(|it| it.text("id").to_owned()).collect();
                for id in ids {
                    cloud.remove("application_credentials", &id);
                    cloud.put("lost_credentials", object(json!({"id": id})));
                }
            }
        }
    }
    Ok(Reply::empty(204))
}

fn assignments(cloud: &Cloud, call: &Call) -> Handled {
    if !call.caller.is_admin() {
        return Err(denied("list_role_assignments"));
    }
    if call.param("user.id").is_some() && call.param("group.id").is_some() {
        let pairs: Vec<_> = call.query.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
        return Err(Fail::bad(format!(
            "ImmutableMultiDict([{}]) is valid under each of {{'required': ['group.id']}}, {{'required': ['user.id']}}",
            pairs.join(", ")
        )));
    }
    let names = call.param("include_names").is_some_and(|value| value != "0");
    let effective = call.param("effective").is_some_and(|value| value != "0");
    let wanted = |name: &str, held: &str| call.param(name).is_none_or(|id| id == held);
    let name_of = |kind: &str, id: &str| cloud.get(kind, id).map(|it| it["name"].clone()).unwrap_or_default();
    let domain = json!({"id": "default", "name": "Default"});
    let mut all = Vec::new();
    for grant in cloud.all("grants") {
        let (project, user, role) = (grant.text("project"), grant.text("user"), grant.text("role"));
        if !wanted("scope.project.id", project) || !wanted("user.id", user) {
            continue;
        }
        let link = format!("{}/v3/projects/{project}/users/{user}/roles/{role}", call.base);
        let direct = cloud.get("roles", role).map(|it| it.text("name").to_owned()).unwrap_or_default();
        let mut held = vec![(role.to_owned(), direct)];
        if effective {
            let more =
                roles_of(cloud, user, project).into_iter().filter(|(_, name)| implies(&held[0].1, name));
            let more: Vec<_> = more.collect();
            held.extend(more);
        }
        for (index, (id, name)) in held.iter().enumerate() {
            if !wanted("role.id", id) {
                continue;
            }
            let mut entry = json!({
                "links": {"assignment": link},
                "scope": {"project": {"id": project}},
                "user": {"id": user},
                "role": {"id": id},
            });
            if index > 0 {
                entry["links"]["prior_role"] =
                    json!(format!("{}/v3/prior_role/{id}/implies/{role}", call.base));
            }
            if names {
                entry["scope"]["project"]["name"] = name_of("projects", project);
                entry["scope"]["project"]["domain"] = domain.clone();
                entry["user"]["name"] = name_of("users", user);
                entry["user"]["domain"] = domain.clone();
                entry["role"]["name"] = json!(name);
            }
            all.push(entry);
        }
    }
    Ok(collection(call, "role_assignments", all))
}

/// Whether a role implies another, over any number of steps.
fn implies(role: &str, other: &str) -> bool {
    implied(role).is_some_and(|next| next == other || implies(next, other))
}
