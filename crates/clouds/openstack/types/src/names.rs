//! What the provider's things are called. Live clusters depend on it: after a loss of status, everything in OpenStack is
//! found by the name that CAPO gave it.

/// Finalizers of the provider's kinds.
pub mod finalizer {
    /// On OpenStackClusters.
    pub const CLUSTER: &str = "openstackcluster.infrastructure.cluster.x-k8s.io";
    /// On OpenStackMachines.
    pub const MACHINE: &str = "openstackmachine.infrastructure.cluster.x-k8s.io";
    /// On claims of addresses that an OpenStackMachine made.
    pub const MACHINE_IP_CLAIM: &str = "openstackmachine.infrastructure.cluster.x-k8s.io/ip-claim";
    /// On OpenStackServers.
    pub const SERVER: &str = "openstackserver.infrastructure.cluster.x-k8s.io";
    /// On OpenStackFloatingIPPools.
    pub const FLOATING_IP_POOL: &str = "openstackfloatingippool.infrastructure.cluster.x-k8s.io";
    /// On addresses whose floating IP is to be deleted.
    pub const DELETE_FLOATING_IP: &str =
        "openstackfloatingippool.infrastructure.cluster.x-k8s.io/delete-floating-ip";
}

/// On OpenStackMachines: the allowed address pairs of the template that their ports have.
pub const ADDRESS_PAIRS_ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/osmt-allowed-address-pairs";

/// Network, subnet and router of a cluster.
pub fn network(namespace: &str, cluster: &str) -> String {
    format!("k8s-clusterapi-cluster-{namespace}-{cluster}")
}

/// Load balancer in front of the API server.
pub fn load_balancer(namespace: &str, cluster: &str) -> String {
    format!("k8s-clusterapi-cluster-{namespace}-{cluster}-kubeapi")
}

/// Listener, pool and monitor of a port of the load balancer.
pub fn load_balancer_part(load_balancer: &str, port: u16) -> String {
    format!("{load_balancer}-{port}")
}

/// Member of a pool.
pub fn load_balancer_member(load_balancer: &str, port: u16, machine: &str) -> String {
    format!("{load_balancer}-{port}-{machine}")
}

/// A security group: `controlplane`, `worker` or `bastion`.
pub fn security_group(namespace: &str, cluster: &str, of: &str) -> String {
    format!("k8s-cluster-{namespace}-{cluster}-secgroup-{of}")
}

/// The OpenStackServer of the bastion.
pub fn bastion(cluster: &str) -> String {
    format!("{cluster}-bastion")
}

/// A port of a server, by its suffix or its position; its trunk has the same name.
pub fn port(server: &str, suffix: Option<&str>, at: usize) -> String {
    match suffix.filter(|suffix| !suffix.is_empty()) {
        Some(suffix) => format!("{server}-{suffix}"),
        None => format!("{server}-{at}"),
    }
}

/// A volume of a server; the root volume's device is `root`.
pub fn volume(server: &str, device: &str) -> String {
    format!("{server}-{device}")
}

/// The claim of a server's floating IP.
pub fn floating_ip_claim(server: &str) -> String {
    format!("{server}-floating-ip-address")
}

/// Tag of floating IPs of a pool, by which they are found again.
pub fn floating_ip_pool_tag(pool: &str) -> String {
    format!("cluster-api-provider-openstack-fip-pool-{pool}")
}

/// Provider id of a server and its Node. CAPO writes the region of the machine's own `identityRef`, which is empty for
/// most.
pub fn provider_id(region: &str, server: &str) -> String {
    format!("openstack://{region}/{server}")
}

/// The id of a server in a provider id, with or without a region.
pub fn server_id(provider_id: &str) -> Option<&str> {
    let (_, server) = provider_id.strip_prefix("openstack://")?.split_once('/')?;
    (!server.is_empty() && !server.contains('/')).then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_called_as_capo_called_them() {
        assert_eq!(network("ns", "c"), "k8s-clusterapi-cluster-ns-c");
        assert_eq!(load_balancer("ns", "c"), "k8s-clusterapi-cluster-ns-c-kubeapi");
        assert_eq!(load_balancer_part("lb", 6443), "lb-6443");
        assert_eq!(load_balancer_member("lb", 6443, "m"), "lb-6443-m");
        assert_eq!(security_group("ns", "c", "controlplane"), "k8s-cluster-ns-c-secgroup-controlplane");
        assert_eq!((port("m", None, 1), port("m", Some("x"), 1)), ("m-1".to_owned(), "m-x".to_owned()));
        assert_eq!(volume("m", "root"), "m-root");
        assert_eq!(provider_id("", "s"), "openstack:///s");
        assert_eq!((server_id("openstack:///s"), server_id("openstack://r/s")), (Some("s"), Some("s")));
        for other in ["openstack://s", "openstack:///", "cloudstack:///s", "openstack:///a/b"] {
            assert_eq!(server_id(other), None, "{other}");
        }
    }
}
