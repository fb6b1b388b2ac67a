//! Orders for what is on a network, such as addresses, rules and what lets packets in and out, and deletions, that
//! CloudStack refused. Each is repeated after a pause of its own, which outlives the process.

use std::collections::BTreeMap;

use capstan_capi_core::conditions::ConditionState;
use capstan_controller::{Call, Failure, Look};
use capstan_object::ConditionStatus::False;
use capstan_object::ObjectMeta;
use capstan_provider_kit::retry::{FailedTry, ORDERS};

use super::decide::{Decision, ask, failure_text, ready};
use super::{IsolatedNetworks, NetworkCall};
use crate::annotation::SETUP_REFUSED;

/// The last refusal of each order that is still to be sent, by its idempotency key.
type Refusals = BTreeMap<String, FailedTry>;

fn known(meta: &ObjectMeta) -> Refusals {
    let text = meta.annotations.get(SETUP_REFUSED);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn put(refusals: &Refusals, meta: &mut ObjectMeta) {
    match serde_json::to_string(refusals) {
        Ok(text) if !refusals.is_empty() => meta.annotations.insert(SETUP_REFUSED.to_owned(), text),
        _ => meta.annotations.remove(SETUP_REFUSED),
    };
}

/// Nothing is left to be ordered.
pub(super) fn forget(meta: &mut ObjectMeta) {
    put(&Refusals::default(), meta);
}

/// Asks for the calls that need no pause, and says what the others wait for.
pub(super) fn ask_paced(
    look: &Look<IsolatedNetworks>,
    decision: &mut Decision,
    reason: &str,
    calls: Vec<NetworkCall>,
) {
    let mut before = known(&look.object.metadata);
    let (mut refusals, mut paused, mut due) = (Refusals::new(), Vec::new(), Vec::new());
    for call in calls {
        let key = call.idempotency_key();
        let last = before.remove(&key).filter(|_| call.is_paced());
        let failure = look.failures.iter().find(|failure| call.is_paced() && is_of(failure, &call));
        match (last, failure) {
            (Some(last), _) if look.now < last.next(ORDERS) => {
                paused.push(last.pause(reason, look.now, decision));
                refusals.insert(key, last);
            }
            (last, Some(failure)) => {
                let last = FailedTry::after(last.as_ref(), look.now, &failure_text(failure));
                paused.push(last.pause(reason, look.now, decision));
                refusals.insert(key, last);
            }
            (last, None) => {
                refusals.extend(last.map(|last| (key, last)));
                due.push(call);
            }
        }
    }
    put(&refusals, &mut decision.object.metadata);
    ask(look, decision, reason, due);
    if !paused.is_empty() {
        ready(look, decision, ConditionState::new(False, reason, paused.join(", ")));
    }
}

/// An address that is chosen anew is the same order.
fn is_of(failure: &Failure<NetworkCall>, call: &NetworkCall) -> bool {
    let same = |failed: &NetworkCall| failed.makes() && failed.idempotency_key() == call.idempotency_key();
    failure.effect == call.summary() || failure.call.as_ref().is_some_and(same)
}
