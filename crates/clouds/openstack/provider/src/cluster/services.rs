//! What the cloud controller manager of a workload cluster leaves behind: load balancers of Services, their floating IPs and
//! their security groups. Ports of the load balancers keep the network from being deleted, and once the machines are gone
//! nobody in the cluster removes them.
//!
//! The controller manager names them after its own setting, which need not be the name of the Cluster. So load balancers
//! are recognized by their network: it was created for this cluster, and goes with it. Floating IPs and security groups
//! follow from the load balancers.

use capstan_openstack_client::load_balancer::LoadBalancer;
use capstan_openstack_client::network::{FloatingIp, Network, Port, SecurityGroup};
use capstan_openstack_client::{Class, Error};

use super::call::ClusterCall;
use crate::error::CloudError;
use crate::project::{Access, PENDING, SETTLED};

/// In front of the names of load balancers of Services.
const PREFIX: &str = "kube_service_";
/// In front of the descriptions of floating IPs that were created for Services. Others were given by users and stay.
const ADDRESS: &str = "Floating IP for Kubernetes external service";
/// In front of the names of security groups that let load balancers reach the nodes.
const GROUP: &str = "lb-sg-";
/// The description of such a group, around the Service and before the controller manager's name of the cluster.
const GROUP_OF: (&str, &str) = ("Security Group for ", " Service LoadBalancer in cluster ");
/// Names of load balancers and their tags are cut here.
const LONGEST: usize = 255;

/// A load balancer of a Service of the workload cluster.
#[derive(Debug, Clone)]
pub struct ServiceBalancer {
    pub id: String,
    /// Octavia changes or deletes it.
    pub pending: bool,
    /// Floating IPs that were created for it.
    pub addresses: Vec<String>,
    /// Security groups of its Services.
    pub groups: Vec<String>,
}

fn is_left(balancer: &LoadBalancer, network: &Network) -> bool {
    balancer.name.starts_with(PREFIX) && balancer.vip_network_id == network.id
}

/// The name of the load balancer of the Service that a security group was created for. One that Services share has the
/// names of all of them as tags.
fn balancer_name(group: &SecurityGroup) -> Option<String> {
    let (service, cluster) = group.description.strip_prefix(GROUP_OF.0)?.split_once(GROUP_OF.1)?;
    let (namespace, name) = service.split_once('/')?;
    let name = format!("{PREFIX}{cluster}_{namespace}_{name}");
    group.name.starts_with(GROUP).then(|| name.chars().take(LONGEST).collect())
}

fn belongs(group: &SecurityGroup, balancer: &LoadBalancer) -> bool {
    balancer_name(group).is_some_and(|name| balancer.name == name || balancer.tags.contains(&name))
}

/// The project cannot have load balancers: the cloud has no Octavia, or the user has no role in it.
fn has_none(error: &Error) -> bool {
    matches!(error.class(), Class::Unsupported | Class::Permission)
}

/// The load balancers of Services in a network.
pub(super) async fn observe(access: &Access, network: &Network) -> Result<Vec<ServiceBalancer>, CloudError> {
    let mut all = match access.all::<LoadBalancer>(SETTLED).await {
        Err(error) if has_none(&error) => return Ok(Vec::new()),
        all => all?,
    };
    let pending = |it: &LoadBalancer| is_left(it, network) && it.provisioning_status.is_pending();
    if all.iter().any(pending) {
        all = access.all::<LoadBalancer>(PENDING).await?;
    }
    let left: Vec<&LoadBalancer> = all.iter().filter(|it| is_left(it, network)).collect();
    if left.is_empty() {
        return Ok(Vec::new());
    }
    // Once a load balancer is gone, nothing leads to what is missing in these lists.
    let addresses = access.all::<FloatingIp>(PENDING).await?;
    let groups = access.all::<SecurityGroup>(PENDING).await?;
    let ports = access.all::<Port>(PENDING).await?;
    // Machines are gone. Who still uses a group is no node of this cluster.
    let unused = |group: &SecurityGroup| !ports.iter().any(|port| port.security_groups.contains(&group.id));
    let describe = |balancer: &&LoadBalancer| {
        let theirs = addresses.iter().filter(|it| {
            it.port_id.as_ref() == Some(&balancer.vip_port_id) && it.description.starts_with(ADDRESS)
        });
        let guards = groups.iter().filter(|it| belongs(it, balancer) && unused(it));
        ServiceBalancer {
            id: balancer.id.to_string(),
            pending: balancer.provisioning_status.is_pending(),
            addresses: theirs.map(|it| it.id.to_string()).collect(),
            groups: guards.map(|it| it.id.to_string()).collect(),
        }
    };
    Ok(left.iter().map(describe).collect())
}

/// The calls that remove them; what is being changed waits. A load balancer is last: the others are found by it.
pub(super) fn removal(services: &[ServiceBalancer]) -> Vec<ClusterCall> {
    let mut calls = Vec::new();
    for service in services {
        calls.extend(service.groups.iter().map(|id| ClusterCall::DeleteGroup { id: id.clone() }));
        calls.extend(service.addresses.iter().map(|id| ClusterCall::DeleteAddress { id: id.clone() }));
        if !service.pending {
            calls.push(ClusterCall::DeleteBalancer { id: service.id.clone() });
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer(name: &str, tags: &[&str]) -> LoadBalancer {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        LoadBalancer { name: name.to_owned(), tags, ..LoadBalancer::default() }
    }

    #[test]
    fn a_security_group_belongs_to_the_load_balancer_of_its_service() {
        let web = "kube_service_kubernetes_default_web";
        let group = |name: &str, description: &str| SecurityGroup {
            name: name.to_owned(),
            description: description.to_owned(),
            ..SecurityGroup::default()
        };
        let own = group(
            "lb-sg-0c1d-default-web",
            "Security Group for default/web Service LoadBalancer in cluster kubernetes",
        );
        for (group, balancer, expected) in [
            (&own, balancer(web, &[]), true),
            (&own, balancer("shared", &["kube_service_kubernetes_default_mail", web]), true),
            (&own, balancer("kube_service_blue_default_web", &[]), false),
            (&own, balancer("kube_service_kubernetes_default_web2", &[]), false),
            (&group("mine", &own.description), balancer(web, &[]), false),
            (&group(&own.name, "by somebody"), balancer(web, &[]), false),
        ] {
            assert_eq!(belongs(group, &balancer), expected, "{group:?} {balancer:?}");
        }
        let long = "x".repeat(250);
        let cut = group(
            "lb-sg-1",
            &format!("Security Group for default/{long} Service LoadBalancer in cluster kubernetes"),
        );
        let name: String = format!("kube_service_kubernetes_default_{long}").chars().take(255).collect();
        assert!(belongs(&cut, &balancer(&name, &[])));
    }
}
