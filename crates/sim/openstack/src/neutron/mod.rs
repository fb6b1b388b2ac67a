//! Neutron v2.0: networks, subnets, ports, routers, floating IPs, security groups, trunks, tags, quotas.

mod attributes;
mod extensions;
mod floating;
mod groups;
pub(crate) mod ipam;
mod listing;
mod networks;
pub(crate) mod ports;
mod quotas;
mod routers;
mod tags;
mod trunks;

use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, shown};
use crate::wire::{Call, Fail, Handled, Reply};

pub(crate) use attributes::is_uuid as is_id;
pub(crate) use floating::addresses_of;
pub(crate) use groups::ensure_default;
pub(crate) use networks::{create_network, create_subnet};

/// A kind of resource.
pub(super) struct Kind {
    singular: &'static str,
    plural: &'static str,
    /// Word of the path.
    path: &'static str,
    /// Exception and text, with `{}` for the id, when there is none.
    absent: (&'static str, &'static str),
}

const KINDS: &[Kind] = &[
    kind("network", "networks", "networks", ("NetworkNotFound", "Network {} could not be found.")),
    kind("subnet", "subnets", "subnets", ("SubnetNotFound", "Subnet {} could not be found.")),
    kind("port", "ports", "ports", ("PortNotFound", "Port {} could not be found.")),
    kind("router", "routers", "routers", ("RouterNotFound", "Router {} could not be found")),
    kind(
        "floatingip",
        "floatingips",
        "floatingips",
        ("FloatingIPNotFound", "Floating IP {} could not be found"),
    ),
    kind(
        "security_group",
        "security_groups",
        "security-groups",
        ("SecurityGroupNotFound", "Security group {} does not exist"),
    ),
    kind(
        "security_group_rule",
        "security_group_rules",
        "security-group-rules",
        ("SecurityGroupRuleNotFound", "Security group rule {} does not exist"),
    ),
    kind("trunk", "trunks", "trunks", ("TrunkNotFound", "Trunk {} could not be found.")),
    kind(
        "subnetpool",
        "subnetpools",
        "subnetpools",
        ("SubnetPoolNotFound", "Subnet pool {} could not be found."),
    ),
    kind(
        "address_group",
        "address_groups",
        "address-groups",
        ("AddressGroupNotFound", "Address group {} could not be found."),
    ),
    kind(
        "rbac_policy",
        "rbac_policies",
        "rbac-policies",
        ("RbacPolicyNotFound", "RBAC policy of type {} not found"),
    ),
];

const fn kind(
    singular: &'static str,
    plural: &'static str,
    path: &'static str,
    absent: (&'static str, &'static str),
) -> Kind {
    Kind { singular, plural, path, absent }
}

impl Kind {
    fn absent(&self, id: &str) -> Fail {
        Fail::new(404, self.absent.0, self.absent.1.replace("{}", id))
    }

    /// A resource that the caller may see.
    fn visible(&self, cloud: &Cloud, call: &Call, id: &str) -> Result<Object, Fail> {
        let found = cloud.get(self.plural, id).filter(|row| sees(cloud, call, self.singular, row));
        found.cloned().ok_or_else(|| self.absent(id))
    }

    /// A resource that the caller may change: a foreign one is absent, a visible one of others is forbidden.
    fn own(&self, cloud: &Cloud, call: &Call, id: &str, verb: &str) -> Result<Object, Fail> {
        let found = self.visible(cloud, call, id)?;
        let owned = call.caller.is_admin() || found.text("project_id") == call.caller.project();
        let net_owned = self.singular == "port"
            && cloud
                .get("networks", found.text("network_id"))
                .is_some_and(|it| it.text("project_id") == call.caller.project());
        if !call.caller.is_member() || !(owned || net_owned) {
            return Err(policy(&format!("rule:{verb}_{}", self.singular)));
        }
        Ok(found)
    }
}

pub(super) fn kind_of(singular: &str) -> &'static Kind {
    KINDS.iter().find(|it| it.singular == singular).unwrap_or(&KINDS[0])
}

/// Whether a caller may see a resource.
fn sees(cloud: &Cloud, call: &Call, kind: &str, row: &Object) -> bool {
    let caller = &call.caller;
    if caller.is_admin() || (caller.project.is_some() && row.text("project_id") == caller.project()) {
        return true;
    }
    let shared = |id: &str| {
        cloud.all("rbac_policies").any(|it| {
            it.text("object_id") == id
                && (it.text("target_tenant") == "*" || it.text("target_tenant") == caller.project())
        })
    };
    match kind {
        "network" => row.flag("shared") || row.flag("router:external") || shared(row.text("id")),
        "security_group" | "subnetpool" | "address_group" => row.flag("shared") || shared(row.text("id")),
        "subnet" => cloud.get("networks", row.text("network_id")).is_some_and(|net| {
            net.flag("shared") || shared(net.text("id")) || net.text("project_id") == caller.project()
        }),
        "port" => cloud
            .get("networks", row.text("network_id"))
            .is_some_and(|net| caller.project.is_some() && net.text("project_id") == caller.project()),
        "security_group_rule" => cloud
            .get("security_groups", row.text("security_group_id"))
            .is_some_and(|group| caller.project.is_some() && group.text("project_id") == caller.project()),
        _ => false,
    }
}

pub(crate) fn handle(cloud: &mut Cloud, call: &Call) -> Handled {
    let path = call.segments();
    let Some((&"v2.0", path)) = path.split_first() else {
        return Err(not_found());
    };
    ensure_default(cloud, call.caller.project());
    let method = call.method.as_str();
    match (method, path) {
        ("GET", []) => {
            let resources: Vec<Value> = ["network", "subnet", "subnetpool", "port"]
                .iter()
                .map(|name| {
                    let link = format!("{}/v2.0/{name}s", call.base);
                    json!({"name": name, "collection": format!("{name}s"), "links": [{"rel": "self", "href": link}]})
                })
                .collect();
            return Ok(Reply::ok(json!({"resources": resources})));
        }
        ("GET", ["extensions", rest @ ..]) => return extensions::handle(cloud, rest),
        (_, ["quotas", rest @ ..]) => return quotas::handle(cloud, call, rest),
        ("GET", ["availability_zones"]) => return availability_zones(cloud),
        ("GET", ["agents"]) => return Ok(Reply::ok(json!({"agents": []}))),
        (_, [resource, id, "tags", rest @ ..]) => {
            let kind = KINDS.iter().find(|it| it.path == *resource).ok_or_else(not_found)?;
            return tags::handle(cloud, call, kind, id, rest);
        }
        ("PUT", ["routers", id, action]) => return routers::act(cloud, call, id, action),
        ("PUT" | "GET", ["trunks", id, action]) => return trunks::act(cloud, call, id, action),
        ("PUT", ["address-groups", id, action]) => return groups::change_addresses(cloud, call, id, action),
        _ => {}
    }
    let Some(kind) = path.first().and_then(|word| KINDS.iter().find(|it| it.path == *word)) else {
        return Err(not_found());
    };
    if kind.singular == "trunk" && cloud.settings.disabled_extensions.iter().any(|alias| alias == "trunk") {
        return Err(not_found());
    }
    match (method, &path[1..]) {
        ("GET", []) => {
            let rows = cloud.all(kind.plural).filter(|row| sees(cloud, call, kind.singular, row));
            let rows = rows.map(|row| render(cloud, call, kind.singular, row)).collect();
            listing::list(call, kind, rows)
        }
        ("POST", []) => create(cloud, call, kind),
        ("GET", [id]) => {
            let found = kind.visible(cloud, call, id)?;
            let shown = listing::selected(call, render(cloud, call, kind.singular, &found));
            Ok(Reply::ok(json!({kind.singular: shown})))
        }
        ("PUT", [id]) => update(cloud, call, kind, id),
        ("DELETE", [id]) => delete(cloud, call, kind, id),
        _ => Err(not_found()),
    }
}

fn availability_zones(cloud: &Cloud) -> Handled {
    let mut zones: Vec<&str> = cloud.all("network_zones").map(|zone| zone.text("id")).collect();
    zones.sort_unstable();
    let zones: Vec<Value> = zones
        .into_iter()
        .flat_map(|name| {
            ["network", "router"]
                .map(|resource| json!({"name": name, "resource": resource, "state": "available"}))
        })
        .collect();
    Ok(Reply::ok(json!({"availability_zones": zones})))
}

fn create(cloud: &mut Cloud, call: &Call, kind: &'static Kind) -> Handled {
    let (items, bulk) = attributes::created(call, kind.singular, kind.plural)?;
    let before = cloud.state.clone();
    let mut made = Vec::new();
    for given in items {
        let created = attributes::complete(call, kind.singular, given).and_then(|given| {
            quotas::check(cloud, given.text("project_id"), kind)?;
            create_one(cloud, call, kind.singular, given)
        });
        match created {
            Ok(id) => made.push(id),
            Err(fail) => {
                // A bulk create makes all or nothing.
                cloud.state = before;
                return Err(fail);
            }
        }
    }
    let mut shown: Vec<Value> = Vec::new();
    for id in made {
        if let Some(row) = cloud.get(kind.plural, &id) {
            let mut row = render(cloud, call, kind.singular, row);
            if kind.singular == "network" {
                row.entry("is_default").or_insert(json!(false));
            }
            shown.push(Value::Object(row));
        }
    }
    let body = match bulk {
        true => json!({kind.plural: shown}),
        false => json!({kind.singular: shown.pop().unwrap_or_default()}),
    };
    Ok(Reply::json(201, body))
}

fn create_one(cloud: &mut Cloud, call: &Call, kind: &str, given: Object) -> Result<String, Fail> {
    match kind {
        "network" => create_network(cloud, given),
        "subnet" => {
            kind_of("network").visible(cloud, call, given.text("network_id"))?;
            create_subnet(cloud, given)
        }
        "port" => {
            kind_of("network").visible(cloud, call, given.text("network_id"))?;
            ports::create(cloud, given)
        }
        "router" => routers::create(cloud, call, given),
        "floatingip" => floating::create(cloud, call, given),
        "security_group" => groups::create(cloud, given),
        "security_group_rule" => groups::create_rule(cloud, call, given),
        "trunk" => trunks::create(cloud, given),
        "subnetpool" => networks::create_pool(cloud, given),
        _ => Ok(store(cloud, kind, given)),
    }
}

/// Gives a new resource its id and times.
fn store(cloud: &mut Cloud, kind: &str, mut row: Object) -> String {
    let id = cloud.uuid();
    row.insert("id".to_owned(), json!(id));
    if kind != "rbac_policy" {
        row.insert("created_at".to_owned(), json!(cloud.stamp()));
        row.insert("updated_at".to_owned(), json!(cloud.stamp()));
        let first =
            matches!(kind, "network" | "port" | "router" | "security_group" | "trunk" | "address_group");
        row.insert("revision_number".to_owned(), json!(i64::from(first)));
        if kind != "address_group" {
            row.insert("tags".to_owned(), json!([]));
        }
    }
    cloud.put(kind_of(kind).plural, row);
    id
}

/// Counts a change of a resource.
pub(crate) fn touch(cloud: &mut Cloud, plural: &str, id: &str) {
    let now = cloud.stamp();
    if let Some(row) = cloud.get_mut(plural, id) {
        let revision = row.number("revision_number") + 1;
        row.insert("revision_number".to_owned(), json!(revision));
        row.insert("updated_at".to_owned(), json!(now));
    }
}

fn update(cloud: &mut Cloud, call: &Call, kind: &'static Kind, id: &str) -> Handled {
    if kind.singular == "security_group_rule" {
        return Err(internal());
    }
    let held = kind.own(cloud, call, id, "update")?;
    let changes = attributes::changes(call, kind.singular)?;
    match kind.singular {
        "subnet" => networks::update_subnet(cloud, &held, &changes)?,
        "port" => ports::update(cloud, &held, changes.clone())?,
        "router" => routers::update(cloud, call, &held, &changes)?,
        "floatingip" => floating::update(cloud, call, &held, &changes)?,
        "security_group" if held.text("name") == "default" && changes.contains_key("name") => {
            let text = "Updating default security group not allowed.";
            return Err(Fail::new(409, "SecurityGroupCannotUpdateDefault", text));
        }
        _ => {}
    }
    if let Some(row) = cloud.get_mut(kind.plural, id) {
        let plain = match kind.singular {
            "port" => &[
                "name",
                "admin_state_up",
                "device_id",
                "device_owner",
                "extra_dhcp_opts",
                "description",
                "binding:vnic_type",
                "binding:host_id",
                "binding:profile",
                "qos_policy_id",
                "port_security_enabled",
            ][..],
            "router" => &["name", "admin_state_up", "description", "distributed", "ha", "routes"][..],
            "floatingip" => &["description", "qos_policy_id"][..],
            _ => &[][..],
        };
        for (name, value) in changes {
            if plain.is_empty() || plain.contains(&name.as_str()) {
                row.insert(name, value);
            }
        }
    }
    touch(cloud, kind.plural, id);
    let row = cloud.get(kind.plural, id).cloned().unwrap_or_default();
    Ok(Reply::ok(json!({kind.singular: render(cloud, call, kind.singular, &row)})))
}

fn delete(cloud: &mut Cloud, call: &Call, kind: &'static Kind, id: &str) -> Handled {
    let held = kind.own(cloud, call, id, "delete")?;
    match kind.singular {
        "network" => networks::delete_network(cloud, id)?,
        "subnet" => networks::delete_subnet(cloud, id)?,
        "port" => ports::delete(cloud, id)?,
        "router" => routers::delete(cloud, id)?,
        "security_group" => groups::delete(cloud, &held, call.caller.is_admin())?,
        "trunk" => trunks::delete(cloud, &held)?,
        "subnetpool" if cloud.all("subnets").any(|it| it.text("subnetpool_id") == id) => {
            let text = format!("Subnet pool {id} cannot be deleted: Subnet pool has existing allocations.");
            return Err(Fail::new(400, "SubnetPoolDeleteError", text));
        }
        "address_group"
            if cloud.all("security_group_rules").any(|it| it.text("remote_address_group_id") == id) =>
        {
            let text = format!("Address group {id} is in use on one or more security group rules.");
            return Err(Fail::new(409, "AddressGroupInUse", text));
        }
        "floatingip" => floating::release(cloud, &held),
        _ => {}
    }
    cloud.remove(kind.plural, id);
    if kind.singular == "floatingip" {
        crate::guests::rebalance(cloud);
    }
    Ok(Reply::empty(204))
}

/// A resource as a caller sees it.
fn render(cloud: &Cloud, call: &Call, kind: &str, row: &Object) -> Object {
    let mut row = shown(row);
    let admin = call.caller.is_admin();
    let id = row.text("id").to_owned();
    match kind {
        "network" => {
            let mut subnets: Vec<&str> = cloud
                .all("subnets")
                .filter(|it| it.text("network_id") == id)
                .map(|it| it.text("id"))
                .collect();
            subnets.sort_unstable();
            row.insert("subnets".to_owned(), json!(subnets));
            if !row.flag("router:external") {
                row.remove("is_default");
            }
            if !admin {
                row.retain(|name, _| !name.starts_with("provider:"));
            }
            row.remove("dns_domain");
        }
        "subnet" => {
            row.remove("prefixlen");
            row.remove("segment_id");
        }
        "port" => {
            if !admin {
                for name in [
                    "binding:host_id",
                    "binding:profile",
                    "binding:vif_type",
                    "binding:vif_details",
                    "resource_request",
                ] {
                    row.remove(name);
                }
            }
            if let Some(trunk) = cloud.find("trunks", "port_id", &id) {
                row.insert("trunk_details".to_owned(), trunks::details(cloud, trunk));
            }
        }
        "router" if !admin => {
            row.remove("distributed");
            row.remove("ha");
        }
        "floatingip" => {
            row.insert("port_details".to_owned(), floating::port_details(cloud, &row));
            for name in ["subnet_id", "dns_domain", "dns_name"] {
                row.remove(name);
            }
        }
        // Inside of their group rules have both.
        "security_group_rule" => drop((row.remove("standard_attr_id"), row.remove("tags"))),
        "security_group" => {
            let rules: Vec<Value> = cloud
                .all("security_group_rules")
                .filter(|it| it.text("security_group_id") == id)
                .map(|it| Value::Object(shown(it)))
                .collect();
            row.insert("security_group_rules".to_owned(), Value::Array(rules));
            row.entry("shared").or_insert(json!(false));
        }
        _ => {}
    }
    row
}

/// Errors in Neutron's shape.
pub(crate) fn refuse(fail: Fail) -> Reply {
    if let Some(reply) = fail.reply {
        return *reply;
    }
    let kind = if fail.kind.is_empty() { generic(fail.status) } else { fail.kind };
    let mut reply = Reply::json(
        fail.status,
        json!({"NeutronError": {"type": kind, "message": fail.message, "detail": ""}}),
    );
    reply.headers.extend(fail.headers);
    reply
}

fn generic(status: u16) -> &'static str {
    match status {
        400 => "HTTPBadRequest",
        403 => "PolicyNotAuthorized",
        404 => "HTTPNotFound",
        409 => "HTTPConflict",
        503 => "HTTPServiceUnavailable",
        _ => "HTTPInternalServerError",
    }
}

fn not_found() -> Fail {
    Fail::new(404, "HTTPNotFound", "The resource could not be found.")
}

fn internal() -> Fail {
    let text = "Request Failed: internal server error while processing your request.";
    Fail::new(500, "HTTPInternalServerError", text)
}

fn bad_request(text: impl Into<String>) -> Fail {
    Fail::new(400, "HTTPBadRequest", text)
}

fn invalid_input(text: impl std::fmt::Display) -> Fail {
    Fail::new(400, "InvalidInput", format!("Invalid input for operation: {text}."))
}

fn policy(rule: &str) -> Fail {
    Fail::new(403, "PolicyNotAuthorized", format!("{rule} is disallowed by policy"))
}
