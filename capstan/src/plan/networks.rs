//! Ranges of addresses of clusters that overlap: of Pods, of Services, and of machines.

use std::net::IpAddr;

use capstan_provider_kit::MachineNetwork;
use serde_json::Value;

/// Warnings about the networks of a Cluster.
pub fn overlaps(cluster: &Value, machines: &[MachineNetwork]) -> Vec<String> {
    let network = &cluster["spec"]["clusterNetwork"];
    let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
    let mut ranges: Vec<(&str, &str)> = Vec::new();
    for kind in ["pods", "services"] {
        let blocks = network[kind]["cidrBlocks"].as_array().into_iter().flatten();
        ranges.extend(blocks.filter_map(Value::as_str).map(|block| (kind, block)));
    }
    let mut warnings = Vec::new();
    for (n, (kind, block)) in ranges.iter().enumerate() {
        for (other_kind, other) in &ranges[n + 1..] {
            if overlap(block, other) == Some(true) {
                warnings.push(format!(
                    "cluster {name}: {block} of its {kind} overlaps {other} of its {other_kind}: choose another range in \
                     spec.clusterNetwork"
                ));
            }
        }
        for MachineNetwork { cidr, field } in machines {
            if overlap(block, cidr) == Some(true) {
                warnings.push(format!(
                    "cluster {name}: {block} of its {kind} overlaps {cidr} of its machines: choose another range in \
                     spec.clusterNetwork, or in {field} of its infrastructure"
                ));
            }
        }
    }
    warnings
}

/// Whether two CIDR blocks share an address; `None` if one is not a block.
fn overlap(one: &str, other: &str) -> Option<bool> {
    let ((one, first), (other, second)) = (parsed(one)?, parsed(other)?);
    let shared = first.min(second);
    Some(match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let mask = u32::MAX.checked_shl(32u32.checked_sub(shared)?).unwrap_or(0);
            (one.to_bits() ^ other.to_bits()) & mask == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let mask = u128::MAX.checked_shl(128u32.checked_sub(shared)?).unwrap_or(0);
            (one.to_bits() ^ other.to_bits()) & mask == 0
        }
        _ => false,
    })
}

fn parsed(block: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = block.split_once('/')?;
    Some((address.parse().ok()?, length.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ranges_that_share_an_address_overlap() {
        for (one, other, expected) in [
            ("10.244.0.0/16", "10.96.0.0/12", Some(false)),
            ("10.96.0.0/12", "10.100.0.0/16", Some(true)),
            ("10.100.0.0/16", "10.96.0.0/12", Some(true)),
            ("0.0.0.0/0", "10.96.0.0/12", Some(true)),
            ("10.0.0.1/32", "10.0.0.2/32", Some(false)),
            ("fd00::/48", "fd00:0:0:1::/64", Some(true)),
            ("fd00::/48", "10.0.0.0/8", Some(false)),
            ("10.0.0.0", "10.0.0.0/8", None),
            ("10.0.0.0/33", "10.0.0.0/40", None),
        ] {
            assert_eq!(overlap(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn overlapping_networks_of_a_cluster_are_a_warning() {
        let cluster = |pods: &str| {
            json!({"metadata": {"name": "c"}, "spec": {"clusterNetwork": {
                "pods": {"cidrBlocks": [pods]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}}}})
        };
        assert_eq!(overlaps(&cluster("10.244.0.0/16"), &[]), [""; 0]);
        assert_eq!(
            overlaps(&cluster("10.100.0.0/16"), &[]),
            [
                "cluster c: 10.100.0.0/16 of its pods overlaps 10.96.0.0/12 of its services: choose another range in \
              spec.clusterNetwork"
            ]
        );
    }
    #[test]
    fn pods_in_the_network_of_the_machines_are_a_warning() {
        let cluster = json!({"metadata": {"name": "c"}, "spec": {"clusterNetwork": {
            "pods": {"cidrBlocks": ["10.244.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}}}});
        let network =
            |cidr: &str| [MachineNetwork { cidr: cidr.to_owned(), field: "spec.network.cidr".to_owned() }];
        assert_eq!(overlaps(&cluster, &network("10.89.0.0/24")), [""; 0]);
        assert_eq!(
            overlaps(&cluster, &network("10.244.7.0/24")),
            [
                "cluster c: 10.244.0.0/16 of its pods overlaps 10.244.7.0/24 of its machines: choose another range in \
              spec.clusterNetwork, or in spec.network.cidr of its infrastructure"
            ]
        );
    }
}
