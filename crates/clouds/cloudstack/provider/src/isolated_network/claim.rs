//! Whose a network and its addresses are. Clusters can share a network; each has an address and a rule of its own, and
//! what they share goes with the last of them. The record is in CloudStack: the tags that CAPC gave as well, and the text
//! of networks. Networks of the same management cluster are compared too, as tags come late.

use std::collections::BTreeSet;
use std::net::IpAddr;

use capstan_cloudstack_client::model::{Network, PublicIpAddress, Tag};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackCluster, CloudStackIsolatedNetwork, CloudStackIsolatedNetworkStatus,
};
use capstan_object::{ObjectMeta, Time};

use super::Made;
use super::mark::{is_tagged, tag_in_text};

/// Another CloudStackIsolatedNetwork that is about the same network in CloudStack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbour {
    /// Namespace and name of its object.
    pub name: String,
    /// Age of its object: whoever came first has what both ask for.
    pub since: (Option<Time>, String),
    /// Tags by which CloudStack knows its cluster.
    pub tags: BTreeSet<String>,
    /// Id of its address, once it has one.
    pub address: String,
    /// The address that it has or asks for.
    pub host: String,
    /// It is being deleted.
    pub deleting: bool,
}

impl Neighbour {
    pub(super) fn of(object: &CloudStackIsolatedNetwork, cluster: Option<&CloudStackCluster>) -> Self {
        let mut uids = Made::of(&object.metadata).clusters;
        uids.extend(cluster.map(|cluster| cluster.metadata.uid.clone()));
        Self {
            name: object.metadata.key().to_string(),
            since: age(&object.metadata),
            tags: uids.iter().map(|uid| key(&names::cluster_tag(uid))).collect(),
            address: object.status.public_ip_id.clone(),
            host: object.spec.control_plane_endpoint.host.clone(),
            deleting: object.metadata.is_deleting(),
        }
    }
}

fn age(meta: &ObjectMeta) -> (Option<Time>, String) {
    (meta.creation_timestamp, meta.uid.clone())
}

/// A tag's key as it is compared: CloudStack minds no case.
fn key(tag: &str) -> String {
    tag.to_lowercase()
}

/// The keys of tags that stand for clusters.
fn clusters(tags: &[Tag]) -> impl Iterator<Item = String> {
    let prefix = key(&names::cluster_tag(""));
    tags.iter().map(|tag| key(&tag.key)).filter(move |key| key.starts_with(&prefix))
}

/// Something has the tag of a cluster.
pub(crate) fn is_claimed(tags: &[Tag]) -> bool {
    clusters(tags).next().is_some()
}

/// Tags by which CloudStack knows a cluster. `clusterctl move` gives a cluster another uid, and its tags keep the old
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    tags: BTreeSet<String>,
    /// The uids that are behind them.
    pub uids: BTreeSet<String>,
    /// The object was not made by this release: it comes from CAPC, an earlier release or another management cluster,
    /// with everything there.
    pub taken_over: bool,
}

impl Identity {
    pub(super) fn of(
        object: &CloudStackIsolatedNetwork,
        cluster: &CloudStackCluster,
        network: Option<&Network>,
        addresses: &[PublicIpAddress],
        neighbours: &[Neighbour],
    ) -> Self {
        let made = Made::of(&object.metadata);
        let taken_over = made.taken_over
            || made.clusters.is_empty()
                && !object.spec.id.is_empty()
                && !object.spec.control_plane_endpoint.host.is_empty();
        let mut uids = made.clusters.clone();
        uids.insert(cluster.metadata.uid.clone());
        let mut known = Self { tags: BTreeSet::new(), uids, taken_over };
        known.tags = known.uids.iter().map(|uid| key(&names::cluster_tag(uid))).collect();
        // Who wrote the object did not record under which uid, so what it records in the cloud decides.
        if made.clusters.is_empty() {
            let host = object.spec.control_plane_endpoint.host.parse::<IpAddr>().ok();
            let endpoint = addresses.iter().find(|address| host == Some(address.ipaddress));
            let text = network.filter(|network| made.network.as_deref() == Some(network.id.as_str()));
            known.adopt(text.and_then(tag_in_text).map(key).into_iter(), neighbours);
            if taken_over {
                known.adopt(clusters(endpoint.map_or(&[], |address| &address.tags)), neighbours);
                known.adopt(clusters(network.map_or(&[], |network| &network.tags)), neighbours);
            }
        }
        known
    }

    /// Takes a former tag over if it is the only one, nobody else's, and none of our own is there.
    fn adopt(&mut self, found: impl Iterator<Item = String>, neighbours: &[Neighbour]) {
        let found: BTreeSet<String> = found.collect();
        if found.len() != 1 || found.iter().any(|tag| self.tags.contains(tag)) {
            return;
        }
        let prefix = key(&names::cluster_tag(""));
        for tag in found {
            if neighbours.iter().any(|other| other.tags.contains(&tag)) {
                continue;
            }
            self.uids.extend(tag.strip_prefix(&prefix).map(str::to_owned));
            self.tags.insert(tag);
        }
    }

    /// A tag is one of ours.
    pub(super) fn has(&self, tag: &str) -> bool {
        self.tags.contains(&key(tag))
    }

    /// One of our tags is among these.
    pub(super) fn is_on(&self, tags: &[Tag]) -> bool {
        tags.iter().any(|tag| self.has(&tag.key))
    }
}

/// The cluster that a network's text names and that still uses it: until there are tags the text is the record, and
/// later it is history if that cluster's tag is gone.
fn maker(network: &Network) -> Option<&str> {
    tag_in_text(network)
        .filter(|tag| !is_tagged(&network.tags, names::CREATED_TAG) || is_tagged(&network.tags, tag))
}

/// The address was taken for this cluster, and goes with it.
pub(super) fn is_own_address(
    address: &PublicIpAddress,
    made: &Made,
    identity: &Identity,
    status: &CloudStackIsolatedNetworkStatus,
) -> bool {
    let id = address.id.as_str();
    let created = is_tagged(&address.tags, names::CREATED_TAG);
    // CAPC never tags an address with its cluster.
    let came_along = || identity.taken_over && status.public_ip_id == id && !is_claimed(&address.tags);
    let mine = || identity.is_on(&address.tags) || came_along();
    !address.issourcenat && (made.address.as_deref() == Some(id) || created && mine())
}

/// The network was made for this cluster, or is left to it alone.
pub(super) fn owns(network: &Network, made: &Made, identity: &Identity) -> bool {
    let alone = is_tagged(&network.tags, names::CREATED_TAG)
        && identity.is_on(&network.tags)
        && clusters(&network.tags).all(|tag| identity.has(&tag));
    made.network.as_deref() == Some(network.id.as_str())
        || tag_in_text(network).is_some_and(|tag| identity.has(tag))
        || alone
}

/// Rules of the name that ours have are ours: everything on the network was taken over, or the record in CloudStack says so.
pub(super) fn is_known(
    network: &Network,
    address: &PublicIpAddress,
    made: &Made,
    identity: &Identity,
) -> bool {
    identity.taken_over
        || identity.is_on(&address.tags)
        || address.issourcenat && owns(network, made, identity)
}

/// Another cluster uses the network.
pub(super) fn is_shared(network: &Network, identity: &Identity, neighbours: &[Neighbour]) -> bool {
    clusters(&network.tags).any(|tag| !identity.has(&tag))
        || maker(network).is_some_and(|tag| !identity.has(tag))
        || neighbours.iter().any(|other| !other.deleting)
}

/// Objects about the same network that belong to the same cluster and stay: what they use in the cloud carries our tags.
pub(super) fn staying<'a>(
    neighbours: &'a [Neighbour],
    identity: &'a Identity,
) -> impl Iterator<Item = &'a Neighbour> {
    neighbours.iter().filter(|other| !other.deleting && other.tags.iter().any(|tag| identity.has(tag)))
}

/// Who else has an address, if somebody has.
pub(super) fn holder(
    address: &PublicIpAddress,
    network: &Network,
    object: &CloudStackIsolatedNetwork,
    identity: &Identity,
    neighbours: &[Neighbour],
) -> Option<String> {
    if identity.is_on(&address.tags) || object.status.public_ip_id == address.id.as_str() {
        return None;
    }
    let host = address.ipaddress.to_string();
    let own = age(&object.metadata);
    let asks = |other: &&Neighbour| {
        other.address == address.id.as_str()
            || other.address.is_empty() && other.host == host && other.since < own
    };
    if let Some(other) = neighbours.iter().find(asks) {
        return Some(format!("CloudStackIsolatedNetwork {}", other.name));
    }
    if let Some(tag) = clusters(&address.tags).next() {
        return Some(format!("the cluster of tag {tag}"));
    }
    let maker = maker(network).filter(|tag| address.issourcenat && !identity.has(tag));
    maker.map(|tag| format!("the cluster of tag {tag}, which made the network"))
}
