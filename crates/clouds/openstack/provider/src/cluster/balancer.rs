//! Decisions about the load balancer of the API server. Octavia refuses every change while another is in progress, so one
//! change is made at a time.

use std::collections::BTreeSet;

use capstan_controller::{Effect, Note};
use capstan_openstack_client::load_balancer::{LoadBalancer, Pool, ProvisioningStatus};
use capstan_openstack_types::names;
use capstan_openstack_types::v1beta2::{APIServerLoadBalancer, NetworkStatusWithSubnets, Subnet};

use super::balancer_order::{BalancerOrder, MemberOrder, Monitor, OVN, algorithm};
use super::call::ClusterCall;
use super::observed::Balancer;
use super::plan::{self, Decision, Plan};
use super::rules::canonical_range;
use crate::code;
use crate::error::CloudError;

/// On OpenStackClusters: the pool and settings of a monitor that Octavia's provider does not support.
const REFUSED_MONITOR: &str = "capstan.dev/openstack-refused-monitor";

/// Addresses that may connect: those of the manifest, and what the cluster itself connects from.
fn allowed(
    look: &Plan<'_>,
    settings: &APIServerLoadBalancer,
    network: &NetworkStatusWithSubnets,
    provider: &str,
) -> Vec<String> {
    if settings.allowed_cidrs.is_empty() || provider == OVN {
        return Vec::new();
    }
    // As Octavia keeps them: others would be set again and again, and nothing after them.
    let single = |address: &str| canonical_range(address).unwrap_or_else(|| address.to_owned());
    let mut all: BTreeSet<String> = settings.allowed_cidrs.iter().map(|cidr| single(cidr)).collect();
    all.extend(network.subnets.iter().map(|subnet| single(&subnet.cidr)));
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

/// The first subnet of a family, or else the first. Neutron lists the subnets of a network in no order, and floating IPs
/// lead to IPv4 only.
fn subnet_of(network: &NetworkStatusWithSubnets, ipv6: bool) -> Option<&Subnet> {
    let of_family = network.subnets.iter().find(|subnet| subnet.cidr.contains(':') == ipv6);
    of_family.or(network.subnets.first())
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
            if let Some(call) = next_change(look, settings, network, (held, &name), decision) {
                change(decision, call);
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
    let endpoint = spec.control_plane_endpoint.as_ref().map(|endpoint| endpoint.host.clone());
    // Without a floating IP the endpoint is the address of the load balancer.
    let address = match plan::wants_floating_ip(spec) {
        true => plan::fixed_ip(spec).cloned(),
        false => {
            plan::fixed_ip(spec).cloned().or(endpoint.filter(|host| host.parse::<std::net::IpAddr>().is_ok()))
        }
    };
    let ipv6 = address.as_ref().is_some_and(|address| address.contains(':'));
    let subnet = subnet_of(home, ipv6).map(|subnet| subnet.id.clone());
    let provider = settings.provider.clone().filter(|provider| !provider.is_empty());
    let named = provider.as_deref().unwrap_or_default();
    // Octavia's default provider is known once there is a load balancer: its parts are made after it, as it can.
    let alone = look.look.failures.iter().any(|failure| {
        failure.effect.starts_with("create-balancer") && failure.error.code == code::UNSUPPORTED
    });
    let order = BalancerOrder {
        description: look.description(""),
        network: subnet.is_none().then(|| home.id.clone()),
        subnet,
        address,
        algorithm: algorithm(named),
        monitor: Monitor::wanted(settings, named),
        allowed: allowed(look, settings, network, named),
        provider,
        flavor: look.state.balancer_flavor.clone(),
        zone: settings.availability_zone.clone(),
        tags: spec.tags.clone(),
        ports: if alone { Vec::new() } else { plan::ports(spec) },
    };
    decision.call(ClusterCall::CreateBalancer { name, order: Box::new(order) });
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

/// A change of a monitor is no condition of anything: some providers refuse it, and connections find their way without.
fn change(decision: &mut Decision, call: ClusterCall) {
    let name = match &call {
        ClusterCall::CreateMonitor { name, .. } => name.clone(),
        ClusterCall::SetMonitor { id, .. } => id.clone(),
        _ => {
            decision.call(call);
            return;
        }
    };
    let failed = format!("Health monitor {name} of the load balancer was not set");
    decision.best_effort(Effect::Call(call)).or_noting(Note::warning(
        "FailedCreateHealthMonitor",
        "Update",
        failed,
    ));
}

/// The first difference between the parts and the manifest. Monitors are last.
fn next_change(
    look: &Plan<'_>,
    settings: &APIServerLoadBalancer,
    network: &NetworkStatusWithSubnets,
    (held, name): (&Balancer, &str),
    decision: &mut Decision,
) -> Option<ClusterCall> {
    let (balancer, tags) = (held.balancer.id.to_string(), look.object().spec.tags.clone());
    let provider = held.balancer.provider.as_str();
    let allowed = allowed(look, settings, network, provider);
    let mut pools = Vec::new();
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
            let (listener, algorithm) = (listener.id.to_string(), algorithm(provider));
            return Some(ClusterCall::CreatePool { balancer, name: part, listener, algorithm, tags });
        };
        let members: Vec<MemberOrder> = members.iter().map(MemberOrder::of).collect();
        if let Some(members) = changed_members(look, network, &members, (name, port)) {
            return Some(ClusterCall::SetMembers { balancer, pool: pool.id.to_string(), members });
        }
        pools.push((part, pool));
    }
    let wanted = Monitor::wanted(settings, provider)?;
    let refused = refused_monitor(look, decision);
    let mut changes = pools.into_iter().filter_map(|(name, pool)| changed_monitor(wanted, pool, held, name));
    changes.find(|call| refused.is_none() || monitor_order(call) != refused)
}

/// What a call asks for, if it creates a monitor.
fn monitor_order(call: &ClusterCall) -> Option<String> {
    let ClusterCall::CreateMonitor { pool, monitor, .. } = call else { return None };
    let Monitor { delay, timeout, max_retries, max_retries_down } = monitor;
    Some(format!("{pool} {delay} {timeout} {max_retries} {max_retries_down}"))
}

/// The monitor that the provider cannot have. It is remembered: nothing else shows that there is no use in asking again.
fn refused_monitor(look: &Plan<'_>, decision: &mut Decision) -> Option<String> {
    let unsupported = look.look.failures.iter().filter(|failure| failure.error.code == code::UNSUPPORTED);
    let refused = unsupported.filter_map(|failure| monitor_order(failure.call.as_ref()?)).next();
    let annotations = &mut decision.object.metadata.annotations;
    if let Some(refused) = refused {
        annotations.insert(REFUSED_MONITOR.to_owned(), refused);
    }
    annotations.get(REFUSED_MONITOR).cloned()
}

/// The change that gives a pool its monitor.
fn changed_monitor(wanted: Monitor, pool: &Pool, held: &Balancer, name: String) -> Option<ClusterCall> {
    let balancer = held.balancer.id.to_string();
    let Some(id) = &pool.healthmonitor_id else {
        return Some(ClusterCall::CreateMonitor {
            balancer,
            name,
            pool: pool.id.to_string(),
            monitor: wanted,
        });
    };
    let monitor = held.monitors.iter().find(|monitor| monitor.id == *id)?;
    let id = id.to_string();
    (Monitor::held(monitor) != wanted).then_some(ClusterCall::SetMonitor { balancer, id, monitor: wanted })
}

/// The members that a pool is to have, if it has others. Those that others added stay, and so does what operators set.
fn changed_members(
    look: &Plan<'_>,
    network: &NetworkStatusWithSubnets,
    held: &[MemberOrder],
    (name, port): (&str, u16),
) -> Option<Vec<MemberOrder>> {
    let prefix = names::load_balancer_member(name, port, "");
    let (ours, others): (Vec<_>, Vec<_>) = held.iter().partition(|member| member.name.starts_with(&prefix));
    let wanted = wanted_members(look, network, name, port);
    let known = |wanted: &MemberOrder| ours.iter().find(|held| held.is_same(wanted)).copied();
    if ours.len() == wanted.len() && wanted.iter().all(|member| known(member).is_some()) {
        return None;
    }
    let wanted = wanted.iter().map(|member| known(member).unwrap_or(member));
    Some(wanted.chain(others).cloned().collect())
}

fn wanted_members(
    look: &Plan<'_>,
    network: &NetworkStatusWithSubnets,
    name: &str,
    port: u16,
) -> BTreeSet<MemberOrder> {
    // A load balancer in another network needs the subnet of the members.
    let elsewhere = look.state.balancer_network.as_ref().is_some_and(|home| home.id != network.id);
    let subnet = |address: &str| {
        let subnet = subnet_of(network, address.contains(':')).filter(|_| elsewhere);
        subnet.map(|subnet| subnet.id.clone())
    };
    let member = |(machine, node): (&String, &super::observed::NodePort)| MemberOrder {
        name: names::load_balancer_member(name, port, machine),
        address: node.address.clone(),
        port,
        subnet: subnet(&node.address),
        ..MemberOrder::default()
    };
    look.state.control_plane.iter().map(member).collect()
}
