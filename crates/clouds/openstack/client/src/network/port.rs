//! Ports: how a server, a router or a load balancer is in a network.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Network, SecurityGroup, Subnet, TagFilter};
use crate::id::Id;
use crate::loose::{Time, model, request};
use crate::resource::{resources, verbs};

model! {
    /// A port.
    pub struct Port {
        /// Id of the port.
        pub id: Id<Port>,
        /// Its name, which other ports may have too.
        pub name: String,
        /// Description of the port.
        pub description: String,
        /// Whose it is; empty of a router's gateway.
        pub project_id: String,
        /// Network of the port.
        pub network_id: Id<Network>,
        /// `ACTIVE`, `DOWN`, `BUILD` or `ERROR`.
        pub status: String,
        /// It carries traffic.
        pub admin_state_up: bool,
        /// Hardware address of the port.
        pub mac_address: String,
        /// IP addresses of the port.
        pub fixed_ips: Vec<FixedIp>,
        /// What it is plugged into; empty if nothing.
        pub device_id: String,
        /// What kind of thing that is: `compute:nova`, `network:router_interface`, `Octavia`.
        pub device_owner: String,
        /// Security groups of the port.
        pub security_groups: Vec<Id<SecurityGroup>>,
        /// Addresses beside its own that it may use.
        pub allowed_address_pairs: Vec<AddressPair>,
        /// It is guarded.
        pub port_security_enabled: Option<bool>,
        /// What kind of hardware it is.
        #[serde(rename = "binding:vnic_type")]
        pub vnic_type: String,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
        /// When it was made.
        pub created_at: Option<Time>,
    }
}

/// An address of a port: in a request either part may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FixedIp {
    /// The subnet.
    #[serde(skip_serializing_if = "Id::is_empty")]
    pub subnet_id: Id<Subnet>,
    /// The address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_address: String,
}

/// An address beside its own that a port may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AddressPair {
    /// An address or a range.
    pub ip_address: String,
    /// With this hardware address; the port's own if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
}

/// The security groups of a new port. Neutron gives it the default group if nothing is said, which differs from none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PortSecurityGroups {
    /// The project's default group.
    #[default]
    Default,
    /// These, which may be none.
    These(Vec<Id<SecurityGroup>>),
}

impl Serialize for PortSecurityGroups {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Default => serializer.serialize_none(),
            Self::These(groups) => groups.serialize(serializer),
        }
    }
}

request! {
    /// A new port.
    pub struct NewPort {
        /// Network of the port.
        pub network_id: Id<Network>,
        /// Name of the port.
        pub name: String,
        /// Description of the port.
        pub description: Option<String>,
        /// It carries traffic.
        pub admin_state_up: Option<bool>,
        /// Hardware address of the port.
        pub mac_address: Option<String>,
        /// Its addresses; one of each kind of the network's if left out.
        pub fixed_ips: Vec<FixedIp>,
        /// Security groups of the port.
        pub security_groups: PortSecurityGroups,
        /// Addresses beside its own that it may use.
        pub allowed_address_pairs: Vec<AddressPair>,
        /// It is guarded.
        pub port_security_enabled: Option<bool>,
        /// Its uplink's state is passed on. Refused without the extension.
        pub propagate_uplink_status: Option<bool>,
        /// Where it is plugged in; for administrators.
        #[serde(rename = "binding:host_id")]
        pub host_id: Option<String>,
        /// What kind of hardware it is.
        #[serde(rename = "binding:vnic_type")]
        pub vnic_type: Option<String>,
        /// Settings of that hardware; for administrators.
        #[serde(rename = "binding:profile")]
        pub profile: BTreeMap<String, Value>,
        /// A trusted virtual function, with the extension `port-trusted-vif`.
        #[serde(rename = "trusted")]
        pub trusted: Option<bool>,
        /// What the cloud's own extensions read.
        #[serde(flatten)]
        pub value_specs: BTreeMap<String, Value>,
    }

    /// What can be changed of a port.
    pub struct PortChange {
        /// Name of the port.
        pub name: Option<String>,
        /// Description of the port.
        pub description: Option<String>,
        /// Security groups of the port.
        pub security_groups: Option<Vec<Id<SecurityGroup>>>,
        /// Addresses beside its own that it may use.
        pub allowed_address_pairs: Option<Vec<AddressPair>>,
        /// It is guarded.
        pub port_security_enabled: Option<bool>,
        /// IP addresses of the port.
        pub fixed_ips: Option<Vec<FixedIp>>,
    }

    /// What ports can be narrowed by.
    pub struct PortFilter {
        /// Its id; one of these.
        pub id: Vec<Id<Port>>,
        /// Its name, whatever the case.
        pub name: Option<String>,
        /// Project that owns the port.
        pub project_id: Option<String>,
        /// Network of the port.
        pub network_id: Option<Id<Network>>,
        /// What it is plugged into; one of these.
        pub device_id: Vec<String>,
        /// What kind of thing that is; one of these.
        pub device_owner: Vec<String>,
        /// Its address or subnet: `ip_address=…`, `subnet_id=…`.
        pub fixed_ips: Vec<String>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }
}

resources! {
    Port: Network "ports" Some("port"), "ports" by PortFilter;
}

verbs! {
    Port: new NewPort, change PortChange, delete;
}
