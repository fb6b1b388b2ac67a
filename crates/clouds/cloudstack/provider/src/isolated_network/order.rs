//! The order of a network: everything that CloudStack is told of it.

use std::net::IpAddr;

use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::{NetworkOfferingId, ZoneId};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_provider_kit::order;
use serde::{Deserialize, Serialize};

use super::Facts;
use super::mark::mark;
use crate::code;
use crate::error::CloudError;

/// The offering of networks whose manifest names none.
const DEFAULT_OFFERING: &str = "DefaultIsolatedNetworkOfferingWithSourceNatService";

/// The order of a network. Its name is beside it in the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkOrder {
    /// The zone.
    pub zone: ZoneId,
    /// What it can do.
    pub offering: NetworkOfferingId,
    /// What people are shown, and the mark that it is ours.
    pub text: String,
    /// Its gateway; any if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Its netmask; any if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netmask: Option<String>,
    /// The account or project, unless it is that of the keys.
    #[serde(default, skip_serializing_if = "Owner::is_caller")]
    pub owner: Owner,
}

impl order::Order for NetworkOrder {
    const VERSION: u32 = 1;
}

/// The name of a network's offering.
pub(super) fn offering_name(object: &CloudStackIsolatedNetwork) -> &str {
    Some(object.spec.offering.as_str()).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_OFFERING)
}

impl NetworkOrder {
    /// The order of an object's network, or why there can be none.
    pub(super) fn of(
        object: &CloudStackIsolatedNetwork,
        domain: &CloudStackFailureDomain,
        cluster: &CloudStackCluster,
        facts: &Facts,
    ) -> Result<Self, CloudError> {
        let (spec, name) = (&object.spec, offering_name(object));
        // Look-ups by name find every name that contains it.
        let offering = facts.offerings.iter().find(|offering| offering.name == name);
        let offering = offering.ok_or_else(|| {
            let message = format!(
                "there is no network offering {name:?}: correct network.offering of failure domain {}",
                domain.spec.name
            );
            CloudError::new(code::NOT_FOUND, "OfferingNotFound", message)
        })?;
        Ok(Self {
            zone: domain.spec.zone.id.as_str().into(),
            offering: offering.id.clone(),
            text: mark(cluster),
            gateway: spec.gateway.parse().ok(),
            netmask: Some(spec.netmask.clone()).filter(|netmask| !netmask.is_empty()),
            owner: facts.owner.clone(),
        })
    }
}
