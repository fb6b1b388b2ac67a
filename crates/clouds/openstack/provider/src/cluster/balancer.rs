//! Decisions about the load balancer of the API server. Octavia refuses every change while another is in progress, so one
//! change is made at a time.

use std::collections::BTreeSet;

use capstan_controller::{Effect, Note};
use capstan_openstack_client::load_balancer::{
    ListenerTree, LoadBalancer, Member, MonitorTree, NewLoadBalancer, NewMember, PoolTree, ProvisioningStatus,
};
use capstan_openstack_types::names;
use capstan_openstack_types::v1beta2::{APIServerLoadBalancer, NetworkStatusWithSubnets};
use serde::{Deserialize, Serialize};

use super::call::ClusterCall;
use super::decide::{Decision, Plan};
use super::observed::Balancer;
use super::plan;
use crate::code;
use crate::error::CloudError;

/// Seconds between checks, until one has failed, and how many count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Monitor {
    pub delay: u32,
    pub timeout: u32,
    pub max_retries: u32,
    pub max_retries_down: u32,
}

impl Monitor {
    fn of(settings: &APIServerLoadBalancer) -> Self {
        let given = settings.monitor.clone().unwrap_or_default();
        let or = |value: i32, default: u32| {
            u32::try_from(value).ok().filter(|value| *value > 0).unwrap_or(default)
        };
        Self {
            delay: or(given.delay, 10),
            timeout: or(given.timeout, 5),
            max_retries: or(given.max_retries, 5),
            max_retries_down: or(given.max_retries_down, 3),
        }
    }
}

/// A member of a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemberOrder {
    pub name: String,
    pub address: String,
    pub port: u16,
    pub subnet: Option<String>,
}

impl MemberOrder {
    /// A member as it would be ordered, for comparison.
    fn of(member: &Member) -> Self {
        Self {
            name: member.name.clone(),
            address: member.address.clone(),
            port: member.protocol_port,
            subnet: member.subnet_id.as_ref().map(ToString::to_string),
        }
    }

    pub(super) fn request(&self) -> NewMember {
        NewMember {
            name: self.name.clone(),
            address: self.address.clone(),
            protocol_port: self.port,
            subnet_id: self.subnet.as_deref().map(Into::into),
            tags: Vec::new(),
        }
    }
}

/// A load balancer with its listeners, pools and monitors, made by one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerOrder {
    pub description: String,
    pub subnet: Option<String>,
    pub network: Option<String>,
    pub address: Option<String>,
    pub provider: Option<String>,
    pub flavor: Option<String>,
    pub zone: Option<String>,
    pub tags: Vec<String>,
    pub ports: Vec<u16>,
    pub algorithm: String,
    pub monitor: Monitor,
    pub allowed: Vec<String>,
}

impl BalancerOrder {
    pub(super) fn request(&self, name: &str) -> NewLoadBalancer {
        let listener = |port: &u16| {
            let part = names::load_balancer_part(name, *port);
            let monitor = MonitorTree {
                name: part.clone(),
                kind: "TCP".to_owned(),
                delay: self.monitor.delay,
                timeout: self.monitor.timeout,
                max_retries: self.monitor.max_retries,
                max_retries_down: Some(self.monitor.max_retries_down),
            };
            let pool = PoolTree {
                name: part.clone(),
                protocol: "TCP".to_owned(),
                lb_algorithm: self.algorithm.clone(),
                health_monitor: Some(monitor),
                tags: self.tags.clone(),
            };
            ListenerTree {
                name: part,
                protocol: "TCP".to_owned(),
                protocol_port: *port,
                allowed_cidrs: self.allowed.clone(),
                default_pool: Some(pool),
                tags: self.tags.clone(),
            }
        };
        NewLoadBalancer {
            name: name.to_owned(),
            description: Some(self.description.clone()),
            vip_subnet_id: self.subnet.as_deref().map(Into::into),
            vip_network_id: self.network.as_deref().map(Into::into),
            vip_address: self.address.clone(),
            provider: self.provider.clone(),
            flavor_id: self.flavor.as_deref().map(Into::into),
            availability_zone: self.zone.clone(),
            tags: self.tags.clone(),
            listeners: self.ports.iter().map(listener).collect(),
        }
    }
}

/// OVN's provider balances by addresses only.
fn algorithm(provider: &str) -> String {
    if provider == "ovn" { "SOURCE_IP_PORT" } else { "ROUND_ROBIN" }.to_owned()
}

/// Addresses that may connect: those of the manifest, and what the cluster itself connects from.
fn allowed(
    look: &Plan<'_>,
    settings: &APIServerLoadBalancer,
    network: &NetworkStatusWithSubnets,
) -> Vec<String> {
    if settings.allowed_cidrs.is_empty() || settings.provider.as_deref() == Some("ovn") {
        return Vec::new();
    }
    let single =
        |address: &str| if address.contains('/') { address.to_owned() } else { format!("{address}/32") };
    let mut all: BTreeSet<String> = settings.allowed_cidrs.iter().map(|cidr| single(cidr)).collect();
    all.extend(network.subnets.iter().map(|subnet| subnet.cidr.clone()));
    let gateway = look.state.router.as_ref().and_then(|router| router.external_gateway_info.as_ref());
    let gateway = gateway.map(|gateway| gateway.external_fixed_ips.as_slice()).unwrap_or_default();
    all.extend(gateway.iter().map(|ip| single(&ip.ip_address)));
    let bastion = look.object().status.bastion.as_ref();
    let addresses =
        bastion.map(|bastion| [bastion.ip.as_str(), bastion.floating_ip.as_str()]).into_iter().flatten();
    all.extend(addresses.filter(|address| !address.is_empty()).map(single));
    // Octavia's own filter is by family; CAPO has IPv4 only.
    all.into_iter().filter(|cidr| !cidr.contains(':')).collect()
}

/// What there is of the load balancer.
pub(super) enum Progress<'a> {
    /// It is there and can be used; its parts may be being changed.
    Usable(&'a LoadBalancer),
    /// Its address is known, and it is being built.
    Building(&'a LoadBalancer),
    Missing,
    Broken(CloudError),
}

/// Keeps the load balancer of the manifest.
pub(super) fn keep<'a>(
    look: &Plan<'a>,
    settings: &APIServerLoadBalancer,
    network: Option<&NetworkStatusWithSubnets>,
    decision: &mut Decision,
) -> Progress<'a> {
    let name = names::load_balancer(&look.object().metadata.namespace, look.cluster);
    let Some(network) = network else { return Progress::Missing };
    let Some(held) = &look.state.balancer else {
        create(look, settings, network, name, decision);
        return Progress::Missing;
    };
    let balancer = &held.balancer;
    match &balancer.provisioning_status {
        ProvisioningStatus::PendingCreate => Progress::Building(balancer),
        ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted => Progress::Missing,
        ProvisioningStatus::Error => broken(look, balancer, decision),
        ProvisioningStatus::Active => {
            if let Some(call) = next_change(look, settings, network, held, &name) {
                decision.call(call);
            }
            Progress::Usable(balancer)
        }
        _ => Progress::Usable(balancer),
    }
}

fn create(
    look: &Plan<'_>,
    settings: &APIServerLoadBalancer,
    network: &NetworkStatusWithSubnets,
    name: String,
    decision: &mut Decision,
) {
    let spec = &look.object().spec;
    let home = look.state.balancer_network.as_ref().unwrap_or(network);
    let subnet = home.subnets.first().map(|subnet| subnet.id.clone());
    let endpoint = spec.control_plane_endpoint.as_ref().map(|endpoint| endpoint.host.clone());
    // Without a floating IP the endpoint is the address of the load balancer.
    let address = match plan::wants_floating_ip(spec) {
        true => plan::fixed_ip(spec).cloned(),
        false => {
            plan::fixed_ip(spec).cloned().or(endpoint.filter(|host| host.parse::<std::net::IpAddr>().is_ok()))
        }
    };
    let provider = settings.provider.clone().filter(|provider| !provider.is_empty());
    let order = BalancerOrder {
        description: look.description(""),
        network: subnet.is_none().then(|| home.id.clone()),
        subnet,
        address,
        algorithm: algorithm(provider.as_deref().unwrap_or_default()),
        provider,
        flavor: look.state.balancer_flavor.clone(),
        zone: settings.availability_zone.clone(),
        tags: spec.tags.clone(),
        ports: plan::ports(spec),
        monitor: Monitor::of(settings),
        allowed: allowed(look, settings, network),
    };
    let note =
        Note::normal("SuccessfulCreateLoadBalancer", "Create", format!("Created load balancer {name}"));
    decision.then_noting(Effect::Call(ClusterCall::CreateBalancer { name, order: Box::new(order) }), note);
}

/// A load balancer that failed before it was used is made again, once a minute; later it is the operator's.
fn broken<'a>(look: &Plan<'a>, balancer: &'a LoadBalancer, decision: &mut Decision) -> Progress<'a> {
    let was_used = look.object().status.initialization.as_ref().is_some_and(|done| done.provisioned);
    let old = balancer.created_at.is_some_and(|at| look.now().duration_since(at.0).as_secs() >= 60);
    if !was_used && old {
        decision.call(ClusterCall::DeleteBalancer { id: balancer.id.to_string() });
    }
    let message = format!(
        "load balancer {} ({}) is in state ERROR: ask an administrator to fail it over, or delete it in Octavia and it is \
         created again",
        balancer.name, balancer.id
    );
    Progress::Broken(CloudError::new(code::LOAD_BALANCER, "APIEndpointConfigFailed", message))
}

/// The first difference between the parts and the manifest.
fn next_change(
    look: &Plan<'_>,
    settings: &APIServerLoadBalancer,
    network: &NetworkStatusWithSubnets,
    held: &Balancer,
    name: &str,
) -> Option<ClusterCall> {
    let (balancer, tags) = (held.balancer.id.to_string(), look.object().spec.tags.clone());
    let allowed = allowed(look, settings, network);
    for port in plan::ports(&look.object().spec) {
        let part = names::load_balancer_part(name, port);
        let Some(listener) = held.listeners.iter().find(|listener| listener.protocol_port == port) else {
            return Some(ClusterCall::CreateListener { balancer, name: part, port, allowed, tags });
        };
        let mut now = listener.allowed_cidrs.clone().unwrap_or_default();
        now.sort();
        if now != allowed {
            return Some(ClusterCall::SetAllowed { balancer, listener: listener.id.to_string(), allowed });
        }
        let pool = held.pools.iter().find(|(pool, _)| listener.default_pool_id.as_ref() == Some(&pool.id));
        let Some((pool, members)) = pool else {
            let (listener, algorithm) = (listener.id.to_string(), algorithm(&held.balancer.provider));
            return Some(ClusterCall::CreatePool { balancer, name: part, listener, algorithm, tags });
        };
        if pool.healthmonitor_id.is_none() && held.balancer.provider != "ovn" {
            let (pool, monitor) = (pool.id.to_string(), Monitor::of(settings));
            return Some(ClusterCall::CreateMonitor { balancer, name: part, pool, monitor });
        }
        let prefix = names::load_balancer_member(name, port, "");
        // Members that others added stay.
        let (ours, others): (Vec<_>, Vec<_>) =
            members.iter().map(MemberOrder::of).partition(|member| member.name.starts_with(&prefix));
        let wanted = wanted_members(look, network, name, port);
        if ours.into_iter().collect::<BTreeSet<_>>() != wanted {
            let members = wanted.into_iter().chain(others).collect();
            return Some(ClusterCall::SetMembers { balancer, pool: pool.id.to_string(), members });
        }
    }
    None
}

fn wanted_members(
    look: &Plan<'_>,
    network: &NetworkStatusWithSubnets,
    name: &str,
    port: u16,
) -> BTreeSet<MemberOrder> {
    // A load balancer in another network needs the subnet of the members.
    let elsewhere = look.state.balancer_network.as_ref().is_some_and(|home| home.id != network.id);
    let subnet = elsewhere.then(|| network.subnets.first().map(|subnet| subnet.id.clone())).flatten();
    let member = |(machine, node): (&String, &super::observed::NodePort)| MemberOrder {
        name: names::load_balancer_member(name, port, machine),
        address: node.address.clone(),
        port,
        subnet: subnet.clone(),
    };
    look.state.control_plane.iter().map(member).collect()
}
