//! Addresses: which are free in a subnet, which a port gets.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr as _;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{bad_request, invalid_input};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};
use crate::wire::{Fail, repr};

/// How many of the lowest free addresses one is picked from: Neutron does not hand them out in order.
const WINDOW: usize = 10;
/// Most addresses that are looked at in a pool.
const LONGEST_SEARCH: u128 = 1 << 20;

pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => u128::from(u32::from(it)),
        IpAddr::V6(it) => u128::from(it),
    }
}

pub(super) fn address(number: u128, v4: bool) -> IpAddr {
    match v4 {
        true => IpAddr::V4(u32::try_from(number).unwrap_or(u32::MAX).into()),
        false => IpAddr::V6(number.into()),
    }
}

/// Start and end of a pool.
pub(super) fn pool(pool: &Value) -> Option<(IpAddr, IpAddr)> {
    Some((pool["start"].as_str()?.parse().ok()?, pool["end"].as_str()?.parse().ok()?))
}

/// Whether an address of a subnet belongs to a port or a router.
pub(crate) fn is_taken(cloud: &Cloud, subnet: &str, address: &str) -> bool {
    cloud.all("ports").any(|port| {
        port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == subnet && ip["ip_address"] == address)
    })
}

/// A free address out of the pools of a subnet.
fn pick(cloud: &Cloud, subnet: &Object) -> Option<IpAddr> {
    let id = subnet.text("id");
    let taken: std::collections::BTreeSet<&str> = cloud
        .all("ports")
        .flat_map(|port| port.list("fixed_ips"))
        .filter(|ip| ip["subnet_id"] == id)
        .filter_map(|ip| ip["ip_address"].as_str())
        .collect();
    let mut free = Vec::new();
    for (start, end) in subnet.list("allocation_pools").iter().filter_map(pool) {
        let (first, last) = (number(start), number(end).min(number(start).saturating_add(LONGEST_SEARCH)));
        for candidate in first..=last {
            let candidate = address(candidate, start.is_ipv4());
            if !taken.contains(candidate.to_string().as_str())
                && subnet.text("gateway_ip") != candidate.to_string()
            {
                free.push(candidate);
                if free.len() == WINDOW {
                    break;
                }
            }
        }
        if free.len() == WINDOW {
            break;
        }
    }
    let random = cloud.uuid();
    let random = usize::from_str_radix(&random[..4], 16).unwrap_or_default();
    (!free.is_empty()).then(|| free[random % free.len()])
}

/// The address that a SLAAC subnet gives to a MAC address.
fn slaac(cidr: &str, mac: &str) -> Option<IpAddr> {
    let net = IpNet::from_str(cidr).ok()?;
    let bytes: Vec<u8> = mac.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    let IpAddr::V6(network) = net.network() else { return None };
    let [a, b, c, d, e, f] = bytes.try_into().ok()?;
    let host = u128::from(u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]));
    Some(IpAddr::V6(Ipv6Addr::from(u128::from(network) | host)))
}

/// Addresses of a port as asked for, or chosen: one of each family, and of every SLAAC subnet.
pub(super) fn allocate(
    cloud: &Cloud,
    network: &str,
    mac: &str,
    wanted: Option<&Vec<Value>>,
    own: &[Value],
    router: bool,
) -> Result<Vec<Value>, Fail> {
    let subnets: Vec<&Object> = cloud.all("subnets").filter(|it| it.text("network_id") == network).collect();
    let is_slaac = |subnet: &Object| matches!(subnet.text("ipv6_address_mode"), "slaac" | "dhcpv6-stateless");
    let mut ips: Vec<Value> = Vec::new();
    let is_own = |subnet: &str, address: &str| {
        own.iter().any(|ip| ip["subnet_id"] == subnet && ip["ip_address"] == address)
    };
    match wanted {
        Some(wanted) => {
            for ask in wanted {
                ips.push(asked(cloud, network, &subnets, ask, mac, &is_own)?);
            }
        }
        None => {
            for v4 in [true, false] {
                let family: Vec<&&Object> = subnets
                    .iter()
                    .filter(|it| (it.number("ip_version") == 4) == v4 && !is_slaac(it))
                    .collect();
                if family.is_empty() {
                    continue;
                }
                let found = family.iter().find_map(|it| Some((it, pick(cloud, it)?)));
                let Some((subnet, address)) = found else {
                    let text = format!("No more IP addresses available on network {network}.");
                    return Err(Fail::new(409, "IpAddressGenerationFailure", text));
                };
                ips.push(json!({"subnet_id": subnet["id"], "ip_address": address.to_string()}));
            }
        }
    }
    if !router && wanted.is_none_or(|wanted| !wanted.is_empty()) {
        for subnet in subnets.iter().filter(|it| is_slaac(it)) {
            if ips.iter().any(|ip| ip["subnet_id"] == subnet["id"]) {
                continue;
            }
            if let Some(address) = slaac(subnet.text("cidr"), mac) {
                ips.push(json!({"subnet_id": subnet["id"], "ip_address": address.to_string()}));
            }
        }
    }
    Ok(ips)
}

fn asked(
    cloud: &Cloud,
    network: &str,
    subnets: &[&Object],
    ask: &Value,
    mac: &str,
    is_own: &dyn Fn(&str, &str) -> bool,
) -> Result<Value, Fail> {
    let given = ask["ip_address"].as_str();
    let address: Option<IpAddr> = match given {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            bad_request(format!(
                "Invalid input for fixed_ips. Reason: {} is not a valid IP address.",
                repr(&json!(text))
            ))
        })?),
    };
    let contains = |subnet: &Object, address: IpAddr| {
        IpNet::from_str(subnet.text("cidr")).is_ok_and(|net| net.contains(&address))
    };
    let subnet = match ask["subnet_id"].as_str() {
        Some(id) => match subnets.iter().find(|it| it.text("id") == id) {
            Some(subnet) => subnet,
            None if cloud.get("subnets", id).is_none() => return Err(super::kind_of("subnet").absent(id)),
            None => {
                return Err(invalid_input(format!(
                    "Failed to create port on network {network}, because fixed_ips included invalid subnet {id}"
                )));
            }
        },
        None => {
            let Some(address) = address else {
                return Err(invalid_input("IP allocation requires subnet_id or ip_address"));
            };
            match subnets.iter().find(|it| contains(it, address)) {
                Some(subnet) => subnet,
                None => {
                    let text = format!(
                        "IP address {address} is not a valid IP for any of the subnets on the specified network."
                    );
                    return Err(Fail::new(400, "InvalidIpForNetwork", text));
                }
            }
        }
    };
    let id = subnet.text("id");
    match address {
        Some(address) => {
            let net = IpNet::from_str(subnet.text("cidr")).ok();
            let edge = net.is_some_and(|net| {
                address.is_ipv4()
                    && net.prefix_len() < 31
                    && (address == net.broadcast() || address == net.network())
            });
            if !contains(subnet, address) || edge {
                let text = format!("IP address {address} is not a valid IP for the specified subnet.");
                return Err(Fail::new(400, "InvalidIpForSubnet", text));
            }
            let text = address.to_string();
            if is_taken(cloud, id, &text) && !is_own(id, &text) {
                let text = format!("IP address {text} already allocated in subnet {id}");
                return Err(Fail::new(409, "IpAddressAlreadyAllocated", text));
            }
            Ok(json!({"subnet_id": id, "ip_address": text}))
        }
        None if matches!(subnet.text("ipv6_address_mode"), "slaac" | "dhcpv6-stateless") => {
            let address = slaac(subnet.text("cidr"), mac).map(|it| it.to_string());
            Ok(json!({"subnet_id": id, "ip_address": address}))
        }
        None => match pick(cloud, subnet) {
            Some(address) => Ok(json!({"subnet_id": id, "ip_address": address.to_string()})),
            None => {
                let text = format!("No more IP addresses available on network {network}.");
                Err(Fail::new(409, "IpAddressGenerationFailure", text))
            }
        },
    }
}
