//! Nova v2.1 up to 2.103: flavors, keypairs, server groups, servers, quotas.

mod flavors;
mod groups;
mod keypairs;
mod quotas;
mod servers;
pub(crate) mod versions;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Body, Call, Fail, Handled, Reply, validate};

pub(crate) use servers::{
    BuildStep, build, deleted, detach_volume, finish_action, forget, power_off, used_on,
};

pub(crate) fn handle(cloud: &mut Cloud, call: &mut Call) -> Reply {
    match versions::negotiate(call, "compute", (2, 1), (2, 103)) {
        Ok(version) => call.version = version,
        Err(fail) => return versions::with_headers(call, refuse_here(fail), "compute"),
    }
    let mut path: Vec<String> = call.path.iter().skip(1).cloned().collect();
    // A project may stand in front.
    if let Some(first) = path.first()
        && first.len() == 32
        && first.chars().all(|c| c.is_ascii_hexdigit())
    {
        if *first != call.caller.project() {
            let fail = Fail::bad(format!(
                "Malformed request URL: URL's project_id '{first}' doesn't match Context's project_id '{}'",
                call.caller.project()
            ));
            return versions::with_headers(call, refuse_here(fail), "compute");
        }
        path.remove(0);
    }
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match route(cloud, call, &path) {
        Some(handled) => versions::with_headers(call, handled.unwrap_or_else(refuse_here), "compute"),
        None => {
            let text = "The resource could not be found.<br /><br />\n\n\n";
            Reply::json(404, json!({"message": text, "code": "404 Not Found", "title": "Not Found"}))
        }
    }
}

fn route(cloud: &mut Cloud, call: &Call, path: &[&str]) -> Option<Handled> {
    let method = call.method.as_str();
    Some(match (method, path) {
        (_, ["flavors", rest @ ..]) => flavors::handle(cloud, call, rest)?,
        (_, ["os-keypairs", rest @ ..]) => keypairs::handle(cloud, call, rest)?,
        (_, ["os-server-groups", rest @ ..]) => groups::handle(cloud, call, rest)?,
        (_, ["servers", rest @ ..]) => servers::handle(cloud, call, rest)?,
        (_, ["os-quota-sets", rest @ ..]) => quotas::handle(cloud, call, rest)?,
        ("GET", ["limits"]) => Ok(quotas::limits(cloud, call)),
        ("GET", ["os-availability-zone"]) => Ok(zones(cloud, false)),
        ("GET", ["os-availability-zone", "detail"]) => match call.caller.is_admin() {
            true => Ok(zones(cloud, true)),
            false => Err(policy("os-availability-zone:detail")),
        },
        ("GET", ["os-hypervisors", rest @ ..]) => match call.caller.is_admin() {
            true => Ok(hypervisors(cloud, rest)),
            false => Err(policy(if rest.is_empty() {
                "os-hypervisors:list"
            } else {
                "os-hypervisors:list-detail"
            })),
        },
        ("GET", ["os-services"]) => match call.caller.is_admin() {
            true => Ok(services(cloud)),
            false => Err(policy("os-services:list")),
        },
        ("GET", ["os-aggregates"]) => match call.caller.is_admin() {
            true => Ok(Reply::ok(json!({"aggregates": []}))),
            false => Err(policy("os-aggregates:index")),
        },
        ("GET", ["os-simple-tenant-usage", _]) => Ok(Reply::ok(json!({"tenant_usage": {}}))),
        ("GET", ["extensions"]) => Ok(Reply::ok(json!({"extensions": [extension()]}))),
        ("GET", ["extensions", "os-server-groups"]) => Ok(Reply::ok(json!({"extension": extension()}))),
        ("GET", ["extensions", _]) => Err(Fail::missing("The resource could not be found.")),
        _ => return None,
    })
}

fn extension() -> Value {
    json!({
        "alias": "os-server-groups", "description": "Server group support.", "links": [], "name": "ServerGroups",
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml", "updated": "2014-12-03T00:00:00Z",
    })
}

fn zones(cloud: &Cloud, detail: bool) -> Reply {
    let now = cloud.naive() + ".000000";
    let alive = json!({"available": true, "active": true, "updated_at": now});
    let mut names: Vec<&str> = cloud.all("hosts").map(|host| host.text("zone")).collect();
    names.sort_unstable();
    names.dedup();
    let mut all: Vec<Value> = Vec::new();
    if detail {
        let hosts = json!({"control": {"nova-conductor": alive, "nova-scheduler": alive}});
        all.push(json!({"zoneName": "internal", "zoneState": {"available": true}, "hosts": hosts}));
    }
    for name in names {
        let hosts: Object = cloud
            .all("hosts")
            .filter(|host| host.text("zone") == name)
            .map(|host| (host.text("id").to_owned(), json!({"nova-compute": alive})))
            .collect();
        let hosts = if detail { Value::Object(hosts) } else { Value::Null };
        all.push(json!({"zoneName": name, "zoneState": {"available": true}, "hosts": hosts}));
    }
    Reply::ok(json!({"availabilityZoneInfo": all}))
}

fn hypervisors(cloud: &Cloud, rest: &[&str]) -> Reply {
    let detail = rest.first() == Some(&"detail");
    let all: Vec<Value> = cloud
        .all("hosts")
        .map(|host| {
            let mut shown = json!({
                "id": host["uuid"], "hypervisor_hostname": host["id"], "state": "up", "status": "enabled",
            });
            if detail {
                let used = used_on(cloud, host.text("id"));
                shown["vcpus"] = host["vcpus"].clone();
                shown["memory_mb"] = host["memory"].clone();
                shown["local_gb"] = host["disk"].clone();
                shown["vcpus_used"] = json!(used.0);
                shown["memory_mb_used"] = json!(used.1);
                shown["local_gb_used"] = json!(used.2);
                shown["running_vms"] = json!(used.3);
                shown["hypervisor_type"] = json!("fake");
                shown["hypervisor_version"] = json!(1000);
                shown["host_ip"] = json!("127.0.0.1");
                shown["service"] = json!({"id": host["uuid"], "host": host["id"], "disabled_reason": null});
            }
            shown
        })
        .collect();
    Reply::ok(json!({"hypervisors": all}))
}

fn services(cloud: &Cloud) -> Reply {
    let all: Vec<Value> = cloud
        .all("hosts")
        .map(|host| {
            json!({
                "id": host["uuid"], "binary": "nova-compute", "host": host["id"], "zone": host["zone"],
                "status": "enabled", "state": "up", "updated_at": cloud.naive() + ".000000", "disabled_reason": null,
                "forced_down": false,
            })
        })
        .collect();
    Reply::ok(json!({"services": all}))
}

/// Errors in the shape of Nova and Cinder: the fault's name over code and message.
pub(crate) fn refuse(fail: Fail) -> Reply {
    if let Some(reply) = fail.reply {
        return *reply;
    }
    let name = match fail.status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 => "overLimit",
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    };
    let mut reply = Reply::json(fail.status, json!({name: {"code": fail.status, "message": fail.message}}));
    reply.headers.extend(fail.headers);
    reply
}

/// The same with the charset that Nova names.
fn refuse_here(fail: Fail) -> Reply {
    let mut reply = refuse(fail);
    if let Body::Json(body) = &reply.body {
        reply.body = Body::Text("application/json; charset=UTF-8", body.to_string());
    }
    reply
}

fn policy(rule: &str) -> Fail {
    Fail::forbidden(format!("Policy doesn't allow os_compute_api:{rule} to be performed."))
}

/// The body, checked against a schema.
fn body(call: &Call, schema: &Value) -> Result<Object, Fail> {
    let body = match call.json() {
        Some(Value::Object(body)) => body,
        _ => return Err(Fail::bad("Malformed request body")),
    };
    validate("", &Value::Object(body.clone()), schema).map_err(Fail::bad)?;
    Ok(body)
}

fn links(call: &Call, kind: &str, id: &str) -> Value {
    json!([
        {"rel": "self", "href": format!("{}/v2.1/{kind}/{id}", call.base)},
        {"rel": "bookmark", "href": format!("{}/{kind}/{id}", call.base)},
    ])
}

fn bookmark(call: &Call, kind: &str, id: &str) -> Value {
    json!([{"rel": "bookmark", "href": format!("{}/{kind}/{id}", call.base)}])
}

fn encode(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    percent_encoding::utf8_percent_encode(text, KEPT).to_string()
}

/// A page of a list, and the link to the next.
fn page(call: &Call, key: &str, mut rows: Vec<Value>) -> Result<(Vec<Value>, Option<Value>), Fail> {
    if let Some(marker) = call.param("marker") {
        let at = rows.iter().position(|row| row["id"] == marker);
        let at = at.ok_or_else(|| Fail::bad(format!("marker [{marker}] not found")))?;
        rows.drain(..=at);
    }
    let Some(text) = call.param("limit") else { return Ok((rows, None)) };
    let limit: usize = text.parse().map_err(|_| {
        let pattern = "'^[0-9]*$'";
        Fail::bad(format!(
            "Invalid input for query parameters limit. Value: {text}. '{text}' does not match {pattern}"
        ))
    })?;
    let limit = limit.min(1000);
    let full = rows.len() > limit || (rows.len() == limit && limit > 0);
    rows.truncate(limit);
    let mut next = None;
    if let Some(last) = rows.last().filter(|_| full) {
        let id = last["id"].as_str().unwrap_or_default();
        let mut pairs: Vec<String> =
            call.query
                .iter()
                .filter(|(name, _)| key != "servers" || servers::is_known(name))
                .map(|(name, value)| {
                    if name == "marker" {
                        format!("marker={id}")
                    } else {
                        format!("{name}={}", encode(value))
                    }
                })
                .collect();
        pairs.sort();
        if call.param("marker").is_none() {
            pairs.push(format!("marker={id}"));
        }
        let href = format!("{}{}?{}", call.base, call.raw_path, pairs.join("&"));
        next = Some(json!([{"rel": "next", "href": href}]));
    }
    Ok((rows, next))
}

fn listed(key: &str, (rows, next): (Vec<Value>, Option<Value>)) -> Reply {
    let mut body = json!({key: rows});
    if let Some(next) = next {
        body[format!("{key}_links")] = next;
    }
    Reply::ok(body)
}
