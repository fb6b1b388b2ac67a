//! The endpoint of a cluster is an address on the network of one of its failure domains. It goes with that network, and a
//! load balancer reaches the machines of its own network only. So this failure domain stays as long as the cluster.

use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};

use crate::code;
use crate::error::CloudError;

/// The network has the endpoint of its cluster. Read from specifications, which a move keeps. A network that is not found
/// or made yet repeats what the manifest asks for, and has nothing.
pub(crate) fn has_endpoint(network: &CloudStackIsolatedNetwork, cluster: &CloudStackCluster) -> bool {
    let host = &cluster.spec.control_plane_endpoint.host;
    !host.is_empty() && !network.spec.id.is_empty() && network.spec.control_plane_endpoint.host == *host
}

/// Why a failure domain is not removed.
pub(crate) fn in_use(domain: &CloudStackFailureDomain, cluster: &CloudStackCluster) -> CloudError {
    let (name, network) = (&domain.spec.name, &domain.spec.zone.network.name);
    let message = format!(
        "failure domain {name} is not removed: its network {network} has the endpoint {} of the cluster, which would go with it; \
         put {name} back into spec.failureDomains of CloudStackCluster {}, or create another cluster without it and move the \
         workloads",
        cluster.spec.control_plane_endpoint.host, cluster.metadata.name
    );
    CloudError::new(code::ENDPOINT_IN_USE, "EndpointInUse", message)
}
