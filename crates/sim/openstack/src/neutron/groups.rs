//! Security groups, their rules, and address groups.

use std::str::FromStr as _;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Fail, kind_of, policy, quotas, render, store, touch};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, object};
use crate::wire::{Call, Handled, Reply};

/// Protocols by name, with their numbers.
const PROTOCOLS: &[(&str, u8)] = &[
    ("ah", 51),
    ("dccp", 33),
    ("egp", 8),
    ("esp", 50),
    ("gre", 47),
    ("icmp", 1),
    ("igmp", 2),
    ("ip", 0),
    ("ipip", 4),
    ("ipv6-encap", 41),
    ("ipv6-frag", 44),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("ipv6-route", 43),
    ("ospf", 89),
    ("pgm", 113),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

/// The range that Neutron keeps as none.
const EVERY_PORT: (i64, i64) = (1, 65_535);

/// A project's default group, which is there as soon as anything asks for it.
pub(crate) fn ensure_default(cloud: &mut Cloud, project: &str) {
    if project.is_empty() || super::ports::default_group(cloud, project).is_some() {
        return;
    }
    let row = object(json!({
        "name": "default", "description": "Default security group", "stateful": true, "project_id": project,
        "tenant_id": project, "shared": false,
    }));
    let id = store(cloud, "security_group", row);
    for ethertype in ["IPv4", "IPv6"] {
        add_rule(cloud, &id, project, "egress", ethertype, None);
        add_rule(cloud, &id, project, "ingress", ethertype, Some(&id));
    }
}

fn add_rule(
    cloud: &mut Cloud,
    group: &str,
    project: &str,
    direction: &str,
    ethertype: &str,
    remote: Option<&str>,
) {
    let number = cloud.all("security_group_rules").count() + 100;
    let default = cloud.get("security_groups", group).is_some_and(|it| it.text("name") == "default");
    let row = object(json!({
        "security_group_id": group, "direction": direction, "ethertype": ethertype, "protocol": null,
        "port_range_min": null, "port_range_max": null, "remote_ip_prefix": null, "remote_group_id": remote,
        "remote_address_group_id": null, "normalized_cidr": null, "description": null, "project_id": project,
        "tenant_id": project, "standard_attr_id": number,
        "belongs_to_default_sg": if default { Value::Null } else { json!(false) },
    }));
    store(cloud, "security_group_rule", row);
}

pub(super) fn create(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    if row.text("name") == "default" {
        let text = "Default security group already exists.";
        return Err(Fail::new(409, "SecurityGroupDefaultAlreadyExists", text));
    }
    let project = row.text("project_id").to_owned();
    row.insert("shared".to_owned(), json!(false));
    let id = store(cloud, "security_group", row);
    for ethertype in ["IPv4", "IPv6"] {
        add_rule(cloud, &id, &project, "egress", ethertype, None);
    }
    Ok(id)
}

pub(super) fn delete(cloud: &mut Cloud, held: &Object, admin: bool) -> Result<(), Fail> {
    let id = held.text("id");
    if cloud.all("ports").any(|port| port.texts("security_groups").contains(&id)) {
        return Err(Fail::new(409, "SecurityGroupInUse", format!("Security Group {id} in use.")));
    }
    if held.text("name") == "default" && !admin {
        let text = "Insufficient rights for removing default security group.";
        return Err(Fail::new(409, "SecurityGroupCannotRemoveDefault", text));
    }
    cloud
        .table_mut("security_group_rules")
        .retain(|it| it.text("security_group_id") != id && it.text("remote_group_id") != id);
    Ok(())
}

fn protocol_number(protocol: &str) -> Option<u8> {
    let by_name =
        PROTOCOLS.iter().find(|(name, _)| *name == protocol.to_lowercase()).map(|(_, number)| *number);
    by_name.or(protocol.parse().ok())
}

pub(super) fn create_rule(cloud: &mut Cloud, call: &Call, mut row: Object) -> Result<String, Fail> {
    let group_id = row.text("security_group_id").to_owned();
    let group = cloud.get("security_groups", &group_id).cloned();
    let group = group.ok_or_else(|| kind_of("security_group").absent(&group_id))?;
    if group.text("project_id") != call.caller.project() && !call.caller.is_admin() {
        return Err(policy("rule:create_security_group_rule"));
    }
    check_rule(cloud, &mut row)?;
    quotas::check(cloud, group.text("project_id"), kind_of("security_group_rule"))?;
    if let Some(same) = cloud.all("security_group_rules").find(|it| same_rule(it, &row)) {
        let text = format!("Security group rule already exists. Rule id is {}.", same.text("id"));
        return Err(Fail::new(409, "SecurityGroupRuleExists", text));
    }
    let number = cloud.all("security_group_rules").count() + 100;
    row.insert("standard_attr_id".to_owned(), json!(number));
    row.insert("belongs_to_default_sg".to_owned(), json!(group.text("name") == "default"));
    row.insert("project_id".to_owned(), group["project_id"].clone());
    row.insert("tenant_id".to_owned(), group["project_id"].clone());
    let id = store(cloud, "security_group_rule", row);
    touch(cloud, "security_groups", &group_id);
    Ok(id)
}

/// The description does not count, and all addresses are as good as none.
fn same_rule(one: &Object, other: &Object) -> bool {
    let prefix = |it: &Object| match it.text("normalized_cidr") {
        "0.0.0.0/0" | "::/0" => String::new(),
        cidr => cidr.to_owned(),
    };
    let protocol =
        |it: &Object| protocol_number(it.text("protocol")).map_or_else(String::new, |it| it.to_string());
    let fields = [
        "security_group_id",
        "direction",
        "ethertype",
        "port_range_min",
        "port_range_max",
        "remote_group_id",
        "remote_address_group_id",
    ];
    fields.iter().all(|field| one.get(*field) == other.get(*field))
        && prefix(one) == prefix(other)
        && protocol(one) == protocol(other)
}

/// ICMP of IPv6 has one name and one number, whatever was sent.
fn settle_icmp(row: &mut Object, protocol: String) -> String {
    let settled = match protocol.as_str() {
        "icmp" | "icmpv6" if row.text("ethertype") == "IPv6" => "ipv6-icmp",
        "1" if row.text("ethertype") == "IPv6" => "58",
        _ => return protocol,
    };
    row.insert("protocol".to_owned(), json!(settled));
    settled.to_owned()
}

fn check_rule(cloud: &Cloud, row: &mut Object) -> Result<(), Fail> {
    let fail = |kind, text: String| Err(Fail::new(400, kind, text));
    match row.text("ethertype").to_lowercase().as_str() {
        "ipv4" => drop(row.insert("ethertype".to_owned(), json!("IPv4"))),
        "ipv6" => drop(row.insert("ethertype".to_owned(), json!("IPv6"))),
        _ => {
            let text = format!(
                "Security group rule for ethertype '{}' not supported. Allowed values are ['IPv4', 'IPv6'].",
                row.text("ethertype")
            );
            return fail("SecurityGroupRuleInvalidEtherType", text);
        }
    }
    if let Some(Value::Number(number)) = row.get("protocol") {
        let text = number.to_string();
        row.insert("protocol".to_owned(), json!(text));
    }
    let protocol = row.text("protocol").to_lowercase();
    if row.has("protocol") && protocol == "any" {
        row.insert("protocol".to_owned(), Value::Null);
    } else if row.has("protocol") {
        if protocol_number(&protocol).is_none() {
            let names: Vec<String> = PROTOCOLS.iter().map(|(name, _)| format!("'{name}'")).collect();
            let text = format!(
                "Security group rule protocol {protocol} not supported. Only protocol values [None, {}] and integer representations [0 to 255] are supported.",
                names.join(", ")
            );
            return fail("SecurityGroupRuleInvalidProtocol", text);
        }
        row.insert("protocol".to_owned(), json!(protocol));
    }
    let protocol = settle_icmp(row, protocol);
    for name in ["port_range_min", "port_range_max"] {
        if let Some(Value::String(text)) = row.get(name) {
            let Ok(number) = text.parse::<i64>() else {
                return fail("SecurityGroupInvalidPortValue", format!("Invalid value for port {text}"));
            };
            row.insert(name.to_owned(), json!(number));
        }
        if row.has(name) && !(-1..=65535).contains(&row.number(name)) {
            return fail(
                "SecurityGroupInvalidPortValue",
                format!("Invalid value for port {}", row.number(name)),
            );
        }
    }
    if (row.number("port_range_min"), row.number("port_range_max")) == EVERY_PORT {
        row.insert("port_range_min".to_owned(), Value::Null);
        row.insert("port_range_max".to_owned(), Value::Null);
    }
    let number = protocol_number(&protocol).filter(|_| row.has("protocol"));
    let (min, max) = (row.has("port_range_min"), row.has("port_range_max"));
    if (min || max) && number.is_none() {
        let text = "Must also specify protocol if port range is given.".to_owned();
        return fail("SecurityGroupProtocolRequiredWithPorts", text);
    }
    match number {
        Some(6 | 17 | 33 | 132 | 136) if min || max => {
            if min && max && row.number("port_range_min") <= row.number("port_range_max") {
                if row.number("port_range_min") < 1 {
                    return fail("SecurityGroupInvalidPortValue", "Invalid value for port 0".to_owned());
                }
            } else {
                let text = "For TCP/UDP protocols, port_range_min must be <= port_range_max".to_owned();
                return fail("SecurityGroupInvalidPortRange", text);
            }
        }
        Some(1 | 58) => {
            for (name, word) in [("port_range_min", "type"), ("port_range_max", "code")] {
                if row.has(name) && !(0..=255).contains(&row.number(name)) {
                    let text = format!(
                        "Invalid value for ICMP {word} ({name}) {}. It must be 0 to 255.",
                        row.number(name)
                    );
                    return fail("SecurityGroupInvalidIcmpValue", text);
                }
            }
            if max && !min {
                let text = format!(
                    "ICMP code (port-range-max) {} is provided but ICMP type (port-range-min) is missing.",
                    row.number("port_range_max")
                );
                return fail("SecurityGroupMissingIcmpType", text);
            }
        }
        Some(_) if min || max => {
            let text = format!(
                "Port range cannot be specified for protocol {protocol}. Port range is only supported for TCP, UDP, UDPLITE, SCTP and DCCP."
            );
            return fail("SecurityGroupInvalidProtocolForPort", text);
        }
        _ => {}
    }
    let remotes = ["remote_ip_prefix", "remote_group_id", "remote_address_group_id"];
    if remotes.iter().filter(|name| row.has(name)).count() > 1 {
        let text =
            "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided."
                .to_owned();
        return fail("SecurityGroupMultipleRemoteEntites", text);
    }
    row.insert("normalized_cidr".to_owned(), Value::Null);
    if row.has("remote_ip_prefix") {
        let prefix = row.text("remote_ip_prefix").to_owned();
        let net = IpNet::from_str(&prefix).or_else(|_| prefix.parse::<std::net::IpAddr>().map(IpNet::from));
        let Ok(net) = net else {
            return fail("InvalidCIDR", format!("Invalid CIDR {prefix} given as IP prefix."));
        };
        if net.network().is_ipv4() != (row.text("ethertype") == "IPv4") {
            let text = format!("Conflicting value ethertype {} for CIDR {prefix}", row.text("ethertype"));
            return fail("SecurityGroupRuleParameterConflict", text);
        }
        row.insert("remote_ip_prefix".to_owned(), json!(net.to_string()));
        row.insert("normalized_cidr".to_owned(), json!(net.trunc().to_string()));
    }
    if row.has("remote_group_id") {
        let id = row.text("remote_group_id");
        cloud.get("security_groups", id).ok_or_else(|| kind_of("security_group").absent(id))?;
    }
    if row.has("remote_address_group_id") {
        let id = row.text("remote_address_group_id");
        cloud.get("address_groups", id).ok_or_else(|| kind_of("address_group").absent(id))?;
    }
    Ok(())
}

pub(super) fn change_addresses(cloud: &mut Cloud, call: &Call, id: &str, action: &str) -> Handled {
    let held = kind_of("address_group").own(cloud, call, id, action)?;
    let body = super::attributes::read(call)?;
    let Some(Value::Array(given)) = body.get("addresses") else { return Err(super::internal()) };
    let mut addresses = held.list("addresses").to_vec();
    match action {
        "add_addresses" => {
            addresses.extend(given.iter().filter(|it| !held.list("addresses").contains(it)).cloned())
        }
        "remove_addresses" => addresses.retain(|it| !given.contains(it)),
        _ => return Err(super::not_found()),
    }
    cloud.set("address_groups", id, "addresses", addresses);
    touch(cloud, "address_groups", id);
    let row = cloud.get("address_groups", id).cloned().unwrap_or_default();
    let mut shown = render(cloud, call, "address_group", &row);
    // This reply is not filtered as others are.
    shown.insert("shared".to_owned(), json!(false));
    shown.insert("standard_attr_id".to_owned(), json!(200));
    Ok(Reply::ok(json!({"address_group": shown})))
}
