//! The marks that networks made here carry: in their text from their first moment on, as tags a while later.
//!
//! The kit's `mark` says whose a thing is; this says more and is read by more. The text names the cluster for people and
//! keeps the form that networks already have, and the tags are CAPC's: a key for each cluster on a network, as several may
//! share it.

use capstan_cloudstack_client::model::{Network, Tag};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;

/// How every mark begins.
const BEGIN: &str = "Kubernetes cluster ";

/// What a network's text says if it was made for a cluster: for people, and the mark that it is ours.
pub(super) fn mark(cluster: &CloudStackCluster) -> String {
    let meta = &cluster.metadata;
    format!("{BEGIN}{}/{} ({})", meta.namespace, meta.name, names::cluster_tag(&meta.uid))
}

/// The tag of the cluster that a network's text names.
pub(super) fn tag_in_text(network: &Network) -> Option<&str> {
    tag_of(network.displaytext.as_deref())
}

/// The tag of the cluster that a display text names.
pub(super) fn tag_of(text: Option<&str>) -> Option<&str> {
    let text = text?.strip_prefix(BEGIN)?;
    let (_, tag) = text.strip_suffix(')')?.rsplit_once(" (")?;
    tag.starts_with(&names::cluster_tag("")).then_some(tag)
}

/// The network was made here or by CAPC, for whatever cluster.
pub(crate) fn is_ours(network: &Network) -> bool {
    tag_in_text(network).is_some() || is_tagged(&network.tags, names::CREATED_TAG)
}

/// A tag is among these. CloudStack minds no case.
pub(crate) fn is_tagged(tags: &[Tag], key: &str) -> bool {
    tags.iter().any(|tag| tag.key.eq_ignore_ascii_case(key))
}

/// The tags of a network that was made for a cluster.
pub(super) fn tags(cluster: &CloudStackCluster) -> Vec<String> {
    vec![names::CREATED_TAG.to_owned(), names::cluster_tag(&cluster.metadata.uid)]
}

/// The tag of a network whose egress rule was made here: whoever of its clusters goes last deletes the rule.
pub(super) fn egress_tag(rule: &str) -> String {
    format!("capstan_egress_{rule}")
}

/// The tags that a network of another cluster lacks before this one may use it. One that was made a moment ago gets the
/// other's too: without it this cluster, if it went first, would take the network along.
pub(super) fn missing(network: &Network, cluster: &CloudStackCluster) -> Vec<String> {
    let fresh = !is_tagged(&network.tags, names::CREATED_TAG);
    let mut wanted = tags(cluster);
    if let Some(other) = tag_in_text(network).filter(|other| fresh && !wanted.iter().any(|tag| tag == other))
    {
        wanted.push(other.to_owned());
    }
    wanted.into_iter().filter(|key| !is_tagged(&network.tags, key)).collect()
}
