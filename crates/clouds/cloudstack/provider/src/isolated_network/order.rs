//! The order of a network: all parameters of `createNetwork`.

use std::net::IpAddr;

use capstan_cloudstack_client::commands::Owner;
use capstan_cloudstack_client::model::{GuestType, NetworkMode, NetworkOffering};
use capstan_cloudstack_client::{AclId, NetworkOfferingId, VpcId, ZoneId};
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork,
};
use capstan_provider_kit::order;
use serde::{Deserialize, Serialize};

use super::ObservedNetwork;
use super::acl::ALLOW;
use super::mark::mark;
use super::{routed, vpc};
use crate::code;
use crate::error::CloudError;
use crate::named::named;

/// The offering of networks whose manifest names none.
const DEFAULT_OFFERING: &str = "DefaultIsolatedNetworkOfferingWithSourceNatService";

/// The offering of tiers whose manifest names none; CAPC's default.
const TIER_OFFERING: &str = "DefaultIsolatedNetworkOfferingForVpcNetworks";

/// The order of a network. Its name is beside it in the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkOrder {
    pub zone: ZoneId,
    pub offering: NetworkOfferingId,
    /// What people are shown, and the mark that it is ours.
    pub text: String,
    /// The VPC that it becomes a tier of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc: Option<VpcId>,
    /// Access list of a VPC tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<AclId>,
    /// Gateway; CloudStack chooses one if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Netmask; CloudStack chooses one if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netmask: Option<String>,
    /// Prefix length of a routed network, which CloudStack chooses the addresses of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr_size: Option<u8>,
    /// The account or project, unless it is that of the keys.
    #[serde(default, skip_serializing_if = "Owner::is_caller")]
    pub owner: Owner,
}

impl order::Order for NetworkOrder {
    const VERSION: u32 = 1;
}

pub(super) fn offering_name(object: &CloudStackIsolatedNetwork) -> &str {
    let default = if vpc::wanted(object).is_some() { TIER_OFFERING } else { DEFAULT_OFFERING };
    Some(object.spec.offering.as_str()).filter(|name| !name.is_empty()).unwrap_or(default)
}

/// Services that the endpoint of a cluster needs.
const SERVICES: [&str; 3] = ["SourceNat", "Lb", "Firewall"];
/// The same for a tier, which has an access list in place of a firewall.
const TIER_SERVICES: [&str; 2] = ["SourceNat", "Lb"];

/// What routed networks and tiers have to have.
const ROUTED_SERVICES: [&str; 1] = ["Firewall"];
const ROUTED_TIER_SERVICES: [&str; 1] = ["NetworkACL"];

fn is_routed(offering: &NetworkOffering) -> bool {
    offering.networkmode == Some(NetworkMode::Routed)
}

fn services(offering: &NetworkOffering, in_vpc: bool) -> &'static [&'static str] {
    match (is_routed(offering), in_vpc) {
        (false, false) => &SERVICES,
        (false, true) => &TIER_SERVICES,
        (true, false) => &ROUTED_SERVICES,
        (true, true) => &ROUTED_TIER_SERVICES,
    }
}

/// Why networks of an offering cannot serve a cluster. CloudStack makes some of them all the same, and refuses the rules
/// later.
fn unfit(offering: &NetworkOffering, in_vpc: bool) -> Option<String> {
    if let Some(kind) = offering.guestiptype.as_ref().filter(|kind| **kind != GuestType::Isolated) {
        return Some(format!("is for {kind} networks"));
    }
    if offering.forvpc != in_vpc {
        let is_for = if in_vpc { "is not for tiers of a VPC" } else { "is for tiers of a VPC" };
        return Some(is_for.to_owned());
    }
    if offering.specifyvlan {
        return Some("asks for a VLAN, which only an administrator may name".to_owned());
    }
    if offering.state.as_deref().is_some_and(|state| state != "Enabled") {
        return Some("is not enabled".to_owned());
    }
    // The endpoint is on the source NAT address. That of a VPC is not used for it, NSX has no such rule.
    let is_nsx = offering.service.iter().any(|service| service.provider.iter().any(|by| by.name == "Nsx"));
    if !in_vpc && !is_routed(offering) && offering.conservemode == Some(false) && !is_nsx {
        return Some("allows one service per address (conserve mode is off)".to_owned());
    }
    // A server that lists no services says nothing about them.
    let offers = |name: &str| offering.service.iter().any(|service| service.name.eq_ignore_ascii_case(name));
    let lacking: Vec<&str> =
        services(offering, in_vpc).iter().copied().filter(|name| !offers(name)).collect();
    let lacks = !offering.service.is_empty() && !lacking.is_empty();
    lacks.then(|| format!("has no {}", lacking.join(" and no ")))
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
        let offering = named(&observed.offerings, name, |it| Some(it.name.as_str())).into_iter().next();
        let offering = offering.ok_or_else(|| {
            let message = format!(
                "there is no network offering {name:?}: correct network.offering of failure domain {}",
                domain.spec.name
            );
            CloudError::new(code::NOT_FOUND, "OfferingNotFound", message)
        })?;
        let in_vpc = observed.vpc.is_some();
        if let Some(why) = unfit(offering, in_vpc) {
            let services = services(offering, in_vpc).join(", ");
            let (what, default) = match in_vpc {
                true => ("tiers of a VPC", TIER_OFFERING),
                false => ("isolated networks", DEFAULT_OFFERING),
            };
            let message = format!(
                "network offering {name:?} {why}: name an offering for {what} with {services} in network.offering of \
                 failure domain {}, or leave it empty for {default}",
                domain.spec.name
            );
            return Err(CloudError::new(code::UNSUPPORTED, "OfferingUnfit", message));
        }
        let given = || Some(spec.netmask.clone()).filter(|netmask| !netmask.is_empty());
        let (gateway, netmask, cidr_size) = match &observed.vpc {
            Some(vpc) => {
                let (gateway, netmask) = vpc::tier_range(vpc, spec)?;
                (Some(gateway), Some(netmask), None)
            }
            None if is_routed(offering) && spec.gateway.is_empty() && routed::is_sized(&offering.service) => {
                (None, None, Some(routed::size(spec)?))
            }
            None => (spec.gateway.parse().ok(), given(), None),
        };
        let acl = observed.acls.iter().find(|acl| in_vpc && acl.name.as_deref() == Some(ALLOW));
        Ok(Self {
            zone: domain.spec.zone.id.as_str().into(),
            offering: offering.id.clone(),
            text: mark(cluster),
            vpc: observed.vpc.as_ref().map(|vpc| vpc.id.clone()),
            acl: acl.map(|acl| acl.id.clone()),
            gateway,
            netmask,
            cidr_size,
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
            (json!({"guestiptype": "L2", "service": []}), Some("is for L2 networks")),
            (json!({"guestiptype": "Shared", "service": all()}), Some("is for Shared networks")),
            (json!({"guestiptype": "Isolated", "forvpc": true}), Some("is for tiers of a VPC")),
            (json!({"specifyvlan": true}), Some("asks for a VLAN, which only an administrator may name")),
            (json!({"networkmode": "ROUTED", "service": services(&["Firewall"])}), None),
            (json!({"networkmode": "ROUTED", "service": services(&["Dhcp"])}), Some("has no Firewall")),
            (json!({"state": "Disabled"}), Some("is not enabled")),
            (
                json!({"conservemode": false, "service": all()}),
                Some("allows one service per address (conserve mode is off)"),
            ),
            (
                json!({"conservemode": false, "networkmode": "ROUTED", "service": services(&["Firewall"])}),
                None,
            ),
            (json!({"service": services(&["SourceNat", "Firewall"])}), Some("has no Lb")),
        ] {
            let mut body = json!({"id": "o", "name": "o"});
            body.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
            let offering: NetworkOffering = serde_json::from_value(body).expect("an offering");
            assert_eq!(unfit(&offering, false).as_deref(), why, "{fields}");
        }
        let tier = json!({"id": "o", "name": "o", "forvpc": true, "conservemode": false, "service": services(&["SourceNat", "Lb"])});
        let tier: NetworkOffering = serde_json::from_value(tier).expect("an offering");
        assert_eq!(unfit(&tier, true), None);
        let other: NetworkOffering =
            serde_json::from_value(json!({"id": "o", "name": "o"})).expect("an offering");
        assert_eq!(unfit(&other, true).as_deref(), Some("is not for tiers of a VPC"));
    }
}
