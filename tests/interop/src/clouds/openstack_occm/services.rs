//! A Service of type LoadBalancer, and what the controller manager makes for it in the cloud.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use capstan_openstack_client::load_balancer::{
    HealthMonitor, Listener, LoadBalancer, LoadBalancerFilter, PartFilter, Pool,
};
use capstan_openstack_client::network::{
    FloatingIp, FloatingIpFilter, Port, PortFilter, SecurityGroup, SecurityGroupFilter,
};
use serde_json::Value;

use super::controller::Networks;
use super::manifest::{NAME, PORTS, SOURCES, workload};
use super::nodes;
use crate::api::Api;
use crate::bed::openstack::OpenStack;
use crate::bed::wait;
use crate::discovery::Discovery;

/// Namespace of the Services.
const NAMESPACE: &str = "default";
/// An amphora boots, and the controller manager asks for it less and less often.
const PATIENCE: Duration = Duration::from_secs(300);

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/services/{name}")
}

/// Creates a Deployment and a Service, and waits until the Service has an address.
pub async fn create(api: &Api, name: &str) -> Result<Value> {
    let discovery = Discovery::read(api).await?;
    for object in workload(name) {
        discovery.create(api, &object, Some(NAMESPACE)).await?;
    }
    let what = format!("Service {name} has an address");
    wait::until(&what, PATIENCE, || async {
        let service = api.get(&path(name)).await?.success()?;
        Ok(ingress(&service).is_some().then_some(service))
    })
    .await
}

/// Deletes a Service and waits until it is gone: the controller manager takes its finalizer off when nothing is left.
pub async fn delete(api: &Api, name: &str) -> Result<()> {
    api.delete(&path(name)).await?.success()?;
    wait::until(&format!("Service {name} is gone"), PATIENCE, || async {
        Ok((api.get(&path(name)).await?.status == 404).then_some(()))
    })
    .await
}

fn ingress(service: &Value) -> Option<&str> {
    service["status"]["loadBalancer"]["ingress"][0]["ip"].as_str()
}

/// Name of the load balancer of a Service.
fn balancer_name(service: &str) -> String {
    format!("kube_service_{NAME}_{NAMESPACE}_{service}")
}

/// Waits until the pools of a Service lead to all workers.
pub async fn wait_members(api: &Api, service: &Value, cloud: &OpenStack) -> Result<()> {
    wait::until("the load balancer leads to all workers", PATIENCE, || async {
        let wanted = workers(api).await?;
        for (_, pool) in parts(&balancer(service, cloud).await?, cloud).await? {
            if members(&pool, cloud).await?.keys != wanted {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
    .await
}

/// Fails unless the cloud has what a Service asks for.
pub async fn ensure_served(api: &Api, service: &Value, cloud: &OpenStack, networks: &Networks) -> Result<()> {
    let client = cloud.client()?;
    let balancer = balancer(service, cloud).await?;
    ensure!(balancer.vip_subnet_id.as_str() == networks.subnet, "{balancer:?} is in another subnet");
    ensure!(balancer.provider == "amphora", "{balancer:?} has another provider");
    ensure!(balancer.tags == [balancer.name.as_str()], "{balancer:?} has other tags");

    let parts = parts(&balancer, cloud).await?;
    let held: BTreeSet<u16> = parts.iter().map(|(listener, _)| listener.protocol_port).collect();
    ensure!(held == BTreeSet::from(PORTS), "listeners at {held:?}");
    for (listener, pool) in &parts {
        let mut sources = listener.allowed_cidrs.clone().unwrap_or_default();
        sources.sort();
        ensure!(listener.protocol == "TCP" && sources == SOURCES, "{listener:?}");
        let port = listener.protocol_port;
        let members = members(pool, cloud).await?;
        ensure!(members.keys == workers(api).await?, "port {port} leads to {:?}", members.keys);
        let node_port = node_port(service, port).context("no node port")?;
        ensure!(members.ports == BTreeSet::from([node_port]), "port {port} leads to {:?}", members.ports);
        let monitor = pool.healthmonitor_id.as_ref().context("a pool is not monitored")?;
        let monitor: HealthMonitor = client.get(monitor).await?;
        ensure!(monitor.kind == "TCP" && monitor.delay == 5, "{monitor:?}");
    }

    let filter = FloatingIpFilter { port_id: vec![balancer.vip_port_id], ..FloatingIpFilter::default() };
    let addresses = client.list::<FloatingIp>(&filter).await?;
    let found: Vec<&str> = addresses.iter().map(|held| held.floating_ip_address.as_str()).collect();
    ensure!(found == ingress(service).as_slice(), "{found:?} leads to the Service {}", service["status"]);
    let networks_of: Vec<&str> = addresses.iter().map(|held| held.floating_network_id.as_str()).collect();
    ensure!(networks_of == [networks.external.as_str()], "{addresses:?}");
    ensure_let_in(api, service, cloud).await
}

/// Fails unless the workers, and no other ports, have a security group that lets the node ports of a Service in.
async fn ensure_let_in(api: &Api, service: &Value, cloud: &OpenStack) -> Result<()> {
    let client = cloud.client()?;
    let name = format!(
        "lb-sg-{}-{NAMESPACE}-{}",
        service["metadata"]["uid"].as_str().context("no uid")?,
        nodes::name(service)
    );
    let groups = client.list::<SecurityGroup>(&SecurityGroupFilter::default()).await?;
    let group = groups.iter().find(|group| group.name == name);
    let group = group.with_context(|| format!("there is no security group {name}"))?;
    let ingress = group.security_group_rules.iter().filter(|rule| rule.direction == "ingress");
    let open: BTreeSet<(Option<i32>, Option<i32>)> =
        ingress.clone().map(|rule| (rule.port_range_min, rule.port_range_max)).collect();
    let node_ports = PORTS.iter().map(|port| node_port(service, *port).map(i32::from));
    let wanted: BTreeSet<_> = node_ports.map(|port| (port, port)).collect();
    ensure!(open == wanted, "{name} lets {open:?} in, not {wanted:?}");
    let from: BTreeSet<_> = ingress.map(|rule| rule.remote_ip_prefix.as_deref()).collect();
    ensure!(from == BTreeSet::from([Some("10.6.0.0/24")]), "{name} lets {from:?} in");

    let ports = client.list::<Port>(&PortFilter::default()).await?;
    let guarded = ports.iter().filter(|port| port.security_groups.contains(&group.id));
    let guarded: BTreeSet<String> =
        guarded.flat_map(|port| &port.fixed_ips).map(|ip| ip.ip_address.clone()).collect();
    let wanted: BTreeSet<String> = workers(api).await?.into_iter().map(|(_, address)| address).collect();
    ensure!(guarded == wanted, "{name} is on the ports of {guarded:?}, not of {wanted:?}");
    Ok(())
}

/// Fails if the cloud still has anything of a Service.
pub async fn ensure_gone(service: &Value, cloud: &OpenStack) -> Result<()> {
    let client = cloud.client()?;
    let name = balancer_name(nodes::name(service));
    let balancers = client.list::<LoadBalancer>(&LoadBalancerFilter::default()).await?;
    ensure!(balancers.iter().all(|held| held.name != name), "{name} is still there");
    let addresses = client.list::<FloatingIp>(&FloatingIpFilter::default()).await?;
    let address = ingress(service);
    ensure!(
        addresses.iter().all(|held| Some(held.floating_ip_address.as_str()) != address),
        "the floating IP {address:?} is still there"
    );
    let groups = client.list::<SecurityGroup>(&SecurityGroupFilter::default()).await?;
    let left: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    ensure!(left.iter().all(|group| !group.starts_with("lb-sg-")), "security groups are left: {left:?}");
    Ok(())
}

fn node_port(service: &Value, port: u16) -> Option<u16> {
    let mut ports = service["spec"]["ports"].as_array()?.iter();
    u16::try_from(ports.find(|held| held["port"] == port)?["nodePort"].as_u64()?).ok()
}

/// Names and addresses of the workers: load balancers do not lead to control plane machines.
async fn workers(api: &Api) -> Result<BTreeSet<(String, String)>> {
    let all = nodes::list(api).await?;
    let workers = all.iter().filter(|node| !nodes::is_control_plane(node));
    let named =
        |node: &Value| Some((nodes::name(node).to_owned(), nodes::internal_address(node)?.to_owned()));
    Ok(workers.filter_map(named).collect())
}

async fn balancer(service: &Value, cloud: &OpenStack) -> Result<LoadBalancer> {
    let name = balancer_name(nodes::name(service));
    let all = cloud.client()?.list::<LoadBalancer>(&LoadBalancerFilter::default()).await?;
    let found = all.into_iter().find(|balancer| balancer.name == name);
    found.with_context(|| format!("there is no load balancer {name}"))
}

/// Listeners with their pools.
async fn parts(balancer: &LoadBalancer, cloud: &OpenStack) -> Result<Vec<(Listener, Pool)>> {
    let client = cloud.client()?;
    let listeners = client.list::<Listener>(&PartFilter::default()).await?;
    let mut pools = client.list::<Pool>(&PartFilter::default()).await?;
    let mut parts = Vec::new();
    for listener in listeners {
        if listener.loadbalancers.iter().all(|of| of.id != balancer.id) {
            continue;
        }
        let at = pools.iter().position(|pool| Some(&pool.id) == listener.default_pool_id.as_ref());
        parts.push((listener, pools.remove(at.context("a listener without a pool")?)));
    }
    Ok(parts)
}

/// Where a pool leads.
struct Members {
    /// Names and addresses.
    keys: BTreeSet<(String, String)>,
    ports: BTreeSet<u16>,
}

async fn members(pool: &Pool, cloud: &OpenStack) -> Result<Members> {
    let all = cloud.client()?.members(&pool.id).await?;
    Ok(Members {
        keys: all.iter().map(|member| (member.name.clone(), member.address.clone())).collect(),
        ports: all.iter().map(|member| member.protocol_port).collect(),
    })
}
