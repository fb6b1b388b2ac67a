//! The update of a machine in place, after its owner gave it and its objects their new spec.
//!
//! ```text
//! marked, and the hook is pending ── UpdateMachine, until it is done ──▶ the marks go: those of the objects, then the hook
//! ```

use capstan_capi_types::core::machine::reason;
use capstan_capi_types::core::{Machine, annotation};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::PendingHooks;
use capstan_controller::{Decision, Effect, Look, ObserveError, View, Wait};
use capstan_object::{ConditionStatus, Object, to_value};
use serde_json::{Value, json};

use super::observed::{Observed, Update};
use super::{MachineController, paused};
use crate::conditions::ConditionState;
use crate::contract::{External, Lookup};
use crate::in_place::{AskError, Progress, Updater, is_marked, is_pending, is_updating, sent};

/// What the server is asked now, if it is its turn.
#[derive(Debug, PartialEq)]
pub(super) enum Due {
    No,
    Impossible,
    Question(Value),
}

pub(super) fn due(machine: &Machine, seen: &Observed) -> Due {
    let ran = &machine.status.initialization;
    let is_ready = is_marked(&machine.metadata)
        && is_pending(machine)
        && !machine.metadata.is_deleting()
        && paused::why(seen.cluster.as_deref(), &machine.metadata, Machine::KIND.kind).is_none()
        && ran.infrastructure_provisioned == Some(true)
        && ran.bootstrap_data_secret_created == Some(true)
        && !machine.status.node_ref.name.is_empty();
    if !is_ready {
        return Due::No;
    }
    let infrastructure = match &seen.infrastructure {
        Lookup::Object(infrastructure) => infrastructure,
        Lookup::Unusable(_) => return Due::No,
        Lookup::Missing | Lookup::NotReferenced => return Due::Impossible,
    };
    let bootstrap = match &seen.bootstrap {
        Lookup::Object(bootstrap) => Some(bootstrap),
        Lookup::Unusable(_) => return Due::No,
        Lookup::Missing | Lookup::NotReferenced => None,
    };
    let objects = std::iter::once(infrastructure).chain(bootstrap);
    if objects.into_iter().any(|object| !is_marked(&object.metadata)) {
        return Due::No;
    }
    let mut desired = json!({
        // Plain data always serializes.
        "machine": sent(&to_value(machine).unwrap_or_default()),
        "infrastructureMachine": sent(&infrastructure.typed_value()),
    });
    if let Some(bootstrap) = bootstrap {
        desired["bootstrapConfig"] = sent(&bootstrap.typed_value());
    }
    Due::Question(json!({"desired": desired}))
}

/// Asks the server how far the update is.
pub(super) async fn ask(
    machine: &Machine,
    seen: &Observed,
    updater: &dyn Updater,
    view: &View,
) -> Result<Update, ObserveError> {
    let request = match due(machine, seen) {
        Due::No => return Ok(Update::NotDue),
        Due::Impossible => return Ok(Update::Impossible),
        Due::Question(request) => request,
    };
    match updater.update(view, &machine.metadata, &request).await {
        Ok(progress) => Ok(Update::Asked(progress)),
        Err(AskError::Failed(failure)) => Ok(Update::Failed(failure)),
        Err(AskError::Observe(error)) => Err(error),
    }
}

/// Waits for the server, and removes what marks the update once it is done. The pending hook goes last: until then a
/// restart continues here, and nobody starts another update.
pub(super) fn proceed(look: &Look<MachineController>, decision: &mut Decision<MachineController>) {
    let machine = &look.object;
    match &look.seen.update {
        Update::NotDue => {}
        Update::Asked(Progress::Going { again, message }) => {
            let what = if message.is_empty() { "the in-place update" } else { message.as_str() };
            decision.wait(Wait::on(reason::IN_PLACE_UPDATING, what)).again_in(*again);
        }
        Update::Failed(failure) => {
            let wait = Wait::on(reason::IN_PLACE_UPDATE_FAILED, failure.why.clone());
            decision.wait(wait).again_in(failure.again);
        }
        Update::Impossible => {
            decision.wait(Wait::on(reason::IN_PLACE_UPDATE_FAILED, "the infrastructure machine to exist"));
        }
        Update::Asked(Progress::Done) => {
            decision.object.metadata.annotations.remove(annotation::UPDATE_IN_PROGRESS);
        }
    }
    // Also if somebody else removed the mark: the update was called off.
    if is_marked(&decision.object.metadata) || !is_pending(machine) {
        return;
    }
    let objects = [&look.seen.infrastructure, &look.seen.bootstrap];
    let marked: Vec<&External> =
        objects.into_iter().filter_map(Lookup::object).filter(|object| is_marked(&object.metadata)).collect();
    for object in &marked {
        let change = json!({"metadata": {"annotations": {annotation::UPDATE_IN_PROGRESS: Value::Null}}});
        decision.then(Effect::merge_guarded(object.reference(), &object.metadata, change));
    }
    if marked.is_empty() {
        let annotations = &mut decision.object.metadata.annotations;
        let mut pending = PendingHooks::of(annotations);
        pending.remove(Hook::UpdateMachine);
        pending.write(annotations);
    }
}

/// `Updating`.
pub(super) fn condition(machine: &Machine, update: &Update) -> ConditionState {
    if !is_updating(machine) {
        return ConditionState::new(ConditionStatus::False, reason::NOT_UPDATING, "");
    }
    let (reason, message) = match update {
        Update::Failed(failure) => {
            (reason::IN_PLACE_UPDATE_FAILED, format!("UpdateMachine hook failed: {}", failure.why))
        }
        Update::Impossible => (
            reason::IN_PLACE_UPDATE_FAILED,
            "In-place update not possible: InfraMachine not found".to_owned(),
        ),
        Update::Asked(Progress::Going { message, .. }) if !message.is_empty() => {
            (reason::IN_PLACE_UPDATING, format!("In-place update in progress: {message}"))
        }
        Update::NotDue | Update::Asked(_) => {
            (reason::IN_PLACE_UPDATING, "In-place update in progress".to_owned())
        }
    };
    ConditionState::new(ConditionStatus::True, reason, message)
}
