//! The order of a network: all parameters of `createNetwork`.

use std::net::IpAddr;

use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::model::{GuestType, NetworkMode, NetworkOffering};
use capstan_cloudstack_client::{NetworkOfferingId, ZoneId};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_provider_kit::order;
use serde::{Deserialize, Serialize};

use super::ObservedNetwork;
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

/// Services that the endpoint of a cluster needs.
const SERVICES: [&str; 3] = ["SourceNat", "Lb", "Firewall"];

/// Why networks of an offering cannot serve a cluster. CloudStack makes some of them all the same, and refuses the rules
/// later.
fn unfit(offering: &NetworkOffering) -> Option<String> {
    if let Some(kind) = offering.guestiptype.as_ref().filter(|kind| **kind != GuestType::Isolated) {
        return Some(format!("is for networks of type {kind}"));
    }
    if offering.forvpc {
        return Some("is for tiers of a VPC".to_owned());
    }
    if offering.specifyvlan {
        return Some("asks for a VLAN, which only an administrator may name".to_owned());
    }
    if offering.networkmode == Some(NetworkMode::Routed) {
        return Some("is for routed networks".to_owned());
    }
    if offering.state.as_deref().is_some_and(|state| state != "Enabled") {
        return Some("is not enabled".to_owned());
    }
    // A server that lists no services says nothing about them.
    let offers = |name: &str| offering.service.iter().any(|service| service.name.eq_ignore_ascii_case(name));
    let lacking: Vec<&str> = SERVICES.into_iter().filter(|name| !offers(name)).collect();
    let told = !offering.service.is_empty() && !lacking.is_empty();
    told.then(|| format!("has no {}", lacking.join(" and no ")))
}

impl NetworkOrder {
    /// The order of an object's network, or why there can be none.
    pub(super) fn of(
        object: &CloudStackIsolatedNetwork,
        domain: &CloudStackFailureDomain,
        cluster: &CloudStackCluster,
        observed: &ObservedNetwork,
    ) -> Result<Self, CloudError> {
        let (spec, name) = (&object.spec, offering_name(object));
        // Look-ups by name find every name that contains it.
        let offering = observed.offerings.iter().find(|offering| offering.name == name);
        let offering = offering.ok_or_else(|| {
            let message = format!(
                "there is no network offering {name:?}: correct network.offering of failure domain {}",
                domain.spec.name
            );
            CloudError::new(code::NOT_FOUND, "OfferingNotFound", message)
        })?;
        if let Some(why) = unfit(offering) {
            let message = format!(
                "network offering {name:?} {why}: name an offering for isolated networks with {} in network.offering of \
                 failure domain {}, or leave it empty for {DEFAULT_OFFERING}",
                SERVICES.join(", "),
                domain.spec.name
            );
            return Err(CloudError::new(code::UNSUPPORTED, "OfferingUnfit", message));
        }
        Ok(Self {
            zone: domain.spec.zone.id.as_str().into(),
            offering: offering.id.clone(),
            text: mark(cluster),
            gateway: spec.gateway.parse().ok(),
            netmask: Some(spec.netmask.clone()).filter(|netmask| !netmask.is_empty()),
            owner: observed.owner.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offerings_that_cannot_serve_a_cluster_are_unfit() {
        let services = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        let all = || services(&["Dhcp", "SourceNat", "Lb", "Firewall"]);
        for (fields, why) in [
            (json!({"guestiptype": "Isolated", "state": "Enabled", "service": all()}), None),
            (json!({"guestiptype": "Isolated"}), None),
            (json!({"guestiptype": "L2", "service": []}), Some("is for networks of type L2")),
            (json!({"guestiptype": "Shared", "service": all()}), Some("is for shared networks")),
            (json!({"guestiptype": "Isolated", "forvpc": true}), Some("is for tiers of a VPC")),
            (json!({"specifyvlan": true}), Some("asks for a VLAN, which only an administrator may name")),
            (json!({"networkmode": "ROUTED"}), Some("is for routed networks")),
            (json!({"state": "Disabled"}), Some("is not enabled")),
            (json!({"service": services(&["SourceNat", "Firewall"])}), Some("has no Lb")),
        ] {
            let mut body = json!({"id": "o", "name": "o"});
            body.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
            let offering: NetworkOffering = serde_json::from_value(body).expect("an offering");
            assert_eq!(unfit(&offering).as_deref(), why, "{fields}");
        }
    }
}
