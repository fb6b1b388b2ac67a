//! What the next order for a network takes of the limits of its account and of the addresses of its zone.

use std::net::IpAddr;

use capstan_cloudstack_client::ZoneId;
use capstan_cloudstack_client::model::PublicIpAddress;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_controller::{Look, ObserveError, Outcome};
use capstan_provider_kit::retry::{FailedTry, ORDERS};
use jiff::Timestamp;

use super::claim::{Identity, owns};
use super::free_address::free;
use super::{IsolatedNetworks, Made, NetworkCall, NetworkOrder, ObservedNetwork, VpcOrder, routed, vpc};
use crate::annotation;
use crate::clouds::Access;
use crate::code;
use crate::error::CloudError;
use crate::quota::Amounts;

/// The resource that is ordered next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Network,
    Vpc,
    Address,
}

impl Next {
    /// The order that a call makes, if accounts have limits for what it makes.
    pub(super) fn of(call: &NetworkCall) -> Option<Self> {
        match call {
            NetworkCall::Create { .. } => Some(Self::Network),
            NetworkCall::CreateVpc { .. } => Some(Self::Vpc),
            NetworkCall::Associate { .. } => Some(Self::Address),
            _ => None,
        }
    }

    /// What it needs, and what of that the order itself takes: a network or a VPC is of no use to a cluster without an
    /// address for the endpoint.
    pub(super) fn amounts(self) -> (Amounts, Amounts) {
        let of = |networks, addresses| Amounts { networks, addresses, ..Amounts::default() };
        match self {
            Self::Network => (of(1, 1), of(1, 0)),
            // It takes an address of its own.
            Self::Vpc => (of(1, 2), of(0, 1)),
            Self::Address => (of(0, 1), of(0, 1)),
        }
    }

    /// Under which it is reserved.
    pub(super) fn key(self, object: &CloudStackIsolatedNetwork) -> String {
        format!("{} {self:?}", object.metadata.key())
    }
}

/// What a decision on this may order.
pub(super) fn next(
    object: &CloudStackIsolatedNetwork,
    domain: &CloudStackFailureDomain,
    cluster: &CloudStackCluster,
    observed: &ObservedNetwork,
) -> Option<Next> {
    if object.metadata.is_deleting() {
        return None;
    }
    let Some(network) = &observed.network else {
        let wanted = vpc::wanted(object).filter(|_| observed.vpc.is_none());
        return match wanted {
            _ if !object.spec.id.is_empty() => None,
            Some(wanted) => VpcOrder::of(wanted, domain, cluster, observed).ok().map(|_| Next::Vpc),
            None => NetworkOrder::of(object, domain, cluster, observed).ok().map(|_| Next::Network),
        };
    };
    if routed::is_routed(network) || !object.status.public_ip_id.is_empty() {
        return None;
    }
    let identity = Identity::of(object, cluster, Some(network), &observed.addresses, &[]);
    let host: Option<IpAddr> = cluster.spec.control_plane_endpoint.host.parse().ok();
    let has = |address: &PublicIpAddress| host == Some(address.ipaddress) || identity.is_on(&address.tags);
    let own = network.vpcid.is_none() && owns(network, &Made::of(&object.metadata), &identity);
    let comes_along = own && observed.free.is_none() && !observed.addresses.is_empty() && host.is_none();
    (!comes_along && !observed.addresses.iter().any(has)).then_some(Next::Address)
}

/// CloudStack refused the order of the network or its VPC a moment ago.
pub(super) fn is_paused(object: &CloudStackIsolatedNetwork, now: Timestamp) -> bool {
    let refused = FailedTry::of(&object.metadata, annotation::ORDER_REFUSED);
    refused.is_some_and(|refused| now < refused.next(ORDERS))
}

/// Whether the zone has no free address, if an order was refused for that a while ago. To ask before every order would
/// be a call more for each cluster, and hardly any would learn something.
pub(super) async fn no_address(
    object: &CloudStackIsolatedNetwork,
    domain: &CloudStackFailureDomain,
    access: &Access,
) -> Result<bool, ObserveError> {
    let zone: ZoneId = domain.spec.zone.id.as_str().into();
    if !access.cache.quota().await.is_short_of_addresses(&zone) {
        return Ok(false);
    }
    let found = free(&object.metadata.uid, Some(zone.clone()), access).await;
    let found = found.map_err(|cause| ObserveError::outside(cause.code, cause.message))?;
    access.cache.quota().await.short_of_addresses(&zone, found.is_none());
    Ok(found.is_none())
}

/// The call was refused because no address was free.
pub(super) fn is_short(call: &NetworkCall, outcome: &Outcome) -> bool {
    let takes = matches!(Next::of(call), Some(Next::Vpc | Next::Address));
    let lost = match outcome {
        Outcome::Failed(error) | Outcome::Unknown(error) => error.code == code::CAPACITY,
        _ => false,
    };
    takes && lost
}

/// Why a call is not made: the account or the zone has too little for it.
pub(super) fn refusal(look: &Look<IsolatedNetworks>, call: &NetworkCall) -> Option<CloudError> {
    let (needed, _) = Next::of(call)?.amounts();
    let seen = &look.seen;
    if let Some(cause) = seen.headroom.as_ref().and_then(|headroom| headroom.refuses(&needed)) {
        return Some(cause);
    }
    seen.no_address.then(no_free_address)
}

/// No address of the zone can be had.
pub(super) fn no_free_address() -> CloudError {
    let message = "no public address of the zone is free; release one, or set spec.controlPlaneEndpoint.host to an existing one";
    CloudError::new(code::CAPACITY, "NoAddress", message)
}
