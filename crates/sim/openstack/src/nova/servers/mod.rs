//! Servers.

mod actions;
mod attachments;
mod build;
mod create;
mod labels;
mod list;
mod show;

use serde_json::{Value, json};

use super::policy;
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, Handled, Reply};

pub(crate) use actions::{finish_action, power_off};
pub(crate) use attachments::detach_volume;
pub(super) use list::is_known;

pub(crate) use build::{BuildStep, build, deleted, forget, used_on};

pub(super) fn handle(cloud: &mut Cloud, call: &Call, rest: &[&str]) -> Option<Handled> {
    Some(match (call.method.as_str(), rest) {
        ("GET", []) => list::list(cloud, call, false),
        ("GET", ["detail"]) => list::list(cloud, call, true),
        ("POST", []) => create::create(cloud, call),
        ("GET", [id]) => {
            find(cloud, call, id).map(|it| Reply::ok(json!({"server": show::detail(cloud, call, &it)})))
        }
        ("PUT", [id]) => update(cloud, call, id),
        ("DELETE", [id]) => delete(cloud, call, id),
        ("POST", [id, "action"]) => actions::act(cloud, call, id),
        ("GET", [id, "ips"]) => find(cloud, call, id).map(|it| {
            let addresses: Object = show::addresses(cloud, &it)
                .into_iter()
                .map(|(network, list)| {
                    let list: Vec<Value> = list
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(|it| json!({"version": it["version"], "addr": it["addr"]}))
                        .collect();
                    (network, Value::Array(list))
                })
                .collect();
            Reply::ok(json!({"addresses": addresses}))
        }),
        ("GET", [id, "os-security-groups"]) => security_groups(cloud, call, id),
        ("GET", [id, "os-instance-actions", rest @ ..]) => instance_actions(cloud, call, id, rest),
        (_, [id, "metadata", rest @ ..]) => labels::metadata(cloud, call, id, rest),
        (_, [id, "tags", rest @ ..]) => labels::tags(cloud, call, id, rest),
        (_, [id, "os-interface", rest @ ..]) => attachments::interfaces(cloud, call, id, rest),
        (_, [id, "os-volume_attachments", rest @ ..]) => attachments::volumes(cloud, call, id, rest),
        ("GET", [id, "diagnostics"]) => find(cloud, call, id).and(Err(policy("os-server-diagnostics"))),
        _ => return None,
    })
}

fn absent(id: &str) -> Fail {
    Fail::missing(format!("Instance {id} could not be found."))
}

/// A server that the caller may see.
fn find(cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
    let found = cloud
        .get("servers", id)
        .filter(|it| call.caller.is_admin() || it.text("tenant_id") == call.caller.project());
    found.cloned().ok_or_else(|| absent(id))
}

/// A server that the caller may change.
fn own(cloud: &Cloud, call: &Call, id: &str, rule: &str) -> Result<Object, Fail> {
    let found = find(cloud, call, id)?;
    if !call.caller.is_member() {
        return Err(policy(rule));
    }
    Ok(found)
}

/// Sets the state of a server.
fn set_state(cloud: &mut Cloud, id: &str, vm_state: Option<&str>, task_state: Option<&str>) {
    let now = cloud.stamp();
    if let Some(server) = cloud.get_mut("servers", id) {
        if let Some(vm_state) = vm_state {
            server.insert("vm_state".to_owned(), json!(vm_state));
        }
        server.insert("task_state".to_owned(), json!(task_state));
        server.insert("updated".to_owned(), json!(now));
    }
}

/// Remembers what was asked of a server.
fn record(cloud: &mut Cloud, call: &Call, server: &str, action: &str) {
    let now = cloud.naive() + ".000000";
    let row = json!({
        "action": action, "instance_uuid": server, "request_id": call.request_id, "user_id": call.caller.user,
        "project_id": call.caller.project(), "start_time": now, "message": null, "updated_at": now,
    });
    if let Some(server) = cloud.get_mut("servers", server)
        && let Some(Value::Array(actions)) = server.get_mut("actions")
    {
        actions.insert(0, row);
    }
}

fn instance_actions(cloud: &Cloud, call: &Call, id: &str, rest: &[&str]) -> Handled {
    let server = find(cloud, call, id)?;
    let show = |it: &Value| {
        let mut it = it.clone();
        if !call.at_least(58)
            && let Some(it) = it.as_object_mut()
        {
            it.remove("updated_at");
        }
        it
    };
    match rest {
        [] => {
            let all: Vec<Value> = server.list("actions").iter().map(show).collect();
            Ok(Reply::ok(json!({"instanceActions": all})))
        }
        [request, ..] => {
            let found = server.list("actions").iter().find(|it| it["request_id"] == *request);
            let text = format!("Action for request_id {request} on instance {id} not found");
            let mut found = found.map(show).ok_or_else(|| Fail::missing(text))?;
            found["events"] = json!([]);
            Ok(Reply::ok(json!({"instanceAction": found})))
        }
    }
}

fn security_groups(cloud: &Cloud, call: &Call, id: &str) -> Handled {
    let server = find(cloud, call, id)?;
    let project = server.text("tenant_id");
    let groups: Vec<Value> = server
        .texts("security_groups")
        .iter()
        .filter_map(|name| {
            cloud.all("security_groups").find(|it| it.text("project_id") == project && it.text("name") == *name)
        })
        .map(|it| {
            let rules: Vec<Value> = cloud
                .all("security_group_rules")
                .filter(|rule| rule.text("security_group_id") == it.text("id") && rule.text("direction") == "ingress")
                .map(|rule| {
                    let group = cloud.get("security_groups", rule.text("remote_group_id"));
                    let group = group.map_or(json!({}), |it| json!({"name": it["name"], "tenant_id": it["project_id"]}));
                    let range = match rule.has("remote_ip_prefix") {
                        true => json!({"cidr": rule["remote_ip_prefix"]}),
                        false => json!({}),
                    };
                    json!({
                        "id": rule["id"], "parent_group_id": it["id"], "ip_protocol": rule["protocol"],
                        "from_port": rule["port_range_min"], "to_port": rule["port_range_max"], "group": group, "ip_range": range,
                    })
                })
                .collect();
            json!({
                "id": it["id"], "name": it["name"], "description": it["description"], "tenant_id": it["project_id"],
                "rules": rules,
            })
        })
        .collect();
    Ok(Reply::ok(json!({"security_groups": groups})))
}

fn update(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let mut properties = json!({
        "name": create::name_schema(),
        "OS-DCF:diskConfig": {"type": "string", "enum": ["AUTO", "MANUAL"]},
        "accessIPv4": {"type": "string", "oneOf": [{"enum": [""]}, {"format": "ipv4"}]},
        "accessIPv6": {"type": "string", "oneOf": [{"enum": [""]}, {"format": "ipv6"}]},
    });
    if call.at_least(19) {
        properties["description"] = json!({"type": ["string", "null"], "maxLength": 255});
    }
    if call.at_least(90) {
        properties["hostname"] = json!({"type": "string", "minLength": 2, "maxLength": 63});
    }
    let server = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let schema = json!({"type": "object", "required": ["server"], "properties": {"server": server}});
    let body = super::body(call, &schema)?;
    own(cloud, call, id, "servers:update")?;
    for (name, value) in body.object("server").cloned().unwrap_or_default() {
        cloud.set("servers", id, &name, value);
    }
    let now = cloud.stamp();
    cloud.set("servers", id, "updated", now);
    let it = find(cloud, call, id)?;
    let mut shown = show::detail(cloud, call, &it);
    if !call.at_least(75)
        && let Some(shown) = shown.as_object_mut()
    {
        show::strip(shown);
    }
    Ok(Reply::ok(json!({"server": shown})))
}

fn delete(cloud: &mut Cloud, call: &Call, id: &str) -> Handled {
    let server = own(cloud, call, id, "servers:delete")?;
    if server.flag("locked") && !call.caller.is_admin() {
        return Err(locked(id));
    }
    build::begin_delete(cloud, call, &server);
    Ok(Reply::nothing(204))
}

fn locked(id: &str) -> Fail {
    Fail::conflict(format!("Instance {id} is locked"))
}

fn not_ready(id: &str) -> Fail {
    Fail::conflict(format!("Instance {id} is not ready"))
}
