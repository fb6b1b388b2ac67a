//! The Pod CIDR of each Node, if kubeadm has a Pod network.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::json;

use super::decision::Decision;
use super::snapshot::Snapshot;

/// Addresses per Node: a /24.
const PER_NODE: u32 = 256;

pub(super) fn decide(snapshot: &Snapshot, out: &mut Decision) {
    let Some((first, count)) = snapshot
        .machines
        .iter()
        .find_map(|machine| network(machine.control_plane.as_ref()?["networking"]["podSubnet"].as_str()?))
    else {
        return;
    };
    let mut taken: BTreeSet<String> =
        snapshot.all("Node").filter_map(|node| node["spec"]["podCIDR"].as_str()).map(str::to_owned).collect();
    for node in snapshot.all("Node").filter(|node| node["spec"]["podCIDR"].is_null()) {
        let mut free = (0..count / PER_NODE).map(|n| format!("{}/24", Ipv4Addr::from(first + n * PER_NODE)));
        let Some(own) = free.find(|network| !taken.contains(network)) else { return };
        out.patch(
            "kube-controller-manager",
            "Node",
            node,
            json!({"spec": {"podCIDR": own, "podCIDRs": [own]}}),
        );
        taken.insert(own);
    }
}

/// First address and size of a network; of several, the first IPv4 one.
fn network(text: &str) -> Option<(u32, u32)> {
    text.split(',').find_map(|one| {
        let (address, bits) = one.trim().split_once('/')?;
        let (address, bits): (Ipv4Addr, u32) = (address.parse().ok()?, bits.parse().ok()?);
        (1..=24).contains(&bits).then(|| (u32::from(address), 1 << (32 - bits)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed_as_kubeadm_does() {
        let private = u32::from(Ipv4Addr::new(192, 168, 0, 0));
        for (text, expected) in [
            ("192.168.0.0/16", Some((private, 65_536))),
            ("fd00::/56, 192.168.0.0/16", Some((private, 65_536))),
            ("192.168.0.0/25", None),
            ("", None),
        ] {
            assert_eq!(network(text), expected, "{text}");
        }
    }
}
