//! Networks, subnets and subnet pools.

use std::net::IpAddr;
use std::str::FromStr as _;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Fail, invalid_input, ipam, kind_of, store};
use crate::cloud::Cloud;
use crate::table::{Fields as _, Object};

pub(crate) fn create_network(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    if row.number("mtu") == 0 {
        row.insert("mtu".to_owned(), json!(if row.flag("router:external") { 1500 } else { 1450 }));
    }
    if !row.has("provider:network_type") {
        let count = cloud.all("networks").count();
        row.insert(
            "provider:network_type".to_owned(),
            json!(if row.flag("router:external") { "flat" } else { "vxlan" }),
        );
        row.insert("provider:segmentation_id".to_owned(), json!(30_000 + count));
    }
    let fixed = json!({
        "status": "ACTIVE", "availability_zones": [], "ipv4_address_scope": null, "ipv6_address_scope": null,
    });
    row.extend(crate::table::object(fixed));
    Ok(store(cloud, "network", row))
}

pub(super) fn delete_network(cloud: &mut Cloud, id: &str) -> Result<(), Fail> {
    // A DHCP port is Neutron's own and goes with the network.
    let ports: Vec<String> = cloud
        .all("ports")
        .filter(|it| it.text("network_id") == id && !it.flag("_automatic"))
        .map(|it| it.text("id").to_owned())
        .collect();
    if !ports.is_empty() {
        let text = format!(
            "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id for these ports is: {}.",
            ports.join(",")
        );
        return Err(Fail::new(409, "NetworkInUse", text));
    }
    cloud.table_mut("subnets").retain(|it| it.text("network_id") != id);
    cloud.table_mut("rbac_policies").retain(|it| it.text("object_id") != id);
    Ok(())
}

pub(super) fn delete_subnet(cloud: &mut Cloud, id: &str) -> Result<(), Fail> {
    let auto = cloud.get("subnets", id).is_some_and(|it| it.text("ipv6_address_mode") == "slaac");
    let used = cloud.all("ports").any(|port| {
        port.list("fixed_ips").iter().any(|ip| ip["subnet_id"] == id)
            && (!auto || port.text("device_owner").starts_with("network:router"))
    });
    if used {
        let text = format!(
            "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
        );
        return Err(Fail::new(409, "SubnetInUse", text));
    }
    for port in cloud.table_mut("ports").iter_mut() {
        if let Some(Value::Array(ips)) = port.get_mut("fixed_ips") {
            ips.retain(|ip| ip["subnet_id"] != id);
        }
    }
    Ok(())
}

pub(crate) fn create_subnet(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    let network = row.text("network_id").to_owned();
    let version = row.number("ip_version");
    if !row.has("cidr") {
        let cidr = from_pool(cloud, &row)?;
        row.insert("cidr".to_owned(), json!(cidr));
    }
    let text = row.text("cidr").to_owned();
    let net = IpNet::from_str(&text).map_err(|_| invalid_input(format!("{text} is not in a CIDR format")))?;
    if !matches!(version, 4 | 6) {
        return Err(super::bad_request(format!(
            "Invalid input for ip_version. Reason: {version} is not in valid_values."
        )));
    }
    if net.network().is_ipv4() != (version == 4) {
        return Err(invalid_input(format!("cidr '{text}' does not match the ip_version '{version}'")));
    }
    let net = net.trunc();
    row.insert("cidr".to_owned(), json!(net.to_string()));
    let overlaps = cloud.all("subnets").filter(|it| it.text("network_id") == network).any(|it| {
        IpNet::from_str(it.text("cidr")).is_ok_and(|held| held.contains(&net) || net.contains(&held))
    });
    if overlaps {
        return Err(invalid_input(format!(
            "Requested subnet with cidr: {net} for network: {network} overlaps with another subnet"
        )));
    }
    settle_gateway(&mut row, net);
    settle_pools(&mut row, net)?;
    let external = cloud.get("networks", &network).is_some_and(|it| it.flag("router:external"));
    row.insert("router:external".to_owned(), json!(external));
    let id = store(cloud, "subnet", row);
    if text.contains(':') {
        add_slaac(cloud, &network);
    }
    Ok(id)
}

/// Ports that are there already get an address of a new SLAAC subnet.
fn add_slaac(cloud: &mut Cloud, network: &str) {
    let ports: Vec<Object> = cloud
        .all("ports")
        .filter(|it| {
            it.text("network_id") == network && !it.text("device_owner").starts_with("network:router")
        })
        .cloned()
        .collect();
    for port in ports {
        let held = port.list("fixed_ips").to_vec();
        if let Ok(ips) = ipam::allocate(cloud, network, port.text("mac_address"), Some(&held), &held, false) {
            cloud.set("ports", port.text("id"), "fixed_ips", ips);
        }
    }
}

fn settle_gateway(row: &mut Object, net: IpNet) {
    if row.text("gateway_ip") == "<default>" {
        let first = match net {
            IpNet::V4(net) => u128::from(u32::from(net.network())) + 1,
            IpNet::V6(net) => u128::from(net.network()),
        };
        let gateway = ipam::address(first, net.network().is_ipv4());
        row.insert("gateway_ip".to_owned(), json!(gateway.to_string()));
    }
}

fn settle_pools(row: &mut Object, net: IpNet) -> Result<(), Fail> {
    let gateway: Option<IpAddr> = row.text("gateway_ip").parse().ok();
    if let Some(Value::Array(pools)) = row.get("allocation_pools") {
        for held in pools {
            let Some((start, end)) = ipam::pool(held) else {
                return Err(super::bad_request(
                    "Invalid input for allocation_pools. Reason: Invalid data format for IP pool.",
                ));
            };
            if !net.contains(&start) || !net.contains(&end) {
                let text = format!("The allocation pool {start}-{end} spans beyond the subnet cidr {net}.");
                return Err(Fail::new(400, "OutOfBoundsAllocationPool", text));
            }
            if gateway.is_some_and(|it| {
                ipam::number(start) <= ipam::number(it) && ipam::number(it) <= ipam::number(end)
            }) {
                let gateway = row.text("gateway_ip");
                let text = format!("Gateway ip {gateway} conflicts with allocation pool {start}-{end}.");
                return Err(Fail::new(409, "GatewayConflictWithAllocationPools", text));
            }
        }
        return Ok(());
    }
    let v4 = net.network().is_ipv4();
    let (first, last) = match v4 && net.prefix_len() < 31 {
        true => (ipam::number(net.network()) + 1, ipam::number(net.broadcast()) - 1),
        false => (ipam::number(net.network()) + u128::from(!v4), ipam::number(net.broadcast())),
    };
    let show = |a: u128, b: u128| json!({"start": ipam::address(a, v4).to_string(), "end": ipam::address(b, v4).to_string()});
    let mut pools = Vec::new();
    match gateway.map(ipam::number).filter(|it| (first..=last).contains(it)) {
        Some(gateway) => {
            if gateway > first {
                pools.push(show(first, gateway - 1));
            }
            if gateway < last {
                pools.push(show(gateway + 1, last));
            }
        }
        None => pools.push(show(first, last)),
    }
    row.insert("allocation_pools".to_owned(), Value::Array(pools));
    Ok(())
}

/// The next free prefix of a subnet pool.
fn from_pool(cloud: &Cloud, row: &Object) -> Result<String, Fail> {
    let id = row.text("subnetpool_id");
    if id.is_empty() {
        let text = "Bad subnets request: a subnetpool must be specified in the absence of a cidr.";
        return Err(Fail::new(400, "BadRequest", text));
    }
    let pool = cloud.get("subnetpools", id).ok_or_else(|| kind_of("subnetpool").absent(id))?;
    let length = row.get("prefixlen").and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()));
    let length = length.or(pool.text("default_prefixlen").parse().ok()).unwrap_or(24);
    let length = u8::try_from(length).unwrap_or(32);
    let used: Vec<IpNet> = cloud
        .all("subnets")
        .filter(|it| it.text("subnetpool_id") == id)
        .filter_map(|it| IpNet::from_str(it.text("cidr")).ok())
        .collect();
    for prefix in pool.texts("prefixes") {
        let Ok(prefix) = IpNet::from_str(prefix) else { continue };
        let free =
            prefix.subnets(length).into_iter().flatten().take(4096).find(|candidate| {
                !used.iter().any(|held| held.contains(candidate) || candidate.contains(held))
            });
        if let Some(free) = free {
            return Ok(free.to_string());
        }
    }
    let text =
        format!("Failed to allocate subnet: Insufficient prefix space to allocate subnet size /{length}.");
    Err(Fail::new(409, "SubnetAllocationError", text))
}

pub(super) fn create_pool(cloud: &mut Cloud, mut row: Object) -> Result<String, Fail> {
    let v4 = row.texts("prefixes").iter().all(|prefix| !prefix.contains(':'));
    let longest = if v4 { 32 } else { 128 };
    let text = |row: &Object, name: &str, default: i64| {
        row.get(name)
            .filter(|it| !it.is_null())
            .map_or_else(|| default.to_string(), |it| it.to_string().replace('"', ""))
    };
    let least = text(&row, "min_prefixlen", if v4 { 8 } else { 64 });
    let most = text(&row, "max_prefixlen", longest);
    let default =
        row.get("default_prefixlen").filter(|it| !it.is_null()).map(|it| it.to_string().replace('"', ""));
    row.insert("default_prefixlen".to_owned(), json!(default.unwrap_or_else(|| least.clone())));
    row.insert("min_prefixlen".to_owned(), json!(least));
    row.insert("max_prefixlen".to_owned(), json!(most));
    row.insert("ip_version".to_owned(), json!(if v4 { 4 } else { 6 }));
    Ok(store(cloud, "subnetpool", row))
}

pub(super) fn update_subnet(cloud: &Cloud, held: &Object, changes: &Object) -> Result<(), Fail> {
    let net = IpNet::from_str(held.text("cidr")).map_err(|_| invalid_input("the subnet has no cidr"))?;
    let mut row = held.clone();
    row.extend(changes.clone());
    if changes.contains_key("allocation_pools") || changes.contains_key("gateway_ip") {
        settle_pools(&mut row, net)?;
    }
    if changes.contains_key("gateway_ip") {
        let gateway = held.text("gateway_ip");
        let used = cloud.all("ports").find(|port| {
            port.text("device_owner") == "network:router_interface"
                && port
                    .list("fixed_ips")
                    .iter()
                    .any(|ip| ip["ip_address"] == gateway && ip["subnet_id"] == held["id"])
        });
        if let Some(port) = used.filter(|_| row.text("gateway_ip") != gateway) {
            let text = format!(
                "Current gateway ip {gateway} already in use by port {}. Unable to update.",
                port.text("id")
            );
            return Err(Fail::new(409, "GatewayIpInUse", text));
        }
    }
    Ok(())
}
