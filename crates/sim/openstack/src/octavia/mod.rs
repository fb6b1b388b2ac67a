//! Octavia v2.30 with the providers amphora and ovn: load balancers and what belongs to them. Everything is immutable while its
//! load balancer is PENDING.

mod attributes;
mod balancers;
mod children;
mod ovn;
mod quotas;
mod show;

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(crate) use balancers::{gone, ready};

/// Singular, plural, and the word of error texts.
pub(super) struct Kind(pub(super) &'static str, pub(super) &'static str, pub(super) &'static str);

const KINDS: &[Kind] = &[
    Kind("loadbalancer", "loadbalancers", "Load Balancer"),
    Kind("listener", "listeners", "Listener"),
    Kind("pool", "pools", "Pool"),
    Kind("member", "members", "Member"),
    Kind("healthmonitor", "healthmonitors", "Health Monitor"),
    Kind("l7policy", "l7policies", "L7 Policy"),
];

impl Kind {
    fn absent(&self, id: &str) -> Fail {
        Fail::missing(format!("{} {id} not found.", self.2))
    }

    /// A resource of the caller's project. Octavia says of foreign ones that they are forbidden, not that they are absent.
    fn find(&self, cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
        let found = cloud.get(self.1, id).cloned().ok_or_else(|| self.absent(id))?;
        if !call.caller.is_admin() && found.text("project_id") != call.caller.project() {
            return Err(denied());
        }
        Ok(found)
    }
}

pub(super) fn kind(singular: &str) -> &'static Kind {
    KINDS.iter().find(|it| it.0 == singular).unwrap_or(&KINDS[0])
}

fn denied() -> Fail {
    Fail::forbidden("Policy does not allow this request to be performed.")
}

fn immutable(word: &str, id: &str) -> Fail {
    Fail::conflict(format!("{word} {id} is immutable and cannot be updated."))
}

pub(crate) fn versions(call: &Call) -> Option<Reply> {
    call.path.is_empty().then(|| {
        let all: Vec<Value> = (0..=30)
            .map(|minor| {
                let status = if minor == 30 { "CURRENT" } else { "SUPPORTED" };
                let year = 2016 + minor / 4;
                json!({
                    "id": format!("v2.{minor}"), "status": status, "updated": format!("{year}-12-11T00:00:00Z"),
                    "links": [{"href": format!("{}/v2", call.base), "rel": "self"}],
                })
            })
            .collect();
        Reply::ok(json!({"versions": all}))
    })
}

/// Errors in Octavia's shape.
pub(crate) fn refuse(fail: Fail) -> Reply {
    if let Some(reply) = fail.reply {
        return *reply;
    }
    let code = if fail.status >= 500 { "Server" } else { "Client" };
    Reply::json(fail.status, json!({"faultcode": code, "faultstring": fail.message, "debuginfo": null}))
}

fn plain(status: u16, title: &str, description: &str) -> Fail {
    Fail::reply(Reply::json(status, json!({"code": status, "title": title, "description": description})))
}

pub(crate) fn handle(cloud: &mut Cloud, call: &Call) -> Handled {
    let path = call.segments();
    let path = match path.as_slice() {
        ["v2", "lbaas", rest @ ..] | ["v2.0", "lbaas", rest @ ..] => rest,
        ["v2", "octavia", ..] => {
            return if call.caller.is_admin() {
                Ok(Reply::ok(json!({"amphorae": [], "amphorae_links": []})))
            } else {
                Err(denied())
            };
        }
        ["v2" | "v2.0"] => {
            let link = format!("{}/v2", call.base);
            return Ok(Reply::ok(
                json!({"versions": [{"id": "v2.30", "status": "CURRENT", "links": [{"href": link, "rel": "self"}]}]}),
            ));
        }
        _ => return Err(plain(404, "Not Found", "")),
    };
    let method = call.method.as_str();
    let write = matches!(method, "POST" | "PUT" | "DELETE");
    let may = call.caller.is_member()
        || call.caller.has("load-balancer_member")
        || call.caller.has("load-balancer_admin");
    if write && !may {
        return Err(denied());
    }
    match (method, path) {
        ("GET", ["providers"]) => Ok(Reply::ok(json!({"providers": [
            {"name": "amphora", "description": "The Octavia Amphora driver."},
            {"name": "octavia", "description": "Deprecated alias of the Octavia Amphora driver."},
            {"name": "ovn", "description": "Octavia OVN driver."},
        ], "providers_links": []}))),
        ("GET", ["providers", ..]) => Err(denied()),
        ("GET", ["flavors"]) => Ok(Reply::ok(json!({"flavors": [], "flavors_links": []}))),
        ("GET", ["flavors", id]) => Err(Fail::missing(format!("Flavor {id} not found."))),
        ("GET", ["availabilityzones"]) => {
            Ok(Reply::ok(json!({"availability_zones": [], "availability_zones_links": []})))
        }
        (_, ["quotas", rest @ ..]) => quotas::handle(cloud, call, rest),
        ("GET", ["loadbalancers", id, "status" | "statuses"]) => {
            let row = kind("loadbalancer").find(cloud, call, id)?;
            Ok(Reply::ok(json!({"statuses": {"loadbalancer": show::status_tree(cloud, &row)}})))
        }
        ("GET", [word @ ("loadbalancers" | "listeners"), id, "stats"]) => {
            kind(word.trim_end_matches('s')).find(cloud, call, id)?;
            Ok(Reply::ok(json!({"stats": {
                "bytes_in": 0, "bytes_out": 0, "active_connections": 0, "total_connections": 0, "request_errors": 0,
            }})))
        }
        ("PUT", ["loadbalancers", _, "failover"]) => match call.caller.is_admin() {
            true => Ok(Reply::empty(202)),
            false => Err(denied()),
        },
        ("POST", ["loadbalancers"]) => balancers::create(cloud, call),
        ("PUT", ["loadbalancers", id]) => balancers::update(cloud, call, id),
        ("DELETE", ["loadbalancers", id]) => balancers::delete(cloud, call, id),
        (_, ["pools", pool, "members", rest @ ..]) => members(cloud, call, pool, rest),
        (_, [word, rest @ ..]) => {
            let Some(kind) = KINDS.iter().find(|it| it.1 == *word && it.0 != "member") else {
                return Err(plain(404, "Not Found", ""));
            };
            match (method, rest) {
                ("GET", []) => list(cloud, call, kind, None),
                ("GET", [id]) => {
                    let row = kind.find(cloud, call, id)?;
                    Ok(Reply::ok(json!({kind.0: selected(call, show::detail(cloud, kind, &row))})))
                }
                ("POST", []) => children::create(cloud, call, kind, None),
                ("PUT", [id]) => children::update(cloud, call, kind, id),
                ("DELETE", [id]) => children::delete(cloud, call, kind, id),
                _ => Err(plain(404, "Not Found", "")),
            }
        }
        _ => Err(plain(404, "Not Found", "")),
    }
}

fn members(cloud: &mut Cloud, call: &Call, pool: &str, rest: &[&str]) -> Handled {
    kind("pool").find(cloud, call, pool)?;
    let member = kind("member");
    match (call.method.as_str(), rest) {
        ("GET", []) => list(cloud, call, member, Some(pool)),
        ("GET", [id]) => {
            let row = member.find(cloud, call, id)?;
            Ok(Reply::ok(json!({"member": selected(call, show::detail(cloud, member, &row))})))
        }
        ("POST", []) => children::create(cloud, call, member, Some(pool)),
        ("PUT", []) => children::batch(cloud, call, pool),
        ("PUT", [id]) => children::update(cloud, call, member, id),
        ("DELETE", [id]) => children::delete(cloud, call, member, id),
        _ => Err(plain(404, "Not Found", "")),
    }
}

fn selected(call: &Call, mut row: Value) -> Value {
    let fields: Vec<&str> = call.params("fields").flat_map(|names| names.split(',')).collect();
    if let Some(row) = row.as_object_mut().filter(|_| !fields.is_empty()) {
        row.retain(|name, _| fields.contains(&name.as_str()));
    }
    row
}

fn list(cloud: &Cloud, call: &Call, kind: &Kind, pool: Option<&str>) -> Handled {
    let wanted = call.param("project_id").or(call.param("tenant_id"));
    if wanted.is_some_and(|project| project != call.caller.project()) && !call.caller.is_admin() {
        return Err(denied());
    }
    if let Some((name, _)) = call.query.iter().find(|(name, _)| !attributes::is_filter(kind.0, name)) {
        return Err(Fail::bad(format!("{} has no attribute '{name}'", kind.2.replace(' ', ""))));
    }
    let limit = match call.param("limit") {
        None => usize::MAX,
        Some(text) => {
            let why = format!("Supplied pagination limit '{text}' is not valid.");
            text.parse().map_err(|_| plain(400, "Bad Request", &why))?
        }
    };
    let mut rows: Vec<&Object> = cloud
        .all(kind.1)
        .filter(|it| call.caller.is_admin() || it.text("project_id") == call.caller.project())
        .filter(|it| pool.is_none_or(|pool| it.text("_pool") == pool))
        .filter(|it| call.query.iter().all(|(name, value)| attributes::filter_matches(it, name, value)))
        .collect();
    if let Some(sort) = call.param("sort") {
        let keys: Vec<(&str, bool)> = sort
            .split(',')
            .map(|part| part.split_once(':').map_or((part, true), |(key, dir)| (key, dir != "desc")))
            .collect();
        rows.sort_by(|a, b| {
            for (key, ascending) in &keys {
                let order = a.text(key).to_lowercase().cmp(&b.text(key).to_lowercase());
                if order != Ordering::Equal {
                    return if *ascending { order } else { order.reverse() };
                }
            }
            Ordering::Equal
        });
    }
    if let Some(marker) = call.param("marker") {
        let at = rows.iter().position(|it| it.text("id") == marker);
        rows.drain(..at.map_or(0, |at| at + 1));
    }
    let full = rows.len() >= limit;
    rows.truncate(limit);
    let mut links = json!([]);
    if let Some(last) = rows.last().filter(|_| full) {
        let mut kept: Vec<String> = call
            .query
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "marker" | "fields" | "page_reverse"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        kept.push(format!("marker={}", last.text("id")));
        links =
            json!([{"rel": "next", "href": format!("{}{}?{}", call.base, call.raw_path, kept.join("&"))}]);
    }
    let rows: Vec<Value> = rows.into_iter().map(|it| selected(call, show::detail(cloud, kind, it))).collect();
    Ok(Reply::ok(json!({kind.1: rows, format!("{}_links", kind.1): links})))
}
