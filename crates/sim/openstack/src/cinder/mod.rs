//! Cinder v3 up to 3.71: volumes, snapshots, types, quotas.

mod actions;
mod list;
mod quotas;
mod snapshots;
mod types;
mod volumes;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::nova::{refuse, versions};
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(crate) use actions::{attach_devices, attached, detached, hold_devices, next_device, reserve_devices};

pub(crate) fn versions(call: &Call) -> Option<Reply> {
    let status = match call.segments().as_slice() {
        [] => 300,
        ["v3"] => 200,
        _ => return None,
    };
    let version = json!({
        "id": "v3.0", "status": "CURRENT", "version": "3.71", "min_version": "3.0", "updated": "2023-08-31T00:00:00Z",
        "links": [
            {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
            {"rel": "self", "href": format!("{}/v3/", call.base)},
        ],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    });
    let reply = Reply::json(status, json!({"versions": [version]}));
    Some(reply.with("openstack-api-version", "volume 3.0").with("vary", "OpenStack-API-Version"))
}

pub(crate) fn handle(cloud: &mut Cloud, call: &mut Call) -> Reply {
    let foreign = call.header("openstack-api-version").is_some() && versions::asked(call, "volume").is_none();
    let negotiated = match foreign {
        true => Err(Fail::bad(MALFORMED)),
        false => versions::negotiate(call, "volume", (3, 0), (3, 71)),
    };
    match negotiated {
        Ok(version) => call.version = version,
        Err(fail) => return versions::with_headers(call, refuse(fail), "volume"),
    }
    let mut path: Vec<String> = call.path.iter().skip(1).cloned().collect();
    if let Some(first) = path.first()
        && first.len() == 32
        && first.chars().all(|c| c.is_ascii_hexdigit())
    {
        if *first != call.caller.project() {
            return versions::with_headers(call, refuse(Fail::bad("Malformed request url")), "volume");
        }
        path.remove(0);
    }
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match route(cloud, call, &path) {
        Some(handled) => versions::with_headers(call, handled.unwrap_or_else(refuse), "volume"),
        None => {
            let text = "The resource could not be found.<br /><br />\n\n\n";
            Reply::json(404, json!({"message": text, "code": "404 Not Found", "title": "Not Found"}))
        }
    }
}

const MALFORMED: &str =
    "The server could not comply with the request since it is either malformed or otherwise incorrect.";

fn route(cloud: &mut Cloud, call: &Call, path: &[&str]) -> Option<Handled> {
    Some(match (call.method.as_str(), path) {
        ("GET", ["volumes"]) => list::list(cloud, call, "volumes", false),
        ("GET", ["volumes", "detail"]) => list::list(cloud, call, "volumes", true),
        ("GET", ["volumes", "summary"]) => Ok(volumes::summary(cloud, call)),
        ("POST", ["volumes"]) => volumes::create(cloud, call),
        ("GET", ["volumes", id]) => find(cloud, call, "volumes", id)
            .map(|it| Reply::ok(json!({"volume": volumes::detail(call, &it)}))),
        ("PUT", ["volumes", id]) => volumes::update(cloud, call, id),
        ("DELETE", ["volumes", id]) => volumes::delete(cloud, call, id),
        ("POST", ["volumes", id, "action"]) => actions::act(cloud, call, id),
        (_, ["volumes", id, "metadata", rest @ ..]) => volumes::metadata(cloud, call, id, rest),
        ("GET", ["snapshots"]) => list::list(cloud, call, "snapshots", false),
        ("GET", ["snapshots", "detail"]) => list::list(cloud, call, "snapshots", true),
        (_, ["snapshots", rest @ ..]) => snapshots::handle(cloud, call, rest)?,
        (_, ["types", rest @ ..]) => types::handle(cloud, call, rest)?,
        (_, ["os-quota-sets", rest @ ..]) => quotas::handle(cloud, call, rest)?,
        ("GET", ["limits"]) => Ok(quotas::limits(cloud, call)),
        ("GET", ["os-availability-zone"]) => {
            let zones: Vec<Value> = zones(cloud)
                .iter()
                .map(|name| json!({"zoneName": name, "zoneState": {"available": true}}))
                .collect();
            Ok(Reply::ok(json!({"availabilityZoneInfo": zones})))
        }
        ("GET", ["os-services"]) => match call.caller.is_admin() {
            true => Ok(Reply::ok(json!({"services": []}))),
            false => Err(policy("volume_extension:services:index")),
        },
        ("GET", ["backups" | "backups/detail", ..]) => Ok(Reply::ok(json!({"backups": []}))),
        _ => return None,
    })
}

fn zones(cloud: &Cloud) -> Vec<String> {
    let mut zones: Vec<String> = cloud.all("hosts").map(|host| host.text("zone").to_owned()).collect();
    zones.sort();
    zones.dedup();
    zones
}

fn policy(rule: &str) -> Fail {
    Fail::forbidden(format!("Policy doesn't allow {rule} to be performed."))
}

fn absent(kind: &str, id: &str) -> Fail {
    let word = if kind == "volumes" { "Volume" } else { "Snapshot" };
    Fail::missing(format!("{word} {id} could not be found."))
}

fn find(cloud: &Cloud, call: &Call, kind: &str, id: &str) -> Result<Object, Fail> {
    let found = cloud
        .get(kind, id)
        .filter(|it| call.caller.is_admin() || it.text("_project") == call.caller.project());
    found.cloned().ok_or_else(|| absent(kind, id))
}

/// The object under a key of the body.
fn body(call: &Call, key: &str) -> Result<Object, Fail> {
    call.object(key).ok_or_else(|| match call.json() {
        Some(Value::Object(_)) => Fail::bad(format!("'{key}' is a required property")),
        _ => Fail::bad("Malformed request body"),
    })
}

/// A volume or snapshot reaches a status; `gone` removes it.
pub(crate) fn reach(cloud: &mut Cloud, kind: &str, id: &str, status: &str) {
    let Some(row) = cloud.get(kind, id) else { return };
    if status == "gone" {
        cloud.remove(kind, id);
        return;
    }
    // A server may have taken it in the meantime.
    if status == "attaching" && row.text("status") != "reserved" {
        return;
    }
    if kind == "volumes" && status == "available" && row.has("_image") {
        cloud.set(kind, id, "bootable", "true");
    }
    let now = cloud.naive() + ".000000";
    cloud.set(kind, id, "status", status);
    cloud.set(kind, id, "updated_at", now);
    cloud.set(kind, id, "os-extended-snapshot-attributes:progress", "100%");
}
