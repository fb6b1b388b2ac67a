//! Servers on a hypervisor: they execute their user data, and load balancers and floating IPs lead to them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use capstan_hypervisor::vm::{Image, VmSpec};
use capstan_hypervisor::{Hypervisor, HypervisorError};
use serde_json::{Value, json};

use crate::cloud::Cloud;
use crate::table::{Fields as _, Object, Table};

/// Where API servers of guests listen unless their boot data names another port.
const API_PORT: u16 = 6443;
/// In the boot data of machines whose API servers listen elsewhere.
const BIND_PORT: &str = "bindPort:";
/// In the user data of servers that claim addresses.
const KUBE_VIP: &[u8] = b"kube-vip";

/// Creates the guest of a server and switches it on.
pub(crate) fn boot(cloud: &mut Cloud, id: &str) {
    let Some(hypervisor) = cloud.hypervisor.clone() else { return };
    let Some(server) = cloud.get("servers", id).cloned() else { return };
    let address = guest_address(cloud, &server);
    cloud.set("servers", id, "_guest", json!(address));
    cloud.set("servers", id, "_api_port", json!(bind_port(&user_data(&server))));
    let flavor = server.object("flavor").cloned().unwrap_or_default();
    let tags: BTreeMap<String, String> = server
        .object("metadata")
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let spec = VmSpec {
        id: id.to_owned(),
        name: server.text("hostname").to_owned(),
        user_data: user_data(&server),
        image: Image { kubernetes: server.get("_kubernetes").and_then(Value::as_str).map(str::to_owned) },
        address,
        provider_id: Some(format!("openstack:///{id}")),
        cpus: u32::try_from(flavor.number("vcpus")).unwrap_or(1),
        memory_mib: u64::try_from(flavor.number("ram")).unwrap_or_default(),
        tags,
        faults: Vec::new(),
    };
    report(id, hypervisor.create(spec));
    rebalance(cloud);
}

fn user_data(server: &Object) -> Vec<u8> {
    let text: String = server
        .text("_user_data")
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='))
        .collect();
    BASE64.decode(text).unwrap_or_default()
}

/// The address of a server's guest: its first fixed IPv4 address, or another where networks of two tenants overlap,
/// because guests share one network.
fn guest_address(cloud: &Cloud, server: &Object) -> Option<Ipv4Addr> {
    let fixed = server
        .list("ports")
        .iter()
        .filter_map(|held| cloud.get("ports", held["id"].as_str()?))
        .flat_map(|port| port.list("fixed_ips"))
        .filter_map(|ip| ip["ip_address"].as_str()?.parse::<Ipv4Addr>().ok())
        .next();
    let servers =
        cloud.state.tables.values().filter_map(|tables| tables.get("servers")).flat_map(Table::iter);
    let taken: BTreeSet<&str> =
        servers.filter(|it| it.text("id") != server.text("id")).map(|it| it.text("_guest")).collect();
    let free = |address: &Ipv4Addr| !taken.contains(address.to_string().as_str());
    match fixed {
        Some(address) if free(&address) => Some(address),
        // Addresses that no tenant uses: those between providers and their customers (RFC 6598).
        Some(_) => {
            (2..=u16::MAX).map(|n| Ipv4Addr::new(100, 64, n.to_be_bytes()[0], n.to_be_bytes()[1])).find(free)
        }
        None => None,
    }
}

pub(crate) fn start(cloud: &mut Cloud, id: &str) {
    with_guest(cloud, id, |hypervisor, id| hypervisor.start(id));
}

pub(crate) fn stop(cloud: &mut Cloud, id: &str) {
    with_guest(cloud, id, |hypervisor, id| hypervisor.stop(id));
}

pub(crate) fn reboot(cloud: &mut Cloud, id: &str) {
    with_guest(cloud, id, |hypervisor, id| hypervisor.reboot(id));
}

pub(crate) fn destroy(cloud: &mut Cloud, id: &str) {
    with_guest(cloud, id, |hypervisor, id| hypervisor.destroy(id));
    cloud.set("servers", id, "_guest", Value::Null);
    rebalance(cloud);
}

fn with_guest(cloud: &Cloud, id: &str, act: impl Fn(&dyn Hypervisor, &str) -> Result<(), HypervisorError>) {
    let booted = cloud.get("servers", id).is_some_and(|it| it.contains_key("_guest"));
    if let Some(hypervisor) = cloud.hypervisor.as_deref().filter(|_| booted) {
        report(id, act(hypervisor, id));
    }
}

/// What a server wrote to its console. Guests do not show theirs to a cloud.
pub(crate) fn console(_: &Cloud, server: &Object) -> String {
    let name = server.text("hostname");
    format!(
        "[    0.000000] Linux version 6.8.0-sim\n[    4.200000] cloud-init: running modules\n{name} login: "
    )
}

/// Reports to the hypervisor which guests serve which addresses: members of listeners behind VIPs and floating IPs,
/// servers with a floating IP of their own, and those that claim an address.
pub(crate) fn rebalance(cloud: &mut Cloud) {
    let Some(hypervisor) = cloud.hypervisor.clone() else { return };
    let home = cloud.region.clone();
    let mut wanted: BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>> = BTreeMap::new();
    for region in cloud.regions.clone() {
        cloud.region = region;
        behind_balancers(cloud, &mut wanted);
        behind_floating(cloud, &mut wanted);
        behind_claimed(cloud, &mut wanted);
    }
    cloud.region = home;
    for gone in cloud.balanced.iter().filter(|held| !wanted.contains_key(held)) {
        hypervisor.release(*gone);
    }
    for (endpoint, members) in &wanted {
        hypervisor.keep_endpoint(&format!("openstack/{endpoint}"), *endpoint);
        hypervisor.balance(*endpoint, members.clone());
    }
    cloud.balanced = wanted.into_keys().collect();
}

/// kubeadm's `bindPort`, as far as the boot data is readable text.
fn bind_port(user_data: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(user_data);
    let (_, rest) = text.split_once(BIND_PORT)?;
    rest.split_whitespace().next()?.parse().ok().filter(|port| *port != 0)
}

fn api_port(server: &Object) -> u16 {
    u16::try_from(server.number("_api_port")).ok().filter(|port| *port != 0).unwrap_or(API_PORT)
}

/// The guest of the server that holds a fixed address on a network, and the port of its API server.
fn guest_at(cloud: &Cloud, subnet: &str, address: &str) -> Option<(Ipv4Addr, u16)> {
    let port = cloud.all("ports").find(|port| {
        port.list("fixed_ips")
            .iter()
            .any(|ip| ip["ip_address"] == address && (subnet.is_empty() || ip["subnet_id"] == subnet))
    })?;
    let server = cloud.get("servers", port.text("device_id"))?;
    Some((server.text("_guest").parse().ok()?, api_port(server)))
}

fn behind_balancers(cloud: &Cloud, wanted: &mut BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>>) {
    for balancer in cloud.all("loadbalancers") {
        let port_id = balancer.text("vip_port_id");
        let floating = cloud
            .all("floatingips")
            .filter(|it| it.text("port_id") == port_id)
            .map(|it| it.text("floating_ip_address"));
        let addresses: Vec<Ipv4Addr> =
            floating.chain([balancer.text("vip_address")]).filter_map(|it| it.parse().ok()).collect();
        for listener in cloud.all("listeners").filter(|it| it.text("_balancer") == balancer.text("id")) {
            let pool = listener.text("default_pool_id");
            let members: BTreeSet<Ipv4Addr> = cloud
                .all("members")
                .filter(|it| it.text("_pool") == pool)
                .filter(|it| it.flag("admin_state_up") && it.text("provisioning_status") != "PENDING_DELETE")
                .filter_map(|it| {
                    let subnet = if it.has("subnet_id") {
                        it.text("subnet_id")
                    } else {
                        balancer.text("vip_subnet_id")
                    };
                    let (guest, listens) = guest_at(cloud, subnet, it.text("address"))?;
                    (it.number("protocol_port") == i64::from(listens)).then_some(guest)
                })
                .collect();
            let Ok(port) = u16::try_from(listener.number("protocol_port")) else { continue };
            for address in &addresses {
                // Of tenants with the same private address the first is reachable.
                wanted.entry(SocketAddrV4::new(*address, port)).or_insert_with(|| members.clone());
            }
        }
    }
}

fn behind_floating(cloud: &Cloud, wanted: &mut BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>>) {
    for floating in cloud.all("floatingips") {
        let Some(port) = cloud.get("ports", floating.text("port_id")) else { continue };
        let Some(server) = cloud.get("servers", port.text("device_id")) else { continue };
        let guest = server.text("_guest").parse::<Ipv4Addr>();
        if let (Ok(guest), Ok(address)) = (guest, floating.text("floating_ip_address").parse()) {
            wanted.entry(SocketAddrV4::new(address, api_port(server))).or_default().insert(guest);
        }
    }
}

/// Servers with kube-vip claim the addresses that Neutron lets through to their ports. Which of them has an address at a
/// time is decided between them; here all of them answer.
fn behind_claimed(cloud: &Cloud, wanted: &mut BTreeMap<SocketAddrV4, BTreeSet<Ipv4Addr>>) {
    for port in cloud.all("ports").filter(|port| !port.list("allowed_address_pairs").is_empty()) {
        let Some(server) = cloud.get("servers", port.text("device_id")) else { continue };
        let Ok(guest) = server.text("_guest").parse::<Ipv4Addr>() else { continue };
        if !user_data(server).windows(KUBE_VIP.len()).any(|text| text == KUBE_VIP) {
            continue;
        }
        let pairs = port.list("allowed_address_pairs").iter();
        for address in pairs.filter_map(|pair| pair["ip_address"].as_str()?.parse().ok()) {
            wanted.entry(SocketAddrV4::new(address, api_port(server))).or_default().insert(guest);
        }
    }
}

/// A hypervisor refuses only what the simulator should not have asked for.
fn report(server: &str, outcome: Result<(), HypervisorError>) {
    if let Err(error) = outcome {
        tracing::warn!(server, %error, "the guest does not follow its server");
    }
}
