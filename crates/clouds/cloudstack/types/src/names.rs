//! What the provider's things are called. Live clusters depend on it: an object or a group in CloudStack is found by the
//! name that CAPC gave it.

use md5::{Digest, Md5};

/// Finalizers of the provider's kinds.
pub mod finalizer {
    /// On CloudStackClusters.
    pub const CLUSTER: &str = "cloudstackcluster.infrastructure.cluster.x-k8s.io";
    /// On CloudStackMachines.
    pub const MACHINE: &str = "cloudstackmachine.infrastructure.cluster.x-k8s.io";
    /// On CloudStackFailureDomains.
    pub const FAILURE_DOMAIN: &str = "cloudstackfailuredomain.infrastructure.cluster.x-k8s.io";
    /// On CloudStackIsolatedNetworks.
    pub const ISOLATED_NETWORK: &str = "cloudstackisolatednetwork.infrastructure.cluster.x-k8s.io";
    /// On CloudStackClusters that CAPC showed in CloudStack's own list of clusters.
    pub const CKS_CLUSTER: &str = "ckscluster.infrastructure.cluster.x-k8s.io";
    /// On their CloudStackMachines.
    pub const CKS_MACHINE: &str = "cksMachine.infrastructure.cluster.x-k8s.io";
    /// On CloudStackAffinityGroups.
    pub const AFFINITY_GROUP: &str = "affinitygroup.infrastructure.cluster.x-k8s.io";
}

/// Label of a machine: name of its CloudStackFailureDomain.
pub const FAILURE_DOMAIN_LABEL: &str = "cloudstackfailuredomain.infrastructure.cluster.x-k8s.io/name";

/// Tag of resources that the provider created and may delete.
pub const CREATED_TAG: &str = "created_by_CAPC";

/// Tag of resources that a cluster uses.
pub fn cluster_tag(cluster_uid: &str) -> String {
    format!("CAPC_cluster_{cluster_uid}")
}

/// The entry of a cluster in CloudStack's own list, up to the uid of its CloudStackCluster.
pub fn cks_prefix(cluster: &str, infrastructure: &str) -> String {
    format!("{cluster} - {infrastructure} - ")
}

/// The entry of a cluster in CloudStack's own list.
pub fn cks_cluster(cluster: &str, infrastructure: &str, uid: &str) -> String {
    format!("{}{uid}", cks_prefix(cluster, infrastructure))
}

/// Provider id of a machine and its Node.
pub fn provider_id(machine: &str) -> String {
    format!("cloudstack:///{machine}")
}

/// The object of a cluster's failure domain.
pub fn failure_domain_object(failure_domain: &str, cluster: &str) -> String {
    let mut hash = Md5::new();
    hash.update(failure_domain);
    hash.update(cluster);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The object of a cluster's isolated network.
pub fn isolated_network_object(cluster: &str, network: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut name = String::new();
    let mut replaced = false;
    for c in format!("{cluster}-{}", network.to_lowercase()).chars() {
        if plain(c) {
            name.push(c);
        } else if !replaced {
            name.push('-');
        }
        replaced = !plain(c);
    }
    // One at most, as CAPC does it.
    name.strip_suffix('-').unwrap_or(&name).to_owned()
}

/// The object of the isolated network of a failure domain, where another zone's network of the same name has the name that
/// CAPC gives.
pub fn isolated_network_object_of(cluster: &str, network: &str, failure_domain: &str) -> String {
    isolated_network_object(cluster, &format!("{network}-{failure_domain}"))
}

/// Owner of the machines of an affinity group.
#[derive(Debug, Clone, Copy)]
pub struct GroupOwner<'a> {
    /// Kind of the machines' owner.
    pub kind: &'a str,
    /// Name of the owner.
    pub name: &'a str,
    /// Uid of the owner.
    pub uid: &'a str,
}

/// An affinity group in CloudStack; its object is called the same in lower case. `affinity` is `pro` or `anti`.
pub fn affinity_group(
    cluster: &str,
    cluster_uid: &str,
    affinity: &str,
    owner: GroupOwner<'_>,
    failure_domain: &str,
) -> String {
    let affinity = title(affinity);
    // There is only one of each in a cluster.
    let owner = match owner.kind {
        "KubeadmControlPlane" | "EtcdadmCluster" => owner.kind.to_owned(),
        _ => format!("{}-{}", owner.name, owner.uid),
    };
    format!("{cluster}-{cluster_uid}-{affinity}Affinity-{owner}-{failure_domain}")
}

/// A name that [`affinity_group`] gives: beside the kind of affinity stands the uid of a cluster.
pub fn is_affinity_group(name: &str) -> bool {
    let uid = |text: &str| {
        let parts: Vec<usize> = text.split('-').map(str::len).collect();
        let hex = text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        hex && parts == [8, 4, 4, 4, 12]
    };
    let ends_with_uid = |before: &str| {
        let start = before.len().checked_sub(36);
        start
            .and_then(|start| before.split_at_checked(start))
            .is_some_and(|(cluster, tail)| cluster.len() > 1 && cluster.ends_with('-') && uid(tail))
    };
    ["-ProAffinity-", "-AntiAffinity-"]
        .into_iter()
        .filter_map(|kind| name.split_once(kind))
        .any(|(before, after)| !after.is_empty() && ends_with_uid(before))
}

fn title(word: &str) -> String {
    let word = word.to_lowercase();
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_called_as_capc_called_them() {
        // echo -n fd1cluster1 | md5sum
        assert_eq!(failure_domain_object("fd1", "cluster1"), "4eee292b95f4c04c9e4b42f63f472878");
        for (network, object) in [
            ("Net 1", "c-net-1"),
            ("a__b..C", "c-a-b-c"),
            ("trailing!", "c-trailing"),
            ("keeps--its-own", "c-keeps--its-own"),
            ("ends-!", "c-ends-"),
        ] {
            assert_eq!(isolated_network_object("c", network), object);
        }
        let control_plane = GroupOwner { kind: "KubeadmControlPlane", name: "n", uid: "u" };
        let set = GroupOwner { kind: "MachineSet", name: "md-0-abc", uid: "u2" };
        assert_eq!(
            affinity_group("c", "u1", "pro", control_plane, "fd"),
            "c-u1-ProAffinity-KubeadmControlPlane-fd"
        );
        let uid = "128d3c0b-f837-42c7-94d5-9075f6539948";
        assert!(is_affinity_group(&affinity_group("c", uid, "pro", control_plane, "fd")));
        assert!(is_affinity_group(&affinity_group("a-b", uid, "anti", set, "fd")));
        for other in ["mine", "web-AntiAffinity-db", "c-u1-ProAffinity-x", "-AntiAffinity-"] {
            assert!(!is_affinity_group(other), "{other}");
        }
        assert_eq!(affinity_group("c", "u1", "ANTI", set, "fd"), "c-u1-AntiAffinity-md-0-abc-u2-fd");
        assert_eq!(cluster_tag("u"), "CAPC_cluster_u");
        assert_eq!(provider_id("v"), "cloudstack:///v");
    }
}
