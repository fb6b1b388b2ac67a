//! Application credentials and their access rules.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::{INCORRECT, absent, body, collection, denied, is_get, not_allowed, roles_of, same_name};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object, shown};
use crate::wire::{Call, Fail, Handled, Reply, validate};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, user: &str, rest: &[&str]) -> Handled {
    let own = call.caller.user == user;
    match rest {
        [] if is_get(call) => {
            if !own && !call.caller.is_admin() {
                return Err(denied("list_application_credentials"));
            }
            let name = call.param("name");
            let found: Vec<Value> = cloud
                .all("application_credentials")
                .filter(|it| {
                    it.text("user_id") == user && name.is_none_or(|name| same_name(it.text("name"), name))
                })
                .map(|it| show(call, it))
                .collect();
            Ok(collection(call, "application_credentials", found))
        }
        [] if call.method == "POST" => {
            if !own {
                return Err(denied("create_application_credential"));
            }
            unrestricted(call)?;
            create(cloud, call, user)
        }
        [] => Err(not_allowed("GET, HEAD, OPTIONS, POST")),
        [id] if is_get(call) || call.method == "DELETE" => {
            let verb = if is_get(call) { "get" } else { "delete" };
            if !own && !call.caller.is_admin() {
                return Err(denied(&format!("{verb}_application_credential")));
            }
            if verb == "delete" {
                unrestricted(call)?;
            }
            let found = cloud.get("application_credentials", id).filter(|it| it.text("user_id") == user);
            let found = found.ok_or_else(|| absent("Application Credential", id))?;
            if verb == "get" {
                return Ok(Reply::ok(json!({"application_credential": show(call, found)})));
            }
            cloud.remove("application_credentials", id);
            Ok(Reply::empty(204))
        }
        _ => Err(not_allowed("GET, HEAD, DELETE, OPTIONS")),
    }
}

/// A restricted credential manages no others.
fn unrestricted(call: &Call) -> Result<(), Fail> {
    if call.caller.credential.is_some() && call.caller.restricted {
        let text = "Using method 'application_credential' is not allowed for managing additional application credentials.";
        return Err(Fail::forbidden(format!(
            "You are not authorized to perform the requested action: {text}."
        )));
    }
    Ok(())
}

fn create(cloud: &mut Cloud, call: &Call, user: &str) -> Handled {
    let given = body(call, "application_credential")?;
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 255},
            "description": {"type": ["string", "null"]},
            "secret": {"type": ["null", "string"]},
            "expires_at": {"type": ["null", "string"]},
            "unrestricted": {"type": ["boolean", "null"]},
            "roles": {"type": "array"},
            "access_rules": {"type": "array"},
        },
    });
    validate("application_credential", &Value::Object(given.clone()), &schema).map_err(Fail::bad)?;
    let project = call.caller.project.clone();
    let mut held = project.as_deref().map(|project| roles_of(cloud, user, project)).unwrap_or_default();
    // Roles that the user has and the token lacks would be more than was delegated.
    held.retain(|(_, name)| call.caller.roles.contains(name));
    let mut roles = Vec::new();
    if given.contains_key("roles") && !given.list("roles").is_empty() {
        for role in given.list("roles") {
            let found =
                held.iter().find(|(id, name)| role["id"] == id.as_str() || role["name"] == name.as_str());
            let text = "Invalid application credential: Cannot create an application credential with unassigned role";
            roles.push(found.ok_or_else(|| Fail::bad(text))?.0.clone());
        }
    } else {
        roles = held.into_iter().map(|(id, _)| id).collect();
    }
    let mut expires = 0;
    if let Some(text) = given.get("expires_at").and_then(Value::as_str) {
        expires = parse_time(text)
            .ok_or_else(|| Fail::bad(format!("Timestamp not in expected format. {INCORRECT}")))?;
        if expires < cloud.now.as_millisecond() {
            return Err(Fail::bad(format!("The 'expires_at' must not be before now. {INCORRECT}")));
        }
    }
    let name = given.text("name");
    if cloud
        .all("application_credentials")
        .any(|it| it.text("user_id") == user && same_name(it.text("name"), name))
    {
        return Err(Fail::conflict(format!(
            "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}."
        )));
    }
    let secret = match given.get("secret").and_then(Value::as_str) {
        Some(secret) => secret.to_owned(),
        None => format!("{}{}", cloud.hex(), cloud.hex()),
    };
    let roles: Vec<Value> = roles
        .iter()
        .filter_map(|id| cloud.get("roles", id))
        .map(|role| Value::Object(role.clone()))
        .collect();
    let mut credential = object(json!({
        "id": cloud.hex(),
        "name": name,
        "description": given.get("description").cloned().unwrap_or_default(),
        "user_id": user,
        "project_id": project,
        "system": null,
        "expires_at": given.get("expires_at").filter(|it| !it.is_null()).map(|_| micros(expires)),
        "unrestricted": given.get("unrestricted").cloned().unwrap_or_default(),
        "roles": roles,
        "_secret": Cloud::digest(&secret),
        "_expires": expires,
    }));
    if given.contains_key("access_rules") {
        let rules: Vec<Value> =
            given.list("access_rules").iter().map(|rule| access_rule(cloud, user, rule)).collect();
        credential.insert("access_rules".to_owned(), Value::Array(rules));
    }
    let mut body = show(call, &credential);
    body["secret"] = json!(secret);
    cloud.put("application_credentials", credential);
    Ok(Reply::json(201, json!({"application_credential": body})))
}

/// The user's rule with this content: the one there is, or a new one.
fn access_rule(cloud: &mut Cloud, user: &str, rule: &Value) -> Value {
    let same = |held: &Object| ["path", "method", "service"].iter().all(|f| held.get(*f) == rule.get(*f));
    let found = cloud.all("access_rules").find(|it| it.text("_user") == user && same(it)).cloned();
    let found = found.unwrap_or_else(|| {
        let made = object(json!({
            "id": cloud.hex(), "path": rule["path"], "method": rule["method"], "service": rule["service"], "_user": user,
        }));
        cloud.put("access_rules", made.clone());
        made
    });
    Value::Object(shown(&found))
}

pub(super) fn access_rules(cloud: &Cloud, call: &Call, user: &str, rest: &[&str]) -> Handled {
    if call.caller.user != user && !call.caller.is_admin() {
        return Err(denied("list_access_rules"));
    }
    let link = |it: &Object| {
        let mut it = shown(it);
        let href = format!("{}/v3/access_rules/{}", call.base, it.text("id"));
        it.insert("links".to_owned(), json!({"self": href}));
        Value::Object(it)
    };
    match rest {
        [] => {
            let found = cloud.all("access_rules").filter(|it| it.text("_user") == user).map(link).collect();
            Ok(collection(call, "access_rules", found))
        }
        [id, ..] => {
            let found = cloud.get("access_rules", id).filter(|it| it.text("_user") == user);
            Ok(Reply::ok(json!({"access_rule": link(found.ok_or_else(|| absent("Access Rule", id))?)})))
        }
    }
}

fn show(call: &Call, credential: &Object) -> Value {
    let mut shown = shown(credential);
    let link = format!("{}/v3/application_credentials/{}", call.base, credential.text("id"));
    shown.insert("links".to_owned(), json!({"self": link}));
    Value::Object(shown)
}

fn micros(millis: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}

/// A time with or without a zone, in milliseconds.
fn parse_time(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond());
    }
    let time: DateTime = text.parse().ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}
