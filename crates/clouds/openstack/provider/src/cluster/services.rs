//! What the cloud controller manager of a workload cluster leaves behind: load balancers of Services, and their floating
//! IPs. Their ports keep the network from being deleted, and once the machines are gone nobody in the cluster removes them.
//!
//! The controller manager names them after its own setting, which need not be the name of the Cluster. So they are
//! recognized by their network: it was created for this cluster, and goes with it.

use capstan_openstack_client::load_balancer::LoadBalancer;
use capstan_openstack_client::network::{FloatingIp, Network};

use super::call::ClusterCall;
use crate::error::CloudError;
use crate::project::{Access, PENDING, SETTLED};

/// In front of the names of load balancers of Services.
const PREFIX: &str = "kube_service_";
/// In front of the descriptions of floating IPs that were created for Services. Others were given by users and stay.
const ADDRESS: &str = "Floating IP for Kubernetes external service";

/// A load balancer of a Service of the workload cluster.
#[derive(Debug, Clone)]
pub struct ServiceBalancer {
    pub id: String,
    /// Octavia changes or deletes it.
    pub pending: bool,
    /// Floating IPs that were created for it.
    pub addresses: Vec<String>,
}

fn is_left(balancer: &LoadBalancer, network: &Network) -> bool {
    balancer.name.starts_with(PREFIX) && balancer.vip_network_id == network.id
}

/// The load balancers of Services in a network.
pub(super) async fn observe(access: &Access, network: &Network) -> Result<Vec<ServiceBalancer>, CloudError> {
    let mut all = access.all::<LoadBalancer>(SETTLED).await?;
    let pending = |it: &LoadBalancer| is_left(it, network) && it.provisioning_status.is_pending();
    if all.iter().any(pending) {
        all = access.all::<LoadBalancer>(PENDING).await?;
    }
    let left: Vec<&LoadBalancer> = all.iter().filter(|it| is_left(it, network)).collect();
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let addresses = access.all::<FloatingIp>(SETTLED).await?;
    let describe = |balancer: &&LoadBalancer| {
        let theirs = addresses.iter().filter(|it| {
            it.port_id.as_ref() == Some(&balancer.vip_port_id) && it.description.starts_with(ADDRESS)
        });
        ServiceBalancer {
            id: balancer.id.to_string(),
            pending: balancer.provisioning_status.is_pending(),
            addresses: theirs.map(|it| it.id.to_string()).collect(),
        }
    };
    Ok(left.iter().map(describe).collect())
}

/// The calls that remove them; what is being changed waits.
pub(super) fn removal(services: &[ServiceBalancer]) -> Vec<ClusterCall> {
    let mut calls = Vec::new();
    for service in services {
        calls.extend(service.addresses.iter().map(|id| ClusterCall::DeleteAddress { id: id.clone() }));
        if !service.pending {
            calls.push(ClusterCall::DeleteBalancer { id: service.id.clone() });
        }
    }
    calls
}
