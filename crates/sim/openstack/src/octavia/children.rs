//! Listeners, pools, members, health monitors and L7 policies.

use serde_json::{Value, json};

use super::{Kind, attributes, balancers, denied, immutable, kind, ovn, quotas, show};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Fail, Handled, Reply};

/// What a create refers to: the load balancer, and the pool if it hangs on one.
struct Parent {
    balancer: Object,
    pool: Option<String>,
}

/// Refuses a change while the load balancer is not ACTIVE, in the words of what is changed.
fn mutable(balancer: &Object, pool: Option<&str>) -> Result<(), Fail> {
    match (balancer.text("provisioning_status"), pool) {
        ("ACTIVE", _) => Ok(()),
        (_, Some(pool)) => Err(immutable("Pool", pool)),
        (_, None) => Err(immutable("Load Balancer", balancer.text("id"))),
    }
}

fn balancer_of(cloud: &Cloud, row: &Object) -> Object {
    cloud.get("loadbalancers", row.text("_balancer")).cloned().unwrap_or_default()
}

fn parent(
    cloud: &Cloud,
    call: &Call,
    what: &Kind,
    given: &Object,
    pool: Option<&str>,
) -> Result<Parent, Fail> {
    let find = |word: &str, id: &str| kind(word).find(cloud, call, id);
    match what.0 {
        "listener" => {
            Ok(Parent { balancer: find("loadbalancer", given.text("loadbalancer_id"))?, pool: None })
        }
        "pool" => {
            if let Some(id) = given.get("loadbalancer_id").and_then(Value::as_str) {
                return Ok(Parent { balancer: find("loadbalancer", id)?, pool: None });
            }
            let Some(listener) = given.get("listener_id").and_then(Value::as_str) else {
                let text = "Validation failure: Must provide at least one of: loadbalancer_id, listener_id";
                return Err(Fail::bad(text));
            };
            let Some(row) = cloud.get("listeners", listener) else {
                return Err(Fail::new(500, "", "'NoneType' object has no attribute 'load_balancer_id'"));
            };
            if !call.caller.is_admin() && row.text("project_id") != call.caller.project() {
                return Err(denied());
            }
            Ok(Parent { balancer: balancer_of(cloud, row), pool: None })
        }
        "l7policy" => {
            let listener = find("listener", given.text("listener_id"))?;
            Ok(Parent { balancer: balancer_of(cloud, &listener), pool: None })
        }
        _ => {
            let id = pool.unwrap_or_else(|| given.text("pool_id"));
            let row = find("pool", id)?;
            Ok(Parent { balancer: balancer_of(cloud, &row), pool: Some(id.to_owned()) })
        }
    }
}

pub(super) fn create(cloud: &mut Cloud, call: &Call, what: &Kind, pool: Option<&str>) -> Handled {
    let given = attributes::read(call, what.0, true)?;
    let parent = parent(cloud, call, what, &given, pool)?;
    validate(cloud, call, what, &given, &parent)?;
    quotas::check(cloud, parent.balancer.text("project_id"), quotas::word(what.0), 1)?;
    mutable(&parent.balancer, parent.pool.as_deref())?;
    conflicts(cloud, what, &given, &parent)?;
    let balancer = parent.balancer.text("id").to_owned();
    let id = insert(cloud, what.0, given, &balancer, parent.pool.as_deref());
    touch_parents(cloud, what.0, &id);
    balancers::begin(cloud, &balancer);
    let row = cloud.get(what.1, &id).cloned().unwrap_or_default();
    Ok(Reply::json(201, json!({what.0: show::detail(cloud, what, &row)})))
}

fn validate(cloud: &Cloud, call: &Call, what: &Kind, given: &Object, parent: &Parent) -> Result<(), Fail> {
    if parent.balancer.text("provider") == ovn::NAME {
        ovn::check(what.0, given)?;
    }
    match what.0 {
        "listener" => {
            let vip = parent.balancer.text("vip_address");
            for cidr in given.texts("allowed_cidrs") {
                if cidr.contains(':') != vip.contains(':') {
                    return Err(Fail::bad(format!(
                        "Validation failure: CIDR {cidr} IP version incompatible with all VIPs ['{vip}'] IP version."
                    )));
                }
            }
            if let Some(pool) = given.get("default_pool_id").and_then(Value::as_str) {
                kind("pool").find(cloud, call, pool)?;
            }
            if given.text("protocol") == "TERMINATED_HTTPS"
                && !given.has("default_tls_container_ref")
                && given.list("sni_container_refs").is_empty()
            {
                return Err(Fail::bad(
                    "Validation failure: An SNI or default certificate container reference must be provided for TERMINATED_HTTPS protocol listeners.",
                ));
            }
        }
        "pool" => {
            if let Some(listener) = cloud.get("listeners", given.text("listener_id")) {
                let (held, wanted) = (listener.text("protocol"), given.text("protocol"));
                let fits = match held {
                    "UDP" | "SCTP" => wanted == held,
                    "TCP" => matches!(wanted, "TCP" | "HTTP" | "HTTPS" | "PROXY" | "PROXYV2"),
                    "HTTP" | "TERMINATED_HTTPS" => matches!(wanted, "HTTP" | "PROXY" | "PROXYV2"),
                    _ => matches!(wanted, "HTTPS" | "TCP" | "PROXY" | "PROXYV2"),
                };
                if !fits {
                    return Err(Fail::bad(format!(
                        "Validation failure: The pool protocol '{wanted}' is invalid while the listener protocol is '{held}'."
                    )));
                }
            }
        }
        "l7policy" => {
            let listener = cloud.get("listeners", given.text("listener_id"));
            if let Some(protocol) = listener
                .map(|it| it.text("protocol"))
                .filter(|it| !matches!(*it, "HTTP" | "TERMINATED_HTTPS"))
            {
                return Err(Fail::new(
                    501,
                    "",
                    format!(
                        "Provider 'amphora' does not support a requested option: {protocol} protocol listeners do not support L7 policies"
                    ),
                ));
            }
        }
        "member" => {
            if let Some(subnet) = given.get("subnet_id").and_then(Value::as_str)
                && cloud.get("subnets", subnet).is_none()
            {
                return Err(Fail::bad(format!("Subnet {subnet} not found.")));
            }
        }
        _ => {}
    }
    Ok(())
}

fn conflicts(cloud: &Cloud, what: &Kind, given: &Object, parent: &Parent) -> Result<(), Fail> {
    let balancer = parent.balancer.text("id");
    let pool = parent.pool.as_deref().unwrap_or_default();
    match what.0 {
        "listener" => {
            let (protocol, port) = (given.text("protocol"), given.number("protocol_port"));
            let transport = |protocol: &str| {
                if matches!(protocol, "UDP" | "SCTP") { protocol.to_owned() } else { "TCP".to_owned() }
            };
            let used = cloud.all("listeners").any(|it| {
                it.text("_balancer") == balancer
                    && it.number("protocol_port") == port
                    && transport(it.text("protocol")) == transport(protocol)
            });
            if used {
                return Err(Fail::conflict(format!(
                    "Another Listener on this Load Balancer is already using protocol {protocol} and protocol_port {port}"
                )));
            }
        }
        "pool"
            if cloud
                .get("listeners", given.text("listener_id"))
                .is_some_and(|it| it.has("default_pool_id")) =>
        {
            return Err(Fail::conflict("This listener already has a default pool"));
        }
        "member" => {
            let (address, port) = (given.text("address"), given.number("protocol_port"));
            let used = cloud.all("members").any(|it| {
                it.text("_pool") == pool
                    && it.text("address") == address
                    && it.number("protocol_port") == port
            });
            if used {
                return Err(Fail::conflict(format!(
                    "Another member on this pool is already using ip {address} on protocol_port {port}"
                )));
            }
        }
        "healthmonitor" => {
            if cloud.all("healthmonitors").any(|it| it.text("_pool") == pool) {
                return Err(Fail::conflict("This pool already has a health monitor"));
            }
            if !matches!(given.text("type"), "HTTP" | "HTTPS") {
                for option in ["http_method", "url_path", "expected_codes", "http_version", "domain_name"] {
                    if given.has(option) {
                        return Err(Fail::bad(format!(
                            "{option} is not a valid option for health monitors of type {}",
                            given.text("type")
                        )));
                    }
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Adds a child as PENDING_CREATE.
fn insert(cloud: &mut Cloud, what: &str, mut row: Object, balancer: &str, pool: Option<&str>) -> String {
    let project = cloud.get("loadbalancers", balancer).map(|it| it["project_id"].clone()).unwrap_or_default();
    let id = cloud.uuid();
    if what == "healthmonitor" && matches!(row.text("type"), "HTTP" | "HTTPS") {
        for (name, default) in [("http_method", "GET"), ("url_path", "/"), ("expected_codes", "200")] {
            if !row.has(name) {
                row.insert(name.to_owned(), json!(default));
            }
        }
    }
    row.extend(object(json!({
        "id": id, "provisioning_status": "PENDING_CREATE",
        "operating_status": if what == "member" { "NO_MONITOR" } else { "OFFLINE" }, "project_id": project,
        "tenant_id": project, "created_at": cloud.naive(), "updated_at": null, "_balancer": balancer,
        "_pool": pool.unwrap_or_default(),
    })));
    if what == "member" {
        row.insert("vnic_type".to_owned(), json!("normal"));
    }
    let listener = row.text("listener_id").to_owned();
    cloud.put(kind(what).1, row);
    if what == "pool" && !listener.is_empty() {
        cloud.set("listeners", &listener, "default_pool_id", id.clone());
    }
    id
}

/// What a child hangs on is PENDING_UPDATE with it.
fn touch_parents(cloud: &mut Cloud, what: &str, id: &str) {
    let row = cloud.get(kind(what).1, id).cloned().unwrap_or_default();
    let pool = match what {
        "pool" => id.to_owned(),
        "member" | "healthmonitor" => row.text("_pool").to_owned(),
        _ => String::new(),
    };
    if matches!(what, "member" | "healthmonitor") {
        cloud.set("pools", &pool, "provisioning_status", "PENDING_UPDATE");
    }
    let listeners: Vec<String> = cloud
        .all("listeners")
        .filter(|it| {
            (!pool.is_empty() && it.text("default_pool_id") == pool)
                || (what == "l7policy" && it.text("id") == row.text("listener_id"))
        })
        .map(|it| it.text("id").to_owned())
        .collect();
    for listener in listeners {
        cloud.set("listeners", &listener, "provisioning_status", "PENDING_UPDATE");
    }
}

/// Adds a child of a tree that is created at once, with its own children.
pub(super) fn plant(
    cloud: &mut Cloud,
    what: &str,
    given: &Value,
    balancer: &str,
    pool: Option<&str>,
) -> Result<String, Fail> {
    let mut given = given.as_object().cloned().unwrap_or_default();
    match what {
        "listener" => drop(given.insert("loadbalancer_id".to_owned(), json!(balancer))),
        "pool" => drop(given.insert("loadbalancer_id".to_owned(), json!(balancer))),
        "healthmonitor" => drop(given.insert("pool_id".to_owned(), json!(pool))),
        _ => {}
    }
    let mut row = attributes::nested(what, given)?;
    let default_pool = row.remove("default_pool").filter(|it| it.is_object());
    let members = row.insert("members".to_owned(), json!([])).unwrap_or_default();
    let monitor = row.remove("healthmonitor").filter(|it| it.is_object());
    if what != "pool" {
        row.remove("members");
    }
    let mut default_id = None;
    if let Some(pool) = default_pool {
        default_id = Some(plant(cloud, "pool", &pool, balancer, None)?);
    }
    if let Some(pool) = &default_id {
        row.insert("default_pool_id".to_owned(), json!(pool));
    }
    let id = insert(cloud, what, row, balancer, pool);
    if what == "pool" {
        for member in members.as_array().into_iter().flatten() {
            plant(cloud, "member", member, balancer, Some(&id))?;
        }
        if let Some(monitor) = monitor {
            plant(cloud, "healthmonitor", &monitor, balancer, Some(&id))?;
        }
    }
    Ok(id)
}

pub(super) fn update(cloud: &mut Cloud, call: &Call, what: &Kind, id: &str) -> Handled {
    let changes = attributes::read(call, what.0, false)?;
    let row = what.find(cloud, call, id)?;
    let balancer = balancer_of(cloud, &row);
    mutable(&balancer, Some(row.text("_pool")).filter(|it| !it.is_empty()))?;
    if let Some(pool) = changes.get("default_pool_id").and_then(Value::as_str) {
        kind("pool").find(cloud, call, pool)?;
    }
    if balancer.text("provider") == ovn::NAME {
        ovn::check(what.0, &changes)?;
    }
    if what.0 == "listener" {
        let parent = Parent { balancer: balancer.clone(), pool: None };
        let mut check = changes.clone();
        check.remove("default_pool_id");
        validate(cloud, call, what, &check, &parent)?;
    }
    for (name, value) in changes {
        cloud.set(what.1, id, &name, value);
    }
    cloud.set(what.1, id, "provisioning_status", "PENDING_UPDATE");
    touch_parents(cloud, what.0, id);
    balancers::begin(cloud, balancer.text("id"));
    let row = cloud.get(what.1, id).cloned().unwrap_or_default();
    Ok(Reply::ok(json!({what.0: show::detail(cloud, what, &row)})))
}

pub(super) fn delete(cloud: &mut Cloud, call: &Call, what: &Kind, id: &str) -> Handled {
    let row = what.find(cloud, call, id)?;
    let balancer = balancer_of(cloud, &row);
    mutable(&balancer, Some(row.text("_pool")).filter(|it| !it.is_empty()))?;
    touch_parents(cloud, what.0, id);
    cloud.set(what.1, id, "provisioning_status", "PENDING_DELETE");
    match what.0 {
        "pool" => {
            for table in ["members", "healthmonitors"] {
                cloud.table_mut(table).retain(|it| it.text("_pool") != id);
            }
            for listener in
                cloud.table_mut("listeners").iter_mut().filter(|it| it.text("default_pool_id") == id)
            {
                listener.insert("default_pool_id".to_owned(), Value::Null);
            }
        }
        "listener" => cloud.table_mut("l7policies").retain(|it| it.text("listener_id") != id),
        _ => {}
    }
    balancers::begin(cloud, balancer.text("id"));
    Ok(Reply::empty(204))
}

/// Replaces the members of a pool, or adds to them.
pub(super) fn batch(cloud: &mut Cloud, call: &Call, pool: &str) -> Handled {
    let row = kind("pool").find(cloud, call, pool)?;
    let balancer = balancer_of(cloud, &row);
    let body = call.json().ok_or_else(|| Fail::bad("Request is not in valid JSON format"))?;
    let mut wanted = Vec::new();
    for member in body["members"].as_array().into_iter().flatten() {
        let given = member.as_object().cloned().unwrap_or_default();
        wanted.push(attributes::nested("member", given)?);
    }
    let additive = call.param("additive_only").is_some_and(|it| it.eq_ignore_ascii_case("true"));
    let held: Vec<Object> = cloud.all("members").filter(|it| it.text("_pool") == pool).cloned().collect();
    let same = |a: &Object, b: &Object| {
        a.text("address") == b.text("address") && a.number("protocol_port") == b.number("protocol_port")
    };
    let added = wanted.iter().filter(|it| !held.iter().any(|held| same(held, it))).count();
    quotas::check(cloud, balancer.text("project_id"), "member", i64::try_from(added).unwrap_or(i64::MAX))?;
    mutable(&balancer, Some(pool))?;
    for member in wanted.iter().cloned() {
        match held.iter().find(|held| same(held, &member)) {
            Some(held) => {
                // What the request leaves out goes back to its default.
                let fixed = ["address", "protocol_port", "subnet_id", "project_id", "tenant_id"];
                let given = |name: &str, value: &Value| {
                    !fixed.contains(&name) && (name != "tags" || *value != json!([]))
                };
                for (name, value) in member.iter().filter(|(name, value)| given(name, value)) {
                    cloud.set("members", held.text("id"), name, value.clone());
                }
                cloud.set("members", held.text("id"), "provisioning_status", "PENDING_UPDATE");
            }
            None => drop(insert(cloud, "member", member, balancer.text("id"), Some(pool))),
        }
    }
    for member in held.iter().filter(|held| !additive && !wanted.iter().any(|it| same(held, it))) {
        cloud.set("members", member.text("id"), "provisioning_status", "PENDING_DELETE");
    }
    cloud.set("pools", pool, "provisioning_status", "PENDING_UPDATE");
    balancers::begin(cloud, balancer.text("id"));
    Ok(Reply::empty(202))
}
