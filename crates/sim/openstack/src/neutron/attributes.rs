//! Attributes of Neutron's resources: which may be set, by whom, what they default to, and who sees them.

use serde_json::{Value, json};

use super::{bad_request, policy};
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, repr};

/// How a value is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// At most 255 characters.
    Text,
    Bool,
    Int,
    Uuid,
    UuidOrNull,
    List,
    OneOf(&'static [&'static str]),
    Any,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute {
    pub(super) name: &'static str,
    post: bool,
    put: bool,
    /// Only an administrator may set it.
    admin: bool,
    /// JSON; `None` if it must be given.
    default: Option<&'static str>,
    check: Check,
}

const fn a(name: &'static str, set: &str, default: &'static str, check: Check) -> Attribute {
    let set = set.as_bytes();
    let (mut post, mut put, mut admin, mut required) = (false, false, false, false);
    let mut i = 0;
    while i < set.len() {
        match set[i] {
            b'c' => post = true,
            b'u' => put = true,
            b'a' => admin = true,
            b'r' => required = true,
            _ => {}
        }
        i += 1;
    }
    Attribute { name, post, put, admin, default: if required { None } else { Some(default) }, check }
}

use Check::{Any, Bool, Int, List, OneOf, Text, Uuid, UuidOrNull};

const NETWORK: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("description", "cu", "\"\"", Text),
    a("mtu", "cu", "0", Int),
    a("port_security_enabled", "cu", "true", Bool),
    a("router:external", "cua", "false", Bool),
    a("shared", "cua", "false", Bool),
    a("is_default", "cua", "false", Bool),
    a("provider:network_type", "cua", "null", Any),
    a("provider:physical_network", "cua", "null", Any),
    a("provider:segmentation_id", "cua", "null", Any),
    a("availability_zone_hints", "c", "[]", List),
    a("qos_policy_id", "cu", "null", UuidOrNull),
    a("vlan_transparent", "c", "false", Bool),
    a("qinq", "c", "false", Bool),
    a("dns_domain", "", "\"\"", Text),
];
const SUBNET: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("network_id", "cr", "", Uuid),
    a("ip_version", "cr", "", Int),
    a("cidr", "c", "null", Any),
    a("gateway_ip", "cu", "\"<default>\"", Any),
    a("allocation_pools", "cu", "null", Any),
    a("dns_nameservers", "cu", "[]", List),
    a("host_routes", "cu", "[]", List),
    a("enable_dhcp", "cu", "true", Bool),
    a("ipv6_ra_mode", "c", "null", Any),
    a("ipv6_address_mode", "c", "null", Any),
    a("subnetpool_id", "c", "null", Any),
    a("prefixlen", "c", "null", Any),
    a("description", "cu", "\"\"", Text),
    a("service_types", "cua", "[]", List),
    a("segment_id", "cua", "null", UuidOrNull),
];
const PORT: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("network_id", "cr", "", Uuid),
    a("admin_state_up", "cu", "true", Bool),
    a("mac_address", "cu", "null", Any),
    a("fixed_ips", "cu", "null", Any),
    a("device_id", "cu", "\"\"", Text),
    a("device_owner", "cu", "\"\"", Text),
    a("security_groups", "cu", "null", Any),
    a("allowed_address_pairs", "cu", "[]", Any),
    a("extra_dhcp_opts", "cu", "[]", Any),
    a("port_security_enabled", "cu", "null", Any),
    a("description", "cu", "\"\"", Text),
    a(
        "binding:vnic_type",
        "cu",
        "\"normal\"",
        OneOf(&[
            "normal",
            "macvtap",
            "direct",
            "baremetal",
            "direct-physical",
            "virtio-forwarder",
            "smart-nic",
            "remote-managed",
            "vdpa",
            "accelerator-direct",
            "accelerator-direct-physical",
        ]),
    ),
    a("binding:host_id", "cua", "\"\"", Any),
    a("binding:profile", "cua", "{}", Any),
    a("qos_policy_id", "cu", "null", UuidOrNull),
    // Listed as an extension, accepted, and dropped.
    a("tags", "c", "[]", List),
];
const ROUTER: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("external_gateway_info", "cu", "null", Any),
    a("description", "cu", "\"\"", Text),
    a("distributed", "cua", "false", Bool),
    a("ha", "cua", "false", Bool),
    a("availability_zone_hints", "c", "[]", List),
    a("flavor_id", "c", "null", Any),
    a("routes", "u", "[]", List),
];
const FLOATING_IP: &[Attribute] = &[
    a("floating_network_id", "cr", "", Uuid),
    a("floating_ip_address", "ca", "null", Any),
    a("subnet_id", "c", "null", Any),
    a("port_id", "cu", "null", UuidOrNull),
    a("fixed_ip_address", "cu", "null", Any),
    a("description", "cu", "\"\"", Text),
    a("qos_policy_id", "cu", "null", UuidOrNull),
    a("dns_domain", "", "\"\"", Text),
    a("dns_name", "", "\"\"", Text),
];
const GROUP: &[Attribute] =
    &[a("name", "cu", "\"\"", Text), a("description", "cu", "\"\"", Text), a("stateful", "cu", "true", Bool)];
const RULE: &[Attribute] = &[
    a("security_group_id", "cr", "", Uuid),
    a("direction", "cr", "", OneOf(&["ingress", "egress"])),
    a("ethertype", "c", "\"IPv4\"", Any),
    a("protocol", "c", "null", Any),
    a("port_range_min", "c", "null", Any),
    a("port_range_max", "c", "null", Any),
    a("remote_ip_prefix", "c", "null", Any),
    a("remote_group_id", "c", "null", UuidOrNull),
    a("remote_address_group_id", "c", "null", UuidOrNull),
    a("description", "c", "\"\"", Text),
];
const TRUNK: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("port_id", "cr", "", Uuid),
    a("admin_state_up", "cu", "true", Bool),
    a("sub_ports", "c", "[]", List),
    a("description", "cu", "\"\"", Text),
];
const POOL: &[Attribute] = &[
    a("name", "cur", "", Text),
    a("prefixes", "cur", "", List),
    a("default_prefixlen", "cu", "null", Any),
    a("min_prefixlen", "cu", "null", Any),
    a("max_prefixlen", "cu", "null", Any),
    a("default_quota", "cu", "null", Any),
    a("address_scope_id", "cu", "null", UuidOrNull),
    a("is_default", "cua", "false", Bool),
    a("shared", "ca", "false", Bool),
    a("description", "cu", "\"\"", Text),
];
const ADDRESS_GROUP: &[Attribute] =
    &[a("name", "cu", "\"\"", Text), a("addresses", "c", "[]", List), a("description", "cu", "\"\"", Text)];
const RBAC: &[Attribute] = &[
    a("object_type", "cr", "", Any),
    a("object_id", "cr", "", Uuid),
    a("action", "cr", "", Any),
    a("target_tenant", "cur", "", Any),
];

/// Attributes that a client may name, by the singular of a resource.
pub(super) fn of(kind: &str) -> &'static [Attribute] {
    match kind {
        "network" => NETWORK,
        "subnet" => SUBNET,
        "port" => PORT,
        "router" => ROUTER,
        "floatingip" => FLOATING_IP,
        "security_group" => GROUP,
        "security_group_rule" => RULE,
        "trunk" => TRUNK,
        "subnetpool" => POOL,
        "address_group" => ADDRESS_GROUP,
        _ => RBAC,
    }
}

/// Set by Neutron alone; named in an update they are read-only.
const READ_ONLY: &[&str] = &[
    "id",
    "status",
    "tenant_id",
    "project_id",
    "created_at",
    "updated_at",
    "revision_number",
    "subnets",
    "availability_zones",
    "ipv4_address_scope",
    "ipv6_address_scope",
    "router_id",
    "security_group_rules",
    "normalized_cidr",
    "binding:vif_type",
    "binding:vif_details",
    "tags",
    "shared",
    "sub_ports",
    "resource_request",
    "qos_network_policy_id",
    "port_details",
    "ip_version",
];

/// Objects of a create: one, or several under the plural.
pub(super) fn created(call: &Call, kind: &str, plural: &str) -> Result<(Vec<Object>, bool), Fail> {
    let body = read(call)?;
    if let Some(Value::Array(items)) = body.get(plural) {
        let items: Vec<Object> = items.iter().filter_map(|item| item.as_object().cloned()).collect();
        return Ok((items, true));
    }
    let object = body.get(kind).and_then(Value::as_object).cloned();
    let object = object.ok_or_else(|| bad_request(format!("Unable to find '{kind}' in request body")))?;
    Ok((vec![object], false))
}

pub(super) fn read(call: &Call) -> Result<Object, Fail> {
    if call.body.is_empty() {
        return Ok(Object::new());
    }
    match call.json() {
        Some(Value::Object(body)) => Ok(body),
        _ => Err(bad_request("Body contains invalid data")),
    }
}

/// The attributes of a new resource, with defaults.
pub(super) fn complete(call: &Call, kind: &'static str, given: Object) -> Result<Object, Fail> {
    let attributes = of(kind);
    let mut given = given;
    let project = owner(call, &mut given)?;
    unknown(attributes, &given)?;
    authorize(call, "create", kind, attributes, &given)?;
    for attribute in attributes.iter().filter(|it| it.default.is_none()) {
        if !given.contains_key(attribute.name) {
            let text =
                format!("Failed to parse request. Required attribute '{}' not specified", attribute.name);
            return Err(bad_request(text));
        }
    }
    let mut made = Object::new();
    for attribute in attributes {
        let value = match given.remove(attribute.name) {
            Some(_) if !attribute.post => {
                return Err(bad_request(format!("Attribute '{}' not allowed in POST", attribute.name)));
            }
            Some(value) => checked(attribute, value)?,
            None => attribute.default.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        };
        made.insert(attribute.name.to_owned(), value);
    }
    made.insert("project_id".to_owned(), json!(project));
    made.insert("tenant_id".to_owned(), json!(project));
    Ok(made)
}

/// The project that is to own a new resource.
fn owner(call: &Call, given: &mut Object) -> Result<String, Fail> {
    let project = given.remove("project_id");
    let tenant = given.remove("tenant_id");
    let named = project.or(tenant).and_then(|value| value.as_str().map(str::to_owned));
    match named {
        Some(named) if named != call.caller.project() && !call.caller.is_admin() => Err(bad_request(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in request is not allowed for current user.",
        )),
        Some(named) => Ok(named),
        None => Ok(call.caller.project().to_owned()),
    }
}

/// The attributes of an update.
pub(super) fn changes(call: &Call, kind: &'static str) -> Result<Object, Fail> {
    let mut body = read(call)?;
    let given = match body.remove(kind) {
        Some(Value::Object(given)) => given,
        _ => return Err(bad_request(format!("Unable to find '{kind}' in request body"))),
    };
    let attributes = of(kind);
    for name in given.keys() {
        let attribute = attributes.iter().find(|it| it.name == name);
        if attribute.is_some_and(|it| !it.put) || (attribute.is_none() && READ_ONLY.contains(&name.as_str()))
        {
            return Err(bad_request(format!("Cannot update read-only attribute {name}")));
        }
    }
    unknown(attributes, &given)?;
    authorize(call, "update", kind, attributes, &given)?;
    let mut changed = Object::new();
    for (name, value) in given {
        if let Some(attribute) = attributes.iter().find(|it| it.name == name) {
            changed.insert(name, checked(attribute, value)?);
        }
    }
    Ok(changed)
}

fn unknown(attributes: &[Attribute], given: &Object) -> Result<(), Fail> {
    let unknown: Vec<_> = given
        .keys()
        .filter(|name| !attributes.iter().any(|it| it.name == name.as_str() && (it.post || it.put)))
        .cloned()
        .collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(bad_request(format!("Unrecognized attribute(s) '{}'", unknown.join(", ")))),
    }
}

fn authorize(
    call: &Call,
    verb: &str,
    kind: &str,
    attributes: &[Attribute],
    given: &Object,
) -> Result<(), Fail> {
    if !call.caller.is_member() {
        return Err(policy(&format!("rule:{verb}_{kind}")));
    }
    if call.caller.is_admin() {
        return Ok(());
    }
    let denied: Vec<_> = attributes
        .iter()
        .filter(|it| it.admin && given.contains_key(it.name))
        .map(|it| format!("rule:{verb}_{kind}:{}", it.name))
        .collect();
    if !denied.is_empty() {
        return Err(policy(&format!("(rule:{verb}_{kind} and {})", denied.join(" and "))));
    }
    if kind == "router"
        && let Some(gateway) = given.object("external_gateway_info")
    {
        let parts: Vec<_> = ["network_id", "enable_snat", "external_fixed_ips"]
            .iter()
            .filter(|name| gateway.contains_key(**name))
            .map(|name| format!("rule:{verb}_router:external_gateway_info:{name}"))
            .collect();
        if gateway.contains_key("enable_snat") || gateway.contains_key("external_fixed_ips") {
            return Err(policy(&format!(
                "(rule:{verb}_router and (rule:{verb}_router:external_gateway_info and ({})))",
                parts.join(" and ")
            )));
        }
    }
    Ok(())
}

fn checked(attribute: &Attribute, value: Value) -> Result<Value, Fail> {
    let name = attribute.name;
    let invalid = |why: String| Err(bad_request(format!("Invalid input for {name}. Reason: {why}.")));
    match attribute.check {
        Check::Text => match &value {
            Value::String(text) if text.chars().count() > 255 => {
                invalid(format!("{} exceeds maximum length of 255", repr(&value)))
            }
            Value::String(_) => Ok(value),
            _ => invalid(format!("{} is not a valid string", repr(&value))),
        },
        Check::Bool => match as_bool(&value) {
            Some(flag) => Ok(json!(flag)),
            None => Err(super::invalid_input(format!("{} cannot be converted to boolean", repr(&value)))),
        },
        Check::Int => match &value {
            Value::Number(_) => Ok(value),
            Value::String(text) => match text.parse::<i64>() {
                Ok(number) => Ok(json!(number)),
                Err(_) => invalid(format!("{} is not an integer", repr(&value))),
            },
            _ => invalid(format!("{} is not an integer", repr(&value))),
        },
        Check::Uuid | Check::UuidOrNull if value.is_null() && attribute.check == Check::UuidOrNull => {
            Ok(value)
        }
        Check::Uuid | Check::UuidOrNull => match value.as_str().is_some_and(is_uuid) {
            true => Ok(value),
            false => invalid(format!("{} is not a valid UUID", repr(&value))),
        },
        Check::List => match value {
            Value::Array(_) => Ok(value),
            Value::Null => Ok(json!([])),
            other => invalid(format!("{} is not a list", repr(&other))),
        },
        Check::OneOf(allowed) => match value.as_str().is_some_and(|text| allowed.contains(&text)) {
            true => Ok(value),
            false => invalid(format!("{} is not in valid_values", crate::wire::text(&value))),
        },
        Check::Any => Ok(value),
    }
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

pub(super) fn as_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_i64().filter(|it| (0..=1).contains(it)).map(|it| it == 1),
        Value::String(text) => match text.to_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
