//! The IPv6 subnet of a managed network: CAPO's kind has room for one subnet, so an annotation asks for the second.

use std::net::Ipv6Addr;

use capstan_object::ObjectMeta;
use capstan_openstack_client::network::{Network, Subnet};

use super::call::ClusterCall;
use super::plan::{self, Plan};

/// On OpenStackClusters with managed subnets: the range of an IPv6 subnet beside the IPv4 one.
pub const IPV6_SUBNET: &str = "capstan.dev/openstack-ipv6-subnet";

/// Addresses are made from MAC addresses, which takes the lower half.
const PREFIX: u32 = 64;

/// The range of the annotation in Neutron's spelling, or what is wrong with it.
pub(super) fn wanted(meta: &ObjectMeta) -> Result<Option<String>, String> {
    let Some(text) = meta.annotations.get(IPV6_SUBNET) else { return Ok(None) };
    let wrong = || {
        format!(
            "annotation {IPV6_SUBNET} is {text:?}: use an IPv6 range of {PREFIX} bits, such as fd00:10:6::/64"
        )
    };
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: Ipv6Addr = address.parse().map_err(|_| wrong())?;
    if length.parse() != Ok(PREFIX) || address.is_multicast() || address.is_unspecified() {
        return Err(wrong());
    }
    let network = Ipv6Addr::from(u128::from(address) >> PREFIX << PREFIX);
    Ok(Some(format!("{network}/{PREFIX}")))
}

/// The cluster has an IPv6 subnet beside the IPv4 one.
pub(super) fn is_dual(plan: &Plan<'_>) -> bool {
    let spec = &plan.object().spec;
    plan::is_managed(spec) && matches!(wanted(&plan.object().metadata), Ok(Some(_)))
}

/// A wanted IPv6 subnet.
pub(super) enum Second<'a> {
    Held(&'a Subnet),
    /// The call that makes it.
    Missing(Box<ClusterCall>),
}

/// The IPv6 subnet, if one is wanted.
pub(super) fn subnet<'a>(
    plan: &Plan<'a>,
    network: &Network,
    name: &str,
) -> Result<Option<Second<'a>>, String> {
    let Some(cidr) = wanted(&plan.object().metadata)? else { return Ok(None) };
    if let Some(held) = plan.state.subnets.iter().find(|subnet| subnet.cidr == cidr) {
        return Ok(Some(Second::Held(held)));
    }
    Ok(Some(Second::Missing(Box::new(ClusterCall::CreateSubnet {
        name: format!("{name}-ipv6"),
        description: plan.description(""),
        network: network.id.to_string(),
        cidr,
        name_servers: Vec::new(),
        pools: Vec::new(),
        slaac: true,
    }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_is_a_range_of_64_bits_in_neutrons_spelling() {
        let read = |text: &str| {
            let mut meta = ObjectMeta::named("ns", "c");
            meta.annotations.insert(IPV6_SUBNET.to_owned(), text.to_owned());
            wanted(&meta)
        };
        assert_eq!(read("fd00:0010:6::5/64"), Ok(Some("fd00:10:6::/64".to_owned())));
        assert_eq!(wanted(&ObjectMeta::named("ns", "c")), Ok(None));
        for wrong in ["", "fd00::", "fd00::/48", "10.6.0.0/24", "ff00::/64", "::/64"] {
            assert!(read(wrong).is_err_and(|why| why.contains(IPV6_SUBNET)), "{wrong}");
        }
    }
}
