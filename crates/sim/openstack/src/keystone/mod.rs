//! Keystone v3.14: tokens, projects, users, roles, application credentials, trusts, and the catalog.

pub(crate) mod catalog;
mod credentials;
mod resources;
pub(crate) mod tokens;
mod trusts;

use http::Method;
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, shown};
use crate::wire::{Body, Call, Fail, Handled, Reply};

/// Tables that all regions share.
pub(crate) const TABLES: &[&str] = &[
    "domains",
    "projects",
    "users",
    "roles",
    "grants",
    "tokens",
    "application_credentials",
    "lost_credentials",
    "access_rules",
    "trusts",
    "services",
    "endpoints",
    "regions",
    "validations",
];

const UNKNOWN_PATH: &str = "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.</p>\n";

/// Ends every text about a body that cannot be read.
const INCORRECT: &str = "The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.";

pub(crate) fn handle(cloud: &mut Cloud, call: &mut Call) -> Handled {
    let path: Vec<String> = call.path.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let reply = route(cloud, call, &path);
    reply.map(|reply| reply.with("vary", "X-Auth-Token"))
}

fn route(cloud: &mut Cloud, call: &mut Call, path: &[&str]) -> Handled {
    match (call.method.as_str(), path) {
        ("GET" | "HEAD", []) => {
            let location = format!("{}/v3/", call.base);
            let versions = json!({"versions": {"values": [version(call)]}});
            return Ok(Reply::json(300, versions).with("location", location));
        }
        ("GET" | "HEAD", ["v3"]) => return Ok(Reply::ok(json!({"version": version(call)}))),
        ("POST", ["v3", "auth", "tokens"]) => return tokens::issue(cloud, call),
        _ => {}
    }
    let Some(("v3", path)) = path.split_first().map(|(first, rest)| (*first, rest)) else {
        return Err(unknown_path());
    };
    if !known(path) {
        return Err(unknown_path());
    }
    call.caller = tokens::authenticate(cloud, call.header("x-auth-token"))?;
    match (call.method.as_str(), path) {
        ("GET" | "HEAD", ["auth", "tokens"]) => tokens::validate(cloud, call),
        ("DELETE", ["auth", "tokens"]) => tokens::revoke(cloud, call),
        ("GET", ["auth", "catalog"]) => {
            let links = json!({"self": format!("{}/v3/auth/catalog", call.base)});
            Ok(Reply::ok(json!({"catalog": catalog::catalog(cloud), "links": links})))
        }
        ("GET", ["auth", "projects"]) => {
            let user = call.caller.user.clone();
            let projects = own_projects(cloud, &user);
            Ok(collection(call, "projects", projects))
        }
        ("GET", ["auth", "domains"]) => Ok(collection(call, "domains", Vec::new())),
        ("GET", ["auth", "system"]) => {
            let all = if call.caller.is_admin() { vec![json!({"all": true})] } else { Vec::new() };
            Ok(Reply::ok(json!({"system": all, "links": {"self": format!("{}/v3/auth/system", call.base)}})))
        }
        ("GET", ["limits" | "registered_limits" | "groups"]) => {
            if path[0] == "groups" && !call.caller.is_admin() {
                return Err(denied("list_groups"));
            }
            Ok(collection(call, path[0], Vec::new()))
        }
        (_, ["users", user, "application_credentials", ..]) => {
            credentials::handle(cloud, call, user, &path[3..])
        }
        ("GET", ["users", user, "access_rules", rest @ ..]) => {
            credentials::access_rules(cloud, call, user, rest)
        }
        ("GET", ["users", user, "projects"]) => {
            if call.caller.user != *user && !call.caller.is_admin() {
                return Err(denied("list_user_projects"));
            }
            let projects = own_projects(cloud, user);
            Ok(collection(call, "projects", projects))
        }
        ("POST", ["users", user, "password"]) => resources::change_password(cloud, call, user),
        (_, ["OS-TRUST", "trusts", rest @ ..]) => trusts::handle(cloud, call, rest),
        _ => resources::handle(cloud, call, path),
    }
}

/// Whether a path exists for some method.
fn known(path: &[&str]) -> bool {
    matches!(
        path,
        ["auth", "tokens" | "catalog" | "projects" | "domains" | "system"]
            | ["projects" | "users" | "roles" | "domains" | "services" | "endpoints" | "regions"]
            | ["projects" | "users" | "roles" | "domains" | "services" | "endpoints" | "regions", _]
            | ["limits" | "registered_limits" | "groups" | "role_assignments" | "role_inferences"]
            | ["roles", _, "implies"]
            | ["projects", _, "users", _, "roles"]
            | ["projects", _, "users", _, "roles", _]
            | ["projects", _, "tags"]
            | ["projects", _, "tags", _]
            | ["users", _, "projects" | "password" | "access_rules" | "application_credentials"]
            | ["users", _, "access_rules" | "application_credentials", _]
            | ["OS-TRUST", "trusts"]
            | ["OS-TRUST", "trusts", _]
    )
}

fn version(call: &Call) -> Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/v3/", call.base)}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}

fn unknown_path() -> Fail {
    Fail::reply(
        Reply {
            status: 404,
            headers: Vec::new(),
            body: Body::Text("text/html; charset=utf-8", UNKNOWN_PATH.to_owned()),
        }
        .with("vary", "X-Auth-Token"),
    )
}

pub(crate) fn not_allowed(allow: &str) -> Fail {
    let text = "The method is not allowed for the requested URL.";
    Fail::reply(Reply::json(405, json!({"message": text})).with("allow", allow).with("vary", "X-Auth-Token"))
}

/// Errors in Keystone's shape.
pub(crate) fn refuse(cloud: &Cloud, fail: Fail) -> Reply {
    if let Some(reply) = fail.reply {
        return *reply;
    }
    let title = match fail.status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let mut reply = Reply::json(
        fail.status,
        json!({"error": {"code": fail.status, "message": fail.message, "title": title}}),
    );
    if fail.status == 401 {
        reply = reply.with("www-authenticate", challenge(cloud));
    }
    reply.headers.extend(fail.headers);
    reply.with("vary", "X-Auth-Token")
}

pub(crate) fn challenge(cloud: &Cloud) -> String {
    let region = cloud.regions.first().map_or("", String::as_str);
    format!("Keystone uri=\"{}/v3\"", cloud.endpoints.url(region, crate::service::Service::Identity))
}

pub(crate) fn unauthorized() -> Fail {
    Fail::new(401, "", "The request you have made requires authentication.")
}

fn denied(action: &str) -> Fail {
    Fail::forbidden(format!("You are not authorized to perform the requested action: identity:{action}."))
}

fn absent(kind: &str, id: &str) -> Fail {
    Fail::missing(format!("Could not find {kind}: {id}."))
}

/// A body that is not JSON, or has nothing under the key.
fn body(call: &Call, key: &str) -> Result<Object, Fail> {
    let value = match call.body.is_empty() {
        true => Value::Null,
        false => call
            .json()
            .ok_or_else(|| Fail::bad(format!("Expecting to find valid JSON in request body. {INCORRECT}")))?,
    };
    match value {
        Value::Object(mut fields) => match fields.remove(key) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(Fail::bad(format!("Expecting to find {key} in request body. {INCORRECT}"))),
        },
        _ => Err(Fail::bad(format!("Expecting to find {key} in request body. {INCORRECT}"))),
    }
}

fn collection(call: &Call, key: &str, mut entries: Vec<Value>) -> Reply {
    let full = format!("{}{}", call.base, call.raw_path);
    let this = if call.raw_query.is_empty() { full.clone() } else { format!("{full}?{}", call.raw_query) };
    let mut next = Value::Null;
    let mut truncated = false;
    if let Some(limit) = call.param("limit").and_then(|limit| limit.parse::<usize>().ok()) {
        if let Some(marker) = call.param("marker") {
            let from = entries.iter().position(|e| e["id"] == marker).map_or(0, |at| at + 1);
            entries.drain(..from);
        }
        if limit > 0 && entries.len() > limit {
            entries.truncate(limit);
            truncated = true;
            let last = entries.last().map_or("", |last| last["id"].as_str().unwrap_or_default());
            next = json!(format!("{full}?{}", call.page_query(last)));
        }
    }
    let mut body = json!({"links": {"next": next, "self": this, "previous": null}});
    body[key] = Value::Array(entries);
    if truncated {
        body["truncated"] = json!(true);
    }
    Reply::ok(body)
}

/// A resource with its link.
fn linked(call: &Call, plural: &str, object: &Object) -> Value {
    let mut shown = shown(object);
    shown.insert(
        "links".to_owned(),
        json!({"self": format!("{}/v3/{plural}/{}", call.base, object.text("id"))}),
    );
    Value::Object(shown)
}

fn own_projects(cloud: &Cloud, user: &str) -> Vec<Value> {
    let region = cloud.regions.first().cloned().unwrap_or_default();
    let base = cloud.endpoints.url(&region, crate::service::Service::Identity).to_owned();
    cloud
        .all("projects")
        .filter(|project| {
            project.flag("enabled")
                && cloud
                    .all("grants")
                    .any(|g| g.text("user") == user && g.text("project") == project.text("id"))
        })
        .map(|project| {
            let mut shown = shown(project);
            let link = format!("{base}/v3/projects/{}", project.text("id"));
            shown.insert("links".to_owned(), json!({"self": link}));
            Value::Object(shown)
        })
        .collect()
}

/// Roles of a user on a project with those that they imply, as (id, name).
pub(crate) fn roles_of(cloud: &Cloud, user: &str, project: &str) -> Vec<(String, String)> {
    let mut names: Vec<String> = cloud
        .all("grants")
        .filter(|grant| grant.text("user") == user && grant.text("project") == project)
        .filter_map(|grant| Some(cloud.get("roles", grant.text("role"))?.text("name").to_owned()))
        .collect();
    let mut index = 0;
    while index < names.len() {
        if let Some(implied) = implied(&names[index])
            && !names.iter().any(|held| held == implied)
        {
            names.push(implied.to_owned());
        }
        index += 1;
    }
    names
        .into_iter()
        .filter_map(|name| Some((cloud.find("roles", "name", &name)?.text("id").to_owned(), name)))
        .collect()
}

/// The role that another implies.
fn implied(role: &str) -> Option<&'static str> {
    match role {
        "admin" => Some("manager"),
        "manager" => Some("member"),
        "member" => Some("reader"),
        _ => None,
    }
}

fn is_get(call: &Call) -> bool {
    matches!(call.method, Method::GET | Method::HEAD)
}

/// Names compare as MariaDB compares them: neither case nor blanks at the end count.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    one.trim_end().to_lowercase() == other.trim_end().to_lowercase()
}
