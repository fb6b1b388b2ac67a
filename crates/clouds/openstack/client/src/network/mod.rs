//! Neutron: networks, subnets, ports, routers, floating IPs, security groups, trunks.

mod address;
mod port;
mod quota;
mod router;
mod security;
mod trunk;

use http::Method;
use serde::Deserialize;
use serde_json::json;

pub use address::{FloatingIp, FloatingIpChange, FloatingIpFilter, NewFloatingIp};
pub use port::{AddressPair, FixedIp, NewPort, Port, PortChange, PortFilter, PortSecurityGroups};
pub use quota::NetworkQuota;
pub use router::{
    ExternalGateway, GatewayIp, NewRouter, Route, Router, RouterChange, RouterFilter, RouterInterface,
};
pub use security::{
    NewSecurityGroup, NewSecurityGroupRule, SecurityGroup, SecurityGroupChange, SecurityGroupFilter,
    SecurityGroupRule, SecurityGroupRuleFilter,
};
pub use trunk::{NewTrunk, SubPort, Trunk, TrunkFilter};

use crate::client::{Body, Call, Client};
use crate::error::Error;
use crate::id::Id;
use crate::loose::{Time, model, request};
use crate::resource::{Resource, item, resources, verbs, with_body};
use crate::service::Service;

model! {
    /// A network.
    pub struct Network {
        /// Id of the network.
        pub id: Id<Network>,
        /// Its name, which other networks may have too.
        pub name: String,
        /// Description of the network.
        pub description: String,
        /// Project that owns the network.
        pub project_id: String,
        /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
        pub status: String,
        /// It carries traffic.
        pub admin_state_up: bool,
        /// Subnets of the network.
        pub subnets: Vec<Id<Subnet>>,
        /// The longest packet.
        pub mtu: Option<u32>,
        /// Other projects may use it.
        pub shared: bool,
        /// It leads out of the cloud.
        #[serde(rename = "router:external")]
        pub is_external: bool,
        /// Ports are guarded by default.
        pub port_security_enabled: Option<bool>,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
        /// When it was made.
        pub created_at: Option<Time>,
    }

    /// A range of addresses of a network.
    pub struct Subnet {
        /// Id of the subnet.
        pub id: Id<Subnet>,
        /// Its name, which other subnets may have too.
        pub name: String,
        /// Description of the subnet.
        pub description: String,
        /// Project that owns the subnet.
        pub project_id: String,
        /// Network of the subnet.
        pub network_id: Id<Network>,
        /// 4 or 6.
        pub ip_version: u8,
        /// The range.
        pub cidr: String,
        /// The router's address.
        pub gateway_ip: Option<String>,
        /// Addresses that are handed out.
        pub allocation_pools: Vec<AllocationPool>,
        /// Name servers.
        pub dns_nameservers: Vec<String>,
        /// Addresses are handed out by DHCP.
        pub enable_dhcp: bool,
        /// How IPv6 addresses come about.
        pub ipv6_address_mode: Option<String>,
        /// Who advertises the IPv6 router.
        pub ipv6_ra_mode: Option<String>,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
    }

    /// An extension of the API.
    pub struct Extension {
        /// What requests are checked against, such as `standard-attr-tag`.
        pub alias: String,
        /// Display name of the extension.
        pub name: String,
    }
}

/// Addresses that a subnet hands out, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, Deserialize)]
pub struct AllocationPool {
    /// The first.
    pub start: String,
    /// The last.
    pub end: String,
}

request! {
    /// What networks can be narrowed by.
    pub struct NetworkFilter {
        /// Id of the network.
        pub id: Option<String>,
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Description of the network.
        pub description: Option<String>,
        /// Project that owns the network.
        pub project_id: Option<String>,
        /// It leads out of the cloud.
        #[serde(rename = "router:external")]
        pub is_external: Option<bool>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }

    /// Words that things have or have not. Comparison heeds case.
    pub struct TagFilter {
        /// All of these.
        #[serde(serialize_with = "crate::query::comma_list")]
        pub tags: Vec<String>,
        /// One of these.
        #[serde(rename = "tags-any", serialize_with = "crate::query::comma_list")]
        pub tags_any: Vec<String>,
        /// Not all of these.
        #[serde(rename = "not-tags", serialize_with = "crate::query::comma_list")]
        pub not_tags: Vec<String>,
        /// None of these.
        #[serde(rename = "not-tags-any", serialize_with = "crate::query::comma_list")]
        pub not_tags_any: Vec<String>,
    }

    /// A new network.
    pub struct NewNetwork {
        /// Name of the network.
        pub name: String,
        /// Description of the network.
        pub description: Option<String>,
        /// It carries traffic.
        pub admin_state_up: Option<bool>,
        /// The longest packet.
        pub mtu: Option<u32>,
        /// Ports are guarded by default.
        pub port_security_enabled: Option<bool>,
    }

    /// What can be changed of a network.
    pub struct NetworkChange {
        /// Name of the network.
        pub name: Option<String>,
        /// Description of the network.
        pub description: Option<String>,
        /// The longest packet.
        pub mtu: Option<u32>,
        /// Ports are guarded by default.
        pub port_security_enabled: Option<bool>,
    }

    /// What subnets can be narrowed by.
    pub struct SubnetFilter {
        /// Id of the subnet.
        pub id: Option<String>,
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Description of the subnet.
        pub description: Option<String>,
        /// Project that owns the subnet.
        pub project_id: Option<String>,
        /// Network of the subnet.
        pub network_id: Option<Id<Network>>,
        /// 4 or 6.
        pub ip_version: Option<u8>,
        /// The range.
        pub cidr: Option<String>,
        /// The router's address.
        pub gateway_ip: Option<String>,
        /// How IPv6 addresses come about.
        pub ipv6_address_mode: Option<String>,
        /// Who advertises the IPv6 router.
        pub ipv6_ra_mode: Option<String>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }

    /// A new subnet.
    pub struct NewSubnet {
        /// Network of the subnet.
        pub network_id: Id<Network>,
        /// Name of the subnet.
        pub name: String,
        /// Description of the subnet.
        pub description: Option<String>,
        /// 4 or 6.
        pub ip_version: u8,
        /// The range.
        pub cidr: String,
        /// The router's address; the first of the range if left out.
        pub gateway_ip: Option<String>,
        /// Addresses that are handed out; all but the gateway's if left out.
        pub allocation_pools: Vec<AllocationPool>,
        /// Name servers.
        pub dns_nameservers: Vec<String>,
        /// Addresses are handed out by DHCP.
        pub enable_dhcp: Option<bool>,
        /// How IPv6 addresses come about.
        pub ipv6_address_mode: Option<String>,
        /// Who advertises the IPv6 router.
        pub ipv6_ra_mode: Option<String>,
    }

    /// What can be changed of a subnet.
    pub struct SubnetChange {
        /// Name of the subnet.
        pub name: Option<String>,
        /// Description of the subnet.
        pub description: Option<String>,
        /// Name servers; an empty list removes them.
        pub dns_nameservers: Option<Vec<String>>,
        /// Addresses that are handed out.
        pub allocation_pools: Option<Vec<AllocationPool>>,
    }
}

resources! {
    Network: Network "networks" Some("network"), "networks" by NetworkFilter;
    Subnet: Network "subnets" Some("subnet"), "subnets" by SubnetFilter;
}

verbs! {
    Network: new NewNetwork, change NetworkChange, delete;
    Subnet: new NewSubnet, change SubnetChange, delete;
}

/// Things of Neutron that have tags.
pub trait Tagged: Resource {}

impl Tagged for Network {}
impl Tagged for Subnet {}
impl Tagged for Port {}
impl Tagged for Router {}
impl Tagged for FloatingIp {}
impl Tagged for SecurityGroup {}
impl Tagged for Trunk {}

impl Client {
    /// Gives a thing these tags in place of those it has. Tags of a creation are dropped by some versions of Neutron
    /// without a word, so they are set by a request of their own. Answers 500 if the thing is not there.
    pub async fn set_tags<R: Tagged>(&self, id: &Id<R>, tags: &[String]) -> Result<Vec<String>, Error> {
        let path = format!("{}/tags", item(R::PATH, id));
        let call = Call::change(Service::Network, Method::PUT, path, Body::None).idempotent();
        self.checked_id(id, &call)?;
        // A tag that is named twice is refused.
        let mut once: Vec<&String> = Vec::new();
        for tag in tags {
            if !once.contains(&tag) {
                once.push(tag);
            }
        }
        let call = with_body(call, None, &json!({ "tags": once }))?;
        self.read(&call, Some("tags")).await
    }

    /// The extensions of the network API.
    pub async fn network_extensions(&self) -> Result<Vec<Extension>, Error> {
        self.read(&Call::read(Service::Network, "extensions"), Some("extensions")).await
    }
}
