//! What a decision about an OpenStackFloatingIPPool is based on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::ipam::{IPAddress, IPAddressClaim};
use capstan_openstack_types::v1beta2::NetworkStatus;

use crate::error::CloudError;

/// Observed state besides the OpenStackFloatingIPPool.
#[derive(Debug)]
pub struct Seen {
    /// Claims that name the pool, the oldest first.
    pub claims: Vec<Arc<IPAddressClaim>>,
    /// Addresses that the pool gave.
    pub addresses: Vec<Arc<IPAddress>>,
    pub cloud: Result<PoolState, CloudError>,
}

/// The pool's part of the project.
#[derive(Debug)]
pub struct PoolState {
    /// Until lists are read again.
    pub next_round: Option<Duration>,
    /// The external network.
    pub network: Result<NetworkStatus, CloudError>,
    /// Floating IPs that were created for the pool or are given in its spec, by address.
    pub held: BTreeMap<String, Held>,
}

/// A floating IP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    pub id: String,
    /// It was created for the pool, by us or by CAPO.
    pub created: bool,
    /// It leads to a port.
    pub is_used: bool,
    pub tags: Vec<String>,
}
