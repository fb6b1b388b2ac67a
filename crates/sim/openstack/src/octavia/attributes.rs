//! Attributes of Octavia's resources, with the texts of its validation.

use std::str::FromStr as _;

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::neutron::is_id;
use crate::table::{Fields as _, Object};
use crate::wire::{Call, Fail, repr, text};

enum Check {
    Text,
    Bool,
    Int(i64, i64),
    Uuid,
    Address,
    Cidrs,
    OneOf(&'static [&'static str]),
    Any,
}

pub(super) struct Attribute {
    name: &'static str,
    /// `c` in a create, `u` in an update, `r` required in a create.
    set: &'static str,
    default: &'static str,
    check: Check,
}

const fn a(name: &'static str, set: &'static str, default: &'static str, check: Check) -> Attribute {
    Attribute { name, set, default, check }
}

use Check::{Address, Any, Bool, Cidrs, Int, OneOf, Text, Uuid};

const PORTS: Check = Int(1, 65_535);
const BALANCER: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("description", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("vip_address", "c", "null", Address),
    a("vip_port_id", "c", "null", Uuid),
    a("vip_subnet_id", "c", "null", Uuid),
    a("vip_network_id", "c", "null", Uuid),
    a("vip_qos_policy_id", "cu", "null", Uuid),
    a("vip_sg_ids", "cu", "[]", Any),
    a("additional_vips", "c", "[]", Any),
    a("provider", "c", "\"amphora\"", Text),
    a("flavor_id", "c", "null", Uuid),
    a("tags", "cu", "[]", Any),
    a("availability_zone", "c", "null", Any),
    a("listeners", "c", "[]", Any),
    a("pools", "c", "[]", Any),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];
const LISTENER: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("description", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a(
        "protocol",
        "cr",
        "",
        OneOf(&["SCTP", "PROMETHEUS", "UDP", "TCP", "HTTP", "TERMINATED_HTTPS", "HTTPS"]),
    ),
    a("protocol_port", "cr", "", PORTS),
    a("connection_limit", "cu", "-1", Int(-1, i64::MAX)),
    a("default_tls_container_ref", "cu", "null", Any),
    a("sni_container_refs", "cu", "[]", Any),
    a("default_pool_id", "cu", "null", Uuid),
    a("default_pool", "c", "null", Any),
    a("l7policies", "c", "[]", Any),
    a("insert_headers", "cu", "{}", Any),
    a("loadbalancer_id", "cr", "", Uuid),
    a("timeout_client_data", "cu", "50000", Int(0, 31_536_000_000)),
    a("timeout_member_connect", "cu", "5000", Int(0, 31_536_000_000)),
    a("timeout_member_data", "cu", "50000", Int(0, 31_536_000_000)),
    a("timeout_tcp_inspect", "cu", "0", Int(0, 31_536_000_000)),
    a("tags", "cu", "[]", Any),
    a("client_ca_tls_container_ref", "cu", "null", Any),
    a("client_authentication", "cu", "\"NONE\"", OneOf(&["NONE", "OPTIONAL", "MANDATORY"])),
    a("client_crl_container_ref", "cu", "null", Any),
    a("allowed_cidrs", "cu", "null", Cidrs),
    a("tls_ciphers", "cu", "null", Any),
    a("tls_versions", "cu", "null", Any),
    a("alpn_protocols", "cu", "null", Any),
    a("hsts_max_age", "cu", "null", Any),
    a("hsts_include_subdomains", "cu", "false", Bool),
    a("hsts_preload", "cu", "false", Bool),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];
const POOL: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("description", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("listener_id", "c", "null", Uuid),
    a("loadbalancer_id", "c", "null", Uuid),
    a("protocol", "cr", "", OneOf(&["SCTP", "PROXYV2", "UDP", "TCP", "PROXY", "HTTP", "HTTPS"])),
    a("lb_algorithm", "cur", "", OneOf(&["LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT", "ROUND_ROBIN"])),
    a("session_persistence", "cu", "null", Any),
    a("members", "c", "[]", Any),
    a("healthmonitor", "c", "null", Any),
    a("tags", "cu", "[]", Any),
    a("tls_container_ref", "cu", "null", Any),
    a("ca_tls_container_ref", "cu", "null", Any),
    a("crl_container_ref", "cu", "null", Any),
    a("tls_enabled", "cu", "false", Bool),
    a("tls_ciphers", "cu", "null", Any),
    a("tls_versions", "cu", "null", Any),
    a("alpn_protocols", "cu", "null", Any),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];
const MEMBER: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("address", "cr", "", Address),
    a("protocol_port", "cr", "", PORTS),
    a("weight", "cu", "1", Int(0, 256)),
    a("backup", "cu", "false", Bool),
    a("subnet_id", "c", "null", Uuid),
    a("monitor_address", "cu", "null", Address),
    a("monitor_port", "cu", "null", PORTS),
    a("tags", "cu", "[]", Any),
    a("request_sriov", "c", "false", Bool),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];
const MONITOR: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("type", "cr", "", OneOf(&["SCTP", "TLS-HELLO", "PING", "UDP-CONNECT", "TCP", "HTTP", "HTTPS"])),
    a("delay", "cur", "", Int(0, i64::MAX)),
    a("timeout", "cur", "", Int(0, i64::MAX)),
    a("max_retries_down", "cu", "3", Int(1, 10)),
    a("max_retries", "cur", "", Int(1, 10)),
    a("http_method", "cu", "null", Any),
    a("url_path", "cu", "null", Any),
    a("expected_codes", "cu", "null", Any),
    a("admin_state_up", "cu", "true", Bool),
    a("pool_id", "cr", "", Uuid),
    a("tags", "cu", "[]", Any),
    a("http_version", "cu", "null", Any),
    a("domain_name", "cu", "null", Any),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];
const POLICY: &[Attribute] = &[
    a("name", "cu", "\"\"", Text),
    a("description", "cu", "\"\"", Text),
    a("admin_state_up", "cu", "true", Bool),
    a("action", "cur", "", OneOf(&["REDIRECT_TO_POOL", "REDIRECT_TO_URL", "REJECT", "REDIRECT_PREFIX"])),
    a("redirect_pool_id", "cu", "null", Uuid),
    a("redirect_url", "cu", "null", Any),
    a("redirect_prefix", "cu", "null", Any),
    a("position", "cu", "1", Int(1, 2_147_483_647)),
    a("listener_id", "cr", "", Uuid),
    a("rules", "c", "[]", Any),
    a("tags", "cu", "[]", Any),
    a("redirect_http_code", "cu", "null", Any),
    a("project_id", "c", "null", Text),
    a("tenant_id", "c", "null", Text),
];

fn of(kind: &str) -> &'static [Attribute] {
    match kind {
        "loadbalancer" => BALANCER,
        "listener" => LISTENER,
        "pool" => POOL,
        "member" => MEMBER,
        "healthmonitor" => MONITOR,
        _ => POLICY,
    }
}

/// What Octavia's code calls the body.
fn argument(kind: &str) -> &'static str {
    match kind {
        "loadbalancer" => "load_balancer",
        "listener" => "listener_",
        "pool" => "pool_",
        "member" => "member_",
        "healthmonitor" => "health_monitor_",
        _ => "l7policy_",
    }
}

fn invalid(field: &str, value: &str, why: impl std::fmt::Display) -> Fail {
    Fail::bad(format!("Invalid input for field/attribute {field}. Value: '{value}'. {why}"))
}

/// The object of a body, with its values checked; a create gets defaults.
pub(super) fn read(call: &Call, kind: &str, create: bool) -> Result<Object, Fail> {
    let body = call.json().ok_or_else(|| Fail::bad("Request is not in valid JSON format"))?;
    let Some(given) = body.get(kind).and_then(Value::as_object).cloned() else {
        if let Some(unknown) = body.as_object().and_then(|it| it.keys().next()) {
            return Err(Fail::bad(format!("Unknown attribute for argument {}: {unknown}", argument(kind))));
        }
        let field = if create { "project_id" } else { "to_dict" };
        return Err(Fail::new(500, "Server", format!("'UnsetType' object has no attribute '{field}'")));
    };
    checked(kind, given, create, &format!("{}.{kind}", argument(kind)), &body)
}

/// An object inside of a body, such as a listener of a whole tree.
pub(super) fn nested(kind: &str, given: Object) -> Result<Object, Fail> {
    let body = Value::Object(given.clone());
    checked(kind, given, true, &format!("{}.{kind}", argument(kind)), &body)
}

fn checked(kind: &str, mut given: Object, create: bool, at: &str, body: &Value) -> Result<Object, Fail> {
    let attributes = of(kind);
    let allowed = |it: &Attribute| it.set.contains(if create { 'c' } else { 'u' });
    if let Some(unknown) =
        given.keys().find(|name| !attributes.iter().any(|it| it.name == name.as_str() && allowed(it)))
    {
        return Err(Fail::bad(format!("Unknown attribute for argument {at}: {unknown}")));
    }
    let mut made = Object::new();
    for attribute in attributes.iter().filter(|it| allowed(it)) {
        match given.remove(attribute.name) {
            Some(value) => {
                let value = check(kind, attribute, value, body)?;
                made.insert(attribute.name.to_owned(), value);
            }
            None if create && attribute.set.contains('r') => {
                return Err(invalid(attribute.name, "None", "Mandatory field missing."));
            }
            None if create => {
                made.insert(
                    attribute.name.to_owned(),
                    serde_json::from_str(attribute.default).unwrap_or_default(),
                );
            }
            None => {}
        }
    }
    Ok(made)
}

fn check(kind: &str, attribute: &Attribute, value: Value, body: &Value) -> Result<Value, Fail> {
    let name = attribute.name;
    if value.is_null() {
        return Ok(serde_json::from_str(attribute.default).unwrap_or_default());
    }
    let shown = text(&value);
    match &attribute.check {
        Check::Text => match &value {
            Value::String(string) if string.chars().count() > 255 => {
                Err(invalid(name, &shown, "Value should have a maximum character requirement of 255"))
            }
            Value::String(_) => Ok(value),
            _ => Err(invalid(name, &shown, "Value should be string")),
        },
        Check::Bool => match &value {
            Value::Bool(_) => Ok(value),
            _ => match shown.to_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "on" | "1" => Ok(json!(true)),
                "false" | "f" | "no" | "n" | "off" | "0" => Ok(json!(false)),
                _ => Err(invalid(
                    argument(kind),
                    &repr(body),
                    format!("Value not an unambiguous boolean: {shown}"),
                )),
            },
        },
        Check::Int(least, most) => {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            let Some(number) = number else {
                return Err(invalid(
                    argument(kind),
                    &repr(body),
                    format!("invalid literal for int() with base 10: {}", repr(&value)),
                ));
            };
            if number < *least {
                return Err(invalid(name, &shown, format!("Value should be greater or equal to {least}")));
            }
            if number > *most {
                return Err(invalid(name, &shown, format!("Value should be lower or equal to {most}")));
            }
            Ok(json!(number))
        }
        Check::Uuid => match value.as_str().is_some_and(is_id) {
            true => Ok(value),
            false => Err(invalid(name, &shown, "Value should be UUID format")),
        },
        Check::Address => match shown.parse::<std::net::IpAddr>().is_ok() {
            true => Ok(value),
            false => Err(invalid(name, &shown, "Value should be IPv4 or IPv6 format")),
        },
        Check::Cidrs => {
            let range = |it: &Value| {
                let it = it.as_str()?;
                let range =
                    IpNet::from_str(it).ok().or_else(|| Some(it.parse::<std::net::IpAddr>().ok()?.into()));
                Some(json!(range?.trunc().to_string()))
            };
            let ranges: Option<Vec<Value>> = value.as_array().and_then(|all| all.iter().map(range).collect());
            match ranges {
                Some(ranges) => Ok(Value::Array(ranges)),
                None => Err(invalid(name, &shown, "Value should be IPv4 or IPv6 CIDR format")),
            }
        }
        Check::OneOf(allowed) => match allowed.contains(&shown.as_str()) {
            true => Ok(value),
            false => Err(invalid(name, &shown, format!("Value should be one of: {}", allowed.join(", ")))),
        },
        Check::Any => Ok(value),
    }
}

/// Names that a list of a kind can be filtered by.
pub(super) fn is_filter(kind: &str, name: &str) -> bool {
    let more = [
        "id",
        "provisioning_status",
        "operating_status",
        "created_at",
        "updated_at",
        "loadbalancer_id",
        "listener_id",
        "pool_id",
        "limit",
        "marker",
        "sort",
        "fields",
        "page_reverse",
        "tags",
        "tags-any",
        "not-tags",
        "not-tags-any",
        "project_id",
        "tenant_id",
        "vip_address",
        "vip_port_id",
    ];
    more.contains(&name) || of(kind).iter().any(|it| it.name == name)
}

/// Whether a tag list, an address or another value is what a filter wants.
pub(super) fn filter_matches(row: &Object, name: &str, wanted: &str) -> bool {
    let tags = row.texts("tags");
    let given: Vec<&str> = wanted.split(',').collect();
    match name {
        "limit" | "marker" | "sort" | "fields" | "page_reverse" => true,
        "tags" => given.iter().all(|tag| tags.contains(tag)),
        "tags-any" => given.iter().any(|tag| tags.contains(tag)),
        "not-tags" => !given.iter().all(|tag| tags.contains(tag)),
        "not-tags-any" => !given.iter().any(|tag| tags.contains(tag)),
        "loadbalancer_id" => row.text("_balancer") == wanted,
        "pool_id" => row.text("_pool") == wanted,
        "listener_id" => row.text("listener_id") == wanted || row.text("_listener") == wanted,
        _ => match row.get(name) {
            Some(Value::String(held)) => held.eq_ignore_ascii_case(wanted),
            Some(Value::Bool(held)) => held.to_string() == wanted.to_lowercase(),
            Some(Value::Number(held)) => held.to_string() == wanted,
            _ => false,
        },
    }
}
