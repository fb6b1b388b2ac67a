//! What a decision about an OpenStackCluster is based on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::Cluster;
use capstan_openstack_client::load_balancer::{HealthMonitor, Listener, LoadBalancer, Member, Pool};
use capstan_openstack_client::network::{FloatingIp, Network, Port, Router, SecurityGroup, Subnet};
use capstan_openstack_types::v1alpha1::OpenStackServer;
use capstan_openstack_types::v1beta2::{self, NetworkStatusWithSubnets};

use super::credential::CredentialState;
use super::image::ImageState;
use super::plan::Group;
use super::services::ServiceBalancer;
use super::volumes::VolumesState;
use crate::error::CloudError;

/// Observed state besides the OpenStackCluster.
#[derive(Debug)]
pub struct Seen {
    pub cluster: Option<Arc<Cluster>>,
    /// Name of the Cluster, which outlives it as a label; everything in the cloud is named after it.
    pub cluster_name: Option<String>,
    /// Names of the cluster's machines.
    pub machines: Vec<String>,
    pub bastion: Option<Arc<OpenStackServer>>,
    /// Server groups that machines ask for: policies by name.
    pub wanted_groups: BTreeMap<String, String>,
    pub cloud: Result<CloudState, CloudError>,
}

/// The cluster's things in the cloud.
#[derive(Debug, Clone, Default)]
pub struct CloudState {
    /// Until lists are read again.
    pub next_round: Option<Duration>,
    pub external: Option<v1beta2::NetworkStatus>,
    /// The managed network, and its parts.
    pub network: Option<Network>,
    pub subnets: Vec<Subnet>,
    pub router: Option<Router>,
    /// Subnets and addresses that the router is to have in the external network, while there is no router.
    pub gateway: Vec<(String, String)>,
    /// The subnet has an interface of the router.
    pub attached: bool,
    /// So has the IPv6 subnet.
    pub attached_ipv6: bool,
    /// Ports of the managed network that are neither the router's nor DHCP's.
    pub ports: Vec<Port>,
    /// Load balancers of Services in the managed network, once the cluster is being deleted.
    pub services: Vec<ServiceBalancer>,
    /// The existing network that the manifest refers to.
    pub existing: Option<NetworkStatusWithSubnets>,
    pub groups: BTreeMap<Group, SecurityGroup>,
    /// Application credentials of the workload.
    pub credentials: CredentialState,
    /// Images that the cluster brings along.
    pub images: ImageState,
    /// Volumes of the workload.
    pub volumes: VolumesState,
    /// Managed server groups: ids by name.
    pub server_groups: BTreeMap<String, String>,
    pub balancer: Option<Balancer>,
    /// Network of the load balancer if it is not the cluster's.
    pub balancer_network: Option<NetworkStatusWithSubnets>,
    pub balancer_flavor: Option<String>,
    /// The floating IP of the API server.
    pub address: Option<FloatingIp>,
    pub bastion_address: Option<FloatingIp>,
    pub zones: Vec<String>,
    /// Control plane machines: address and port in the cluster's network.
    pub control_plane: BTreeMap<String, NodePort>,
}

/// How a node is reached in the cluster's network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePort {
    pub port: String,
    pub address: String,
}

#[derive(Debug, Clone, Default)]
pub struct Balancer {
    pub balancer: LoadBalancer,
    pub listeners: Vec<Listener>,
    pub pools: Vec<(Pool, Vec<Member>)>,
    /// Monitors of its pools, and of others.
    pub monitors: Arc<Vec<HealthMonitor>>,
}
