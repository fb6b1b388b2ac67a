//! The marks that networks made here carry: in their text from their first moment on, as tags a while later.
//!
//! The kit's `mark` says whose a thing is; this says more and is read by more. The text names the cluster for people and
//! keeps the form that networks already have, and the tags are CAPC's: a key for each cluster on a network, as several may
//! share it.

use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_client::model::{Network, Tag};
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Concluded, Look};
use capstan_object::ConditionStatus::True;
use capstan_object::{Condition, Conditions};
use jiff::SignedDuration;

use super::decide::{Decision, ready};
use super::{IsolatedNetworks, Made, NetworkCall};

/// How every mark begins.
const BEGIN: &str = "Kubernetes cluster ";

/// Tags come so long after the network is ready: machines wait for the network, and nobody for its tags.
const AFTER: SignedDuration = SignedDuration::from_mins(10);

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

/// Has a network that was made here and is ready get its tags when their time has come. `network` is what the cloud
/// has, if it was asked: without it the network has none of its tags yet, as CloudStack refuses all if one is there.
pub(super) fn keep(
    look: &Look<IsolatedNetworks>,
    network: Option<&Network>,
    cluster: &CloudStackCluster,
    decision: &mut Decision,
) {
    let mut made = Made::of(&decision.object.metadata);
    let untagged = |_: &String| !made.tagged && !made.taken_over;
    let Some(id) = made.network.clone().filter(untagged) else { return };
    let mut lacking = tags(cluster);
    lacking.retain(|key| network.is_none_or(|network| !is_tagged(&network.tags, key)));
    let put = |known: &Concluded<NetworkCall>| {
        let of_network = |call: &NetworkCall| matches!(call, NetworkCall::Tag { id: of, .. } if *of == id);
        of_network(&known.call) && known.result.is_some()
    };
    if lacking.is_empty() || look.concluded.iter().any(put) {
        if made.tag_failed {
            ready(look, decision, ConditionState::new(True, reason::PROVISIONED, ""));
        }
        made.tagged = true;
        made.tag_failed = false;
        return made.put(&mut decision.object.metadata);
    }
    let since = look.object.status.conditions.condition(condition::READY).filter(|it| it.is_true());
    let since = since.map_or(look.now, |ready: &Condition| ready.last_transition_time.timestamp());
    let left = AFTER.saturating_sub(look.now.duration_since(since));
    if left.is_positive() {
        decision.again_in(Duration::try_from(left).unwrap_or_default());
        return;
    }
    let call = NetworkCall::Tag { id, address: false, tags: lacking };
    if let Some(failure) = look.failure_of(&call) {
        made.tag_failed = true;
        made.put(&mut decision.object.metadata);
        let message = format!("its tags are still missing: {}", failure.error);
        ready(look, decision, ConditionState::new(True, reason::PROVISIONED, message));
    }
    decision.call(call);
}
