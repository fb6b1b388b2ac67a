//! Requests in the words of Neutron and Octavia: the call and nothing else.

use capstan_openstack_client::load_balancer::{HealthMonitorChange, NewHealthMonitor, NewListener, NewPool};
use capstan_openstack_client::network::{
    AllocationPool, ExternalGateway, GatewayIp, NewFloatingIp, NewNetwork, NewRouter, NewSubnet,
};

use crate::cluster::balancer_order::Monitor;

pub(super) fn network(
    name: &str,
    description: &str,
    mtu: Option<u32>,
    port_security: Option<bool>,
) -> NewNetwork {
    NewNetwork {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        admin_state_up: Some(true),
        mtu,
        port_security_enabled: port_security,
    }
}

pub(super) fn subnet(
    (name, description): (&str, &str),
    network: &str,
    cidr: &str,
    name_servers: &[String],
    pools: &[(String, String)],
    slaac: bool,
) -> NewSubnet {
    let mode = slaac.then(|| "slaac".to_owned());
    let pools = pools.iter().map(|(start, end)| AllocationPool { start: start.clone(), end: end.clone() });
    NewSubnet {
        network_id: network.into(),
        name: name.to_owned(),
        description: Some(description.to_owned()),
        ip_version: if cidr.contains(':') { 6 } else { 4 },
        cidr: cidr.to_owned(),
        allocation_pools: pools.collect(),
        dns_nameservers: name_servers.to_vec(),
        ipv6_address_mode: mode.clone(),
        ipv6_ra_mode: mode,
        ..NewSubnet::default()
    }
}

pub(super) fn router(
    name: &str,
    description: &str,
    external: &str,
    addresses: &[(String, String)],
) -> NewRouter {
    let addresses = addresses.iter().map(|(subnet, address)| GatewayIp {
        subnet_id: subnet.as_str().into(),
        ip_address: address.clone(),
    });
    let gateway = ExternalGateway {
        network_id: external.into(),
        external_fixed_ips: addresses.collect(),
        enable_snat: None,
    };
    NewRouter {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        external_gateway_info: Some(gateway),
    }
}

pub(super) fn address(
    description: &str,
    network: &str,
    port: Option<&str>,
    address: Option<&str>,
) -> NewFloatingIp {
    NewFloatingIp {
        floating_network_id: network.into(),
        floating_ip_address: address.map(str::to_owned),
        port_id: port.map(Into::into),
        description: Some(description.to_owned()),
        ..NewFloatingIp::default()
    }
}

pub(super) fn listener(
    balancer: &str,
    name: &str,
    port: u16,
    allowed: &[String],
    tags: &[String],
) -> NewListener {
    NewListener {
        name: name.to_owned(),
        loadbalancer_id: balancer.into(),
        protocol: "TCP".to_owned(),
        protocol_port: port,
        allowed_cidrs: allowed.to_vec(),
        tags: tags.to_vec(),
        ..NewListener::default()
    }
}

pub(super) fn pool(name: &str, listener: &str, algorithm: &str, tags: &[String]) -> NewPool {
    NewPool {
        name: name.to_owned(),
        listener_id: Some(listener.into()),
        protocol: "TCP".to_owned(),
        lb_algorithm: algorithm.to_owned(),
        tags: tags.to_vec(),
        ..NewPool::default()
    }
}

pub(super) fn monitor(name: &str, pool: &str, monitor: &Monitor) -> NewHealthMonitor {
    NewHealthMonitor {
        name: name.to_owned(),
        pool_id: pool.into(),
        kind: "TCP".to_owned(),
        delay: monitor.delay,
        timeout: monitor.timeout,
        max_retries: monitor.max_retries,
        max_retries_down: Some(monitor.max_retries_down),
    }
}

pub(super) fn monitor_change(monitor: &Monitor) -> HealthMonitorChange {
    HealthMonitorChange {
        delay: Some(monitor.delay),
        timeout: Some(monitor.timeout),
        max_retries: Some(monitor.max_retries),
        max_retries_down: Some(monitor.max_retries_down),
    }
}
