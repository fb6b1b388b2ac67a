//! The VPC of a network that is a tier. It is found by id or name, or made. It is deleted with its last tier if it was
//! made here or by CAPC.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use capstan_cloudstack_client::commands::{ListVpcOfferings, ListVpcs, Owner};
use capstan_cloudstack_client::model::{NetworkMode, Tag, Vpc, VpcOffering};
use capstan_cloudstack_client::{Code, VpcOfferingId, ZoneId};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackFailureDomain, CloudStackIsolatedNetwork, CloudStackIsolatedNetworkSpec,
    CloudStackIsolatedNetworkStatus, Vpc as VpcSpec,
};
use capstan_controller::Look;
use capstan_provider_kit::order;
use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use super::claim::{Identity, is_own_address};
use super::mark::{is_tagged, mark, tag_of};
use super::{IsolatedNetworks, Made, NetworkCall, ObservedNetwork, routed};
use crate::clouds::Access;
use crate::code;
use crate::error::CloudError;
use crate::named::named;

/// The offering of VPCs whose manifest names none; CAPC's default.
const DEFAULT_OFFERING: &str = "Default VPC offering";
/// Prefix of a routed VPC whose manifest names no addresses.
const ROUTED_PREFIX: u8 = 24;
/// Prefix of a tier whose manifest names no gateway.
const TIER_PREFIX: u8 = 24;

/// The order of a VPC. Its name is beside it in the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VpcOrder {
    pub zone: ZoneId,
    pub offering: VpcOfferingId,
    /// Its addresses; empty where CloudStack chooses them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    /// Prefix length of a routed one, which CloudStack chooses the addresses of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr_size: Option<u8>,
    /// Display text with the mark of the cluster.
    pub text: String,
    /// The account or project, unless it is that of the keys.
    #[serde(default, skip_serializing_if = "Owner::is_caller")]
    pub owner: Owner,
}

impl order::Order for VpcOrder {
    const VERSION: u32 = 1;
}

/// The VPC that a network is to be a tier of.
pub(super) fn wanted(object: &CloudStackIsolatedNetwork) -> Option<&VpcSpec> {
    object.spec.vpc.as_ref().filter(|vpc| !vpc.id.is_empty() || !vpc.name.is_empty())
}

/// The VPC that the cloud has, and the offerings to make one where it has none.
pub(super) async fn observe(
    object: &CloudStackIsolatedNetwork,
    cluster: &CloudStackCluster,
    zone: &ZoneId,
    access: &Access,
) -> Result<(Option<Vpc>, Arc<Vec<VpcOffering>>), CloudError> {
    let Some(wanted) = wanted(object) else { return Ok((None, Arc::default())) };
    let by_id = !wanted.id.is_empty();
    let question = ListVpcs {
        id: by_id.then(|| wanted.id.as_str().into()),
        name: (!by_id).then(|| wanted.name.clone()),
        zoneid: Some(zone.clone()),
        scope: access.scope(),
    };
    let mut found = match access.client.list(&question).await {
        Ok(found) => found,
        // An id that is not known any more is refused as a wrong parameter.
        Err(error) if by_id && error.code() == Some(Code::Parameter) => Vec::new(),
        Err(error) => return Err(access.explain(&error)),
    };
    // Look-ups by name find every name that contains it.
    if !by_id {
        found = named(&found, &wanted.name, |vpc| vpc.name.as_deref()).into_iter().cloned().collect();
    }
    let ours = mark(cluster);
    if let Some(at) = found.iter().position(|vpc| vpc.displaytext.as_deref() == Some(&ours)) {
        return Ok((Some(found.swap_remove(at)), Arc::default()));
    }
    match found.len() {
        0 if by_id || object.metadata.is_deleting() => Ok((None, Arc::default())),
        0 => {
            let question =
                ListVpcOfferings { name: Some(offering_name(wanted).to_owned()), ..Default::default() };
            let offerings = access.client.cached(&question).await.map_err(|error| access.explain(&error))?;
            Ok((None, offerings))
        }
        1 => Ok((found.pop(), Arc::default())),
        several => {
            let message = format!(
                "{several} VPCs are called {:?}: give the id in network.vpc of failure domain {}",
                wanted.name, object.spec.failure_domain_name
            );
            Err(CloudError::new(code::AMBIGUOUS, "Ambiguous", message))
        }
    }
}

fn offering_name(wanted: &VpcSpec) -> &str {
    Some(wanted.offering.as_str()).filter(|name| !name.is_empty()).unwrap_or(DEFAULT_OFFERING)
}

impl VpcOrder {
    /// The order of the VPC of a network, or why there can be none.
    pub(super) fn of(
        wanted: &VpcSpec,
        domain: &CloudStackFailureDomain,
        cluster: &CloudStackCluster,
        observed: &ObservedNetwork,
    ) -> Result<Self, CloudError> {
        let fix = format!("network.vpc of failure domain {}", domain.spec.name);
        if !wanted.id.is_empty() {
            let message = format!("there is no VPC with id {:?}: correct {fix}", wanted.id);
            return Err(CloudError::new(code::NOT_FOUND, "VPCNotFound", message));
        }
        let name = offering_name(wanted);
        let offering = named(&observed.vpc_offerings, name, |it| Some(it.name.as_str())).into_iter().next();
        let offering = offering.ok_or_else(|| {
            let message = format!("there is no VPC offering {name:?}: correct offering in {fix}");
            CloudError::new(code::NOT_FOUND, "OfferingNotFound", message)
        })?;
        let routed = offering.networkmode == Some(NetworkMode::Routed);
        let sized = routed && wanted.cidr.is_empty() && routed::is_sized(&offering.service);
        if !sized && wanted.cidr.parse::<Ipv4Net>().is_err() {
            let message = format!(
                "VPC {:?} does not exist and cidr in {fix} is {:?}: give the addresses that it is to have, such as \
                 10.1.0.0/16, or name a VPC that exists",
                wanted.name, wanted.cidr
            );
            return Err(CloudError::new(code::REFUSED, "VPCWithoutCIDR", message));
        }
        Ok(Self {
            zone: domain.spec.zone.id.as_str().into(),
            offering: offering.id.clone(),
            cidr: wanted.cidr.clone(),
            cidr_size: sized.then_some(ROUTED_PREFIX),
            text: mark(cluster),
            owner: observed.owner.clone(),
        })
    }
}

/// Gateway and netmask of a tier: those of the manifest, or the first free range of the VPC. CloudStack chooses none.
pub(super) fn tier_range(
    vpc: &Vpc,
    spec: &CloudStackIsolatedNetworkSpec,
) -> Result<(IpAddr, String), CloudError> {
    let refused = |message: String| CloudError::new(code::REFUSED, "TierWithoutRange", message);
    let fix = format!("network.gateway and network.netmask of failure domain {}", spec.failure_domain_name);
    match (spec.gateway.parse(), spec.netmask.as_str()) {
        (Ok(gateway), netmask) if !netmask.is_empty() => return Ok((gateway, netmask.to_owned())),
        _ if spec.gateway.is_empty() && spec.netmask.is_empty() => {}
        _ => return Err(refused(format!("a tier needs both or neither of {fix}"))),
    }
    let whole: Option<Ipv4Net> = vpc.cidr.as_deref().and_then(|cidr| cidr.parse().ok());
    let taken: Vec<Ipv4Net> =
        vpc.network.iter().filter_map(|tier| tier.cidr.as_deref()?.parse().ok()).collect();
    let free = whole.and_then(|whole| {
        let mut ranges = whole.subnets(TIER_PREFIX.max(whole.prefix_len())).ok()?;
        ranges.find(|range| !taken.iter().any(|held| held.contains(range) || range.contains(held)))
    });
    let free = free.and_then(|range| Some((range.hosts().next()?, range.netmask())));
    let (gateway, netmask): (Ipv4Addr, Ipv4Addr) = free.ok_or_else(|| {
        let name = vpc.name.as_deref().unwrap_or_default();
        refused(format!("VPC {name} has no free /{TIER_PREFIX} for a tier: set {fix}"))
    })?;
    Ok((IpAddr::V4(gateway), netmask.to_string()))
}

/// The VPC was made here or by CAPC, for whatever cluster.
pub(crate) fn is_ours(vpc: &Vpc) -> bool {
    tag_of(vpc.displaytext.as_deref()).is_some() || is_tagged(&vpc.tags, names::CREATED_TAG)
}

/// Tags of clusters on a VPC that are not this one's.
fn others<'a>(vpc: &'a Vpc, identity: &'a Identity) -> impl Iterator<Item = &'a Tag> {
    let prefix = names::cluster_tag("").to_lowercase();
    vpc.tags.iter().filter(move |tag| tag.key.to_lowercase().starts_with(&prefix) && !identity.has(&tag.key))
}

/// Has a VPC that another cluster made know of this one, so that it outlives that cluster.
pub(super) fn claim(
    vpc: &Vpc,
    made: &Made,
    identity: &Identity,
    cluster: &CloudStackCluster,
) -> Option<NetworkCall> {
    let own = made.vpc.as_deref() == Some(vpc.id.as_str())
        || tag_of(vpc.displaytext.as_deref()).is_some_and(|tag| identity.has(tag));
    if own || identity.taken_over || !is_ours(vpc) || identity.is_on(&vpc.tags) {
        return None;
    }
    let mut tags = vec![names::cluster_tag(&cluster.metadata.uid)];
    // One that was made a moment ago gets its maker's tag too.
    tags.extend(
        tag_of(vpc.displaytext.as_deref()).filter(|tag| !is_tagged(&vpc.tags, tag)).map(str::to_owned),
    );
    Some(NetworkCall::TagVpc { vpc: vpc.id.to_string(), tags })
}

/// Gives back the addresses that a tier of ours has: they belong to the VPC and do not go with the tier.
pub(super) fn released(
    observed: &ObservedNetwork,
    made: &Made,
    identity: &Identity,
    status: &CloudStackIsolatedNetworkStatus,
) -> Vec<NetworkCall> {
    let ours = observed.addresses.iter().filter(|address| is_own_address(address, made, identity, status));
    ours.map(|address| NetworkCall::Release { address: address.id.to_string() }).collect()
}

/// What becomes of the VPC when the cluster's tier is gone, or stays with somebody else.
pub(super) fn given_up(
    look: &Look<IsolatedNetworks>,
    observed: &ObservedNetwork,
    made: &Made,
    cluster: &CloudStackCluster,
    tier_stays: bool,
) -> Vec<NetworkCall> {
    let Some(vpc) = &observed.vpc else { return Vec::new() };
    let identity = Identity::of(&look.object, cluster, None, &[], &[]);
    let id = vpc.id.to_string();
    let own = made.vpc.as_deref() == Some(&id)
        || tag_of(vpc.displaytext.as_deref()).is_some_and(|tag| identity.has(tag))
        || is_ours(vpc) && identity.is_on(&vpc.tags);
    let shared = look.seen.vpc_shared || others(vpc, &identity).next().is_some();
    if own && !tier_stays && vpc.network.is_empty() && !shared {
        return vec![NetworkCall::DeleteVpc { vpc: id }];
    }
    let tags = vpc.tags.iter().filter(|tag| identity.has(&tag.key));
    tags.map(|tag| NetworkCall::UntagVpc { vpc: id.clone(), tag: tag.key.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tier_gets_the_first_free_range_of_its_vpc() {
        let vpc = |cidr: &str, tiers: &[&str]| -> Vpc {
            let tiers: Vec<_> = tiers.iter().map(|cidr| json!({"id": cidr, "cidr": cidr})).collect();
            serde_json::from_value(json!({"id": "v", "name": "v", "cidr": cidr, "network": tiers}))
                .expect("a VPC")
        };
        let range = |vpc: &Vpc, gateway: &str, netmask: &str| {
            let spec = CloudStackIsolatedNetworkSpec {
                gateway: gateway.to_owned(),
                netmask: netmask.to_owned(),
                ..Default::default()
            };
            tier_range(vpc, &spec).map(|(gateway, netmask)| format!("{gateway} {netmask}")).map_err(|_| ())
        };
        let empty = vpc("10.1.0.0/16", &[]);
        assert_eq!(range(&empty, "", ""), Ok("10.1.0.1 255.255.255.0".to_owned()));
        assert_eq!(range(&empty, "10.1.9.1", "255.255.255.0"), Ok("10.1.9.1 255.255.255.0".to_owned()));
        assert_eq!(range(&empty, "10.1.9.1", ""), Err(()));
        let used = vpc("10.1.0.0/16", &["10.1.0.0/24", "10.1.1.0/25"]);
        assert_eq!(range(&used, "", ""), Ok("10.1.2.1 255.255.255.0".to_owned()));
        assert_eq!(range(&vpc("10.1.0.0/28", &[]), "", ""), Ok("10.1.0.1 255.255.255.240".to_owned()));
        assert_eq!(range(&vpc("10.1.0.0/24", &["10.1.0.128/25"]), "", ""), Err(()));
    }
}
