//! A network: a bridge in its own network namespace, connected to the host.
//!
//! ```text
//!   host: cap-HASH (last address) ── veth ── host0 ┐
//!   machine: eth0 ────────────────── veth ── v-HASH ┴ br0 (first address: gateway, balancer)
//! ```
//!
//! The host's own namespace has one interface per network, with the route of its address.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use serde_json::Value;

use super::run::{run, short};
use crate::backend::{BackendError, Id, Subnet};

/// Default address pool of networks.
const POOL: &str = "10.89.0.0/16";
/// Prefix length of networks from the pool.
const PREFIX: u8 = 24;

pub(super) fn namespace_of(network: &Id) -> String {
    format!("capn-{}", short(network.as_str()))
}

pub(super) fn namespace_of_machine(machine: &Id) -> String {
    format!("capm-{}", short(machine.as_str()))
}

/// Name of a network's interface on the host.
fn interface_of(network: &Id) -> String {
    format!("cap-{}", short(network.as_str()))
}

fn port_of(machine: &Id) -> String {
    format!("v-{}", short(machine.as_str()))
}

pub(super) fn namespaces() -> Result<Vec<String>, BackendError> {
    let listed = run("ip", &["netns", "list"])?;
    Ok(listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn exists(namespace: &str) -> Result<bool, BackendError> {
    Ok(namespaces()?.iter().any(|name| name == namespace))
}

/// Whether all parts of a network exist.
pub(super) fn is_complete(network: &Id) -> Result<bool, BackendError> {
    let interface = interface_of(network);
    Ok(exists(&namespace_of(network))? && run("ip", &["link", "show", &interface]).is_ok())
}

pub(super) fn make(network: &Id, subnet: Subnet) -> Result<(), BackendError> {
    remove(network)?;
    let (namespace, interface) = (namespace_of(network), interface_of(network));
    let with_prefix = |address: Ipv4Addr| format!("{address}/{}", subnet.prefix());
    let (gateway, host) = (with_prefix(subnet.gateway()), with_prefix(subnet.host()));
    let host_address = subnet.host().to_string();
    let inside = |arguments: &[&str]| run("ip", &[&["-n", namespace.as_str()], arguments].concat());
    run("ip", &["netns", "add", &namespace])?;
    inside(&["link", "set", "lo", "up"])?;
    inside(&["link", "add", "br0", "type", "bridge"])?;
    inside(&["addr", "add", &gateway, "dev", "br0"])?;
    inside(&["link", "set", "br0", "up"])?;
    run("ip", &["link", "add", &interface, "type", "veth", "peer", "name", "host0", "netns", &namespace])?;
    inside(&["link", "set", "host0", "master", "br0", "up"])?;
    run("ip", &["addr", "add", &host, "dev", &interface])?;
    run("ip", &["link", "set", &interface, "up"])?;
    inside(&["route", "add", "default", "via", &host_address])?;
    run("ip", &["netns", "exec", &namespace, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])?;
    Ok(())
}

/// Removes a network with its interfaces.
pub(super) fn remove(network: &Id) -> Result<(), BackendError> {
    let (namespace, interface) = (namespace_of(network), interface_of(network));
    if run("ip", &["link", "show", &interface]).is_ok() {
        run("ip", &["link", "del", &interface])?;
    }
    if exists(&namespace)? {
        run("ip", &["netns", "del", &namespace])?;
    }
    Ok(())
}

/// Creates a machine's network namespace with an address in a network.
pub(super) fn attach(
    machine: &Id,
    network: &Id,
    subnet: Subnet,
    address: Ipv4Addr,
) -> Result<(), BackendError> {
    detach(machine)?;
    let (namespace, bridge) = (namespace_of_machine(machine), namespace_of(network));
    let (port, gateway) = (port_of(machine), subnet.gateway().to_string());
    let address = format!("{address}/{}", subnet.prefix());
    let inside = |arguments: &[&str]| run("ip", &[&["-n", namespace.as_str()], arguments].concat());
    run("ip", &["netns", "add", &namespace])?;
    inside(&["link", "set", "lo", "up"])?;
    run(
        "ip",
        &["-n", &bridge, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &namespace],
    )?;
    run("ip", &["-n", &bridge, "link", "set", &port, "master", "br0", "up"])?;
    inside(&["addr", "add", &address, "dev", "eth0"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["route", "add", "default", "via", &gateway])?;
    Ok(())
}

/// Removes a machine's network namespace with its interfaces.
pub(super) fn detach(machine: &Id) -> Result<(), BackendError> {
    let namespace = namespace_of_machine(machine);
    if exists(&namespace)? {
        // The interface is removed at once, the namespace only when the kernel gets to it.
        let _ = run("ip", &["-n", &namespace, "link", "del", "eth0"]);
        run("ip", &["netns", "del", &namespace])?;
    }
    Ok(())
}

/// A subnet that is used by no other network and no route of the host.
pub(super) fn free_subnet(taken: &[Subnet]) -> Result<Subnet, BackendError> {
    let routes = run("ip", &["-j", "-4", "route", "show", "table", "all"])?;
    let routes: Value = serde_json::from_str(&routes).unwrap_or_default();
    let routed = routes.as_array().into_iter().flatten().filter_map(|route| {
        let to = route["dst"].as_str()?;
        to.parse::<Ipv4Net>().ok().or_else(|| Some(Ipv4Net::from(to.parse::<Ipv4Addr>().ok()?)))
    });
    let taken: Vec<Ipv4Net> = taken.iter().map(|subnet| subnet.net()).chain(routed).collect();
    choose(&taken)
}

fn choose(taken: &[Ipv4Net]) -> Result<Subnet, BackendError> {
    let pool: Ipv4Net = POOL.parse().map_err(|_| BackendError::Refused(POOL.to_owned()))?;
    let overlaps = |one: &Ipv4Net, other: &Ipv4Net| one.contains(other) || other.contains(one);
    let mut candidates = pool.subnets(PREFIX).into_iter().flatten();
    // The default route contains every network and occupies none.
    let free = candidates
        .find(|candidate| !taken.iter().any(|it| it.prefix_len() > 0 && overlaps(it, candidate)))
        .ok_or_else(|| {
            BackendError::Refused(format!("no part of {POOL} is free: name one in spec.network.cidr"))
        })?;
    free.try_into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_subnet_is_chosen() {
        let taken = |texts: &[&str]| -> Vec<Ipv4Net> {
            texts.iter().map(|text| text.parse().expect("a network")).collect()
        };
        let chosen = |texts: &[&str]| choose(&taken(texts)).map(|subnet| subnet.net().to_string()).ok();
        assert_eq!(chosen(&["0.0.0.0/0"]).as_deref(), Some("10.89.0.0/24"));
        assert_eq!(chosen(&["10.89.0.0/23", "10.89.2.7/32"]).as_deref(), Some("10.89.3.0/24"));
        assert_eq!(chosen(&["10.0.0.0/8"]), None);
    }
}
