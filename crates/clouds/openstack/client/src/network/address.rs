//! Floating IPs: addresses outside that lead to a port inside.

use super::{Network, Port, Router, Subnet, TagFilter};
use crate::id::Id;
use crate::loose::{model, request};
use crate::resource::{resources, verbs};

model! {
    /// A floating IP.
    pub struct FloatingIp {
        /// Id of the floating IP.
        pub id: Id<FloatingIp>,
        /// Project that owns the floating IP.
        pub project_id: String,
        /// The address outside.
        pub floating_ip_address: String,
        /// The external network.
        pub floating_network_id: Id<Network>,
        /// The port it leads to.
        pub port_id: Option<Id<Port>>,
        /// The address of that port.
        pub fixed_ip_address: Option<String>,
        /// By way of.
        pub router_id: Option<Id<Router>>,
        /// `DOWN` without a port, `ACTIVE` with one.
        pub status: String,
        /// Description of the floating IP.
        pub description: String,
        /// Words of its owner.
        pub tags: Vec<String>,
        /// Grows with every change.
        pub revision_number: u64,
    }
}

request! {
    /// A new floating IP.
    pub struct NewFloatingIp {
        /// The external network.
        pub floating_network_id: Id<Network>,
        /// The subnet of it.
        pub subnet_id: Option<Id<Subnet>>,
        /// The address; for administrators by default.
        pub floating_ip_address: Option<String>,
        /// The port it leads to.
        pub port_id: Option<Id<Port>>,
        /// The address of that port.
        pub fixed_ip_address: Option<String>,
        /// Description of the floating IP.
        pub description: Option<String>,
    }

    /// What floating IPs can be narrowed by.
    pub struct FloatingIpFilter {
        /// Id of the floating IP.
        pub id: Option<String>,
        /// Project that owns the floating IP.
        pub project_id: Option<String>,
        /// The address.
        pub floating_ip_address: Option<String>,
        /// The external network.
        pub floating_network_id: Option<Id<Network>>,
        /// The port it leads to; one of these.
        pub port_id: Vec<Id<Port>>,
        /// Description of the floating IP.
        pub description: Option<String>,
        /// Words it has or has not.
        #[serde(flatten)]
        pub tags: TagFilter,
    }
}

/// Where a floating IP leads from now on: a port, or nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct FloatingIpChange {
    /// The port; none takes it away from the one it leads to.
    pub port_id: Option<Id<Port>>,
    /// The address of that port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
}

resources! {
    FloatingIp: Network "floatingips" Some("floatingip"), "floatingips" by FloatingIpFilter;
}

verbs! {
    FloatingIp: new NewFloatingIp, change FloatingIpChange, delete;
}
