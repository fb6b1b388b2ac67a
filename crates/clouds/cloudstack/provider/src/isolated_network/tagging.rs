//! Tags of a network that was made here: for CAPC, and for whoever looks for what was left behind. They come late.

use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::core::{condition, reason};
use capstan_cloudstack_client::model::Network;
use capstan_cloudstack_types::v1beta3::CloudStackCluster;
use capstan_controller::{Concluded, Effect, Look};
use capstan_object::ConditionStatus::True;
use capstan_object::{Condition, Conditions};
use jiff::SignedDuration;

use super::decide::{Decision, ready};
use super::mark::{is_tagged, tags};
use super::{IsolatedNetworks, Made, NetworkCall};

/// Tags come so long after the network is ready: machines wait for the network, and nobody for its tags.
const AFTER: SignedDuration = SignedDuration::from_mins(10);

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
    // Nothing depends on the tags: the text of the network has said from its first moment on whose it is, and whoever else
    // comes to the network writes the tags that it lacks.
    decision.best_effort(Effect::Call(call));
}
