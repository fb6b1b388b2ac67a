//! What decisions about an OpenStackCluster start from: what its manifest asks for, and what its things are called. Pure.

use capstan_controller::Look;
use capstan_openstack_client::network::{Network, Subnet};
use capstan_openstack_types::names;
use capstan_openstack_types::v1beta2::{
    self, APIServer, APIServerLoadBalancer, NetworkStatusWithSubnets, OpenStackCluster, OpenStackClusterSpec,
};
use jiff::Timestamp;

use super::OpenStackClusters;
use super::observed::CloudState;
use super::rules::{API_PORT, canonical_range};
use crate::mark;

pub(super) type Decision = capstan_controller::Decision<OpenStackClusters>;

/// A look with everything that a decision needs.
pub(super) struct Plan<'a> {
    pub look: &'a Look<OpenStackClusters>,
    /// Name of the Cluster.
    pub cluster: &'a str,
    pub state: &'a CloudState,
}

impl<'a> Plan<'a> {
    pub(super) fn object(&self) -> &'a OpenStackCluster {
        &self.look.object
    }

    pub(super) fn now(&self) -> Timestamp {
        self.look.now
    }

    pub(super) fn description(&self, of: &str) -> String {
        description(self.object(), self.cluster, of)
    }

    pub(super) fn name(&self) -> String {
        names::network(&self.object().metadata.namespace, self.cluster)
    }
}

/// A managed security group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    ControlPlane,
    Worker,
    Bastion,
}

/// What a floating IP of the API server is for, in its description.
pub(super) const API_ADDRESS: &str = "API server";

/// The provider creates network, subnet and router.
pub(super) fn is_managed(spec: &OpenStackClusterSpec) -> bool {
    !spec.managed_subnets.is_empty()
}

fn api_server(spec: &OpenStackClusterSpec) -> Option<&APIServer> {
    spec.api_server.as_ref()
}

/// Settings of the managed load balancer, if there is to be one.
pub(super) fn load_balancer(spec: &OpenStackClusterSpec) -> Option<&APIServerLoadBalancer> {
    let settings = api_server(spec)?.managed_load_balancer.as_ref()?;
    (settings.enabled != Some(false)).then_some(settings)
}

/// The API server is reached through a floating IP.
pub(super) fn wants_floating_ip(spec: &OpenStackClusterSpec) -> bool {
    let disabled = api_server(spec).is_some_and(|server| server.enable_floating_ip == Some(false));
    !disabled && spec.enable_external_network != Some(false)
}

/// Whether a subnet has a range of the manifest. Neutron drops bits of hosts and writes IPv6 its own way.
pub(super) fn same_range(held: &str, wanted: &str) -> bool {
    held == wanted || canonical_range(wanted).is_some_and(|wanted| held == wanted)
}

/// The floating IP in the manifest. It is never deleted.
pub(super) fn given_floating_ip(spec: &OpenStackClusterSpec) -> Option<&String> {
    api_server(spec)?.floating_ip.as_ref().filter(|address| !address.is_empty())
}

/// The floating IP that is to be the endpoint: the manifest may say so by either. With a load balancer only: without one the
/// address of an endpoint may be anybody's.
pub(super) fn wanted_floating_ip(spec: &OpenStackClusterSpec) -> Option<&String> {
    let host = || {
        let endpoint = spec.control_plane_endpoint.as_ref().filter(|_| load_balancer(spec).is_some())?;
        endpoint.host.parse::<std::net::IpAddr>().is_ok().then_some(&endpoint.host)
    };
    given_floating_ip(spec).or_else(host)
}

pub(super) fn fixed_ip(spec: &OpenStackClusterSpec) -> Option<&String> {
    api_server(spec)?.fixed_ip.as_ref().filter(|address| !address.is_empty())
}

/// The port of the API server.
pub(super) fn api_port(spec: &OpenStackClusterSpec) -> u16 {
    let endpoint = spec.control_plane_endpoint.as_ref().filter(|endpoint| !endpoint.host.is_empty());
    let given = endpoint.and_then(|endpoint| u16::try_from(endpoint.port).ok()).filter(|port| *port > 0);
    given.or_else(|| api_server(spec)?.port).unwrap_or(API_PORT)
}

/// Ports of the load balancer, that of the API server first.
pub(super) fn ports(spec: &OpenStackClusterSpec) -> Vec<u16> {
    let mut ports = vec![api_port(spec)];
    let more = load_balancer(spec).map(|settings| settings.additional_ports.as_slice()).unwrap_or_default();
    for port in more.iter().filter_map(|port| u16::try_from(*port).ok()) {
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    ports
}

pub(super) fn wants_bastion(spec: &OpenStackClusterSpec) -> bool {
    spec.bastion.as_ref().is_some_and(|bastion| bastion.enabled != Some(false))
}

pub(super) fn group_name(object: &OpenStackCluster, cluster: &str, group: Group) -> String {
    let word = match group {
        Group::ControlPlane => "controlplane",
        Group::Worker => "worker",
        Group::Bastion => "bastion",
    };
    names::security_group(&object.metadata.namespace, cluster, word)
}

/// The description of a thing of the cluster; `of` distinguishes several of a kind.
pub(super) fn description(object: &OpenStackCluster, cluster: &str, of: &str) -> String {
    let (meta, mark) = (&object.metadata, mark::of(&object.metadata));
    match of {
        "" => mark::description(&meta.namespace, cluster, &mark),
        of => mark::with(&format!("{} {of}", mark::words(&meta.namespace, cluster)), &mark),
    }
}

/// A floating IP was created for the cluster, by us or by CAPO. Others are never deleted, whatever they lead to.
pub(super) fn created_address(object: &OpenStackCluster, cluster: &str, description: &str) -> bool {
    let meta = &object.metadata;
    mark::owner(description, &mark::of(meta)) == mark::Owner::Ours
        || description == mark::words(&meta.namespace, cluster)
}

/// A network in use, for status.
pub(super) fn network_status(network: &Network, subnets: &[Subnet]) -> NetworkStatusWithSubnets {
    NetworkStatusWithSubnets {
        name: network.name.clone(),
        id: network.id.to_string(),
        tags: network.tags.clone(),
        subnets: subnets
            .iter()
            .map(|subnet| v1beta2::Subnet {
                name: subnet.name.clone(),
                id: subnet.id.to_string(),
                cidr: subnet.cidr.clone(),
                tags: subnet.tags.clone(),
            })
            .collect(),
    }
}
