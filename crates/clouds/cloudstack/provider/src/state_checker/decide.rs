//! What is done about a CloudStackMachineStateChecker.

use std::time::Duration;

use capstan_capi_types::core::{Machine, MachinePhase};
use capstan_cloudstack_types::v1beta3::CloudStackMachine;
use capstan_controller::{Effect, Look, Note};
use jiff::{SignedDuration, Timestamp};

use super::StateCheckers;

type Decision = capstan_controller::Decision<StateCheckers>;

/// A machine that runs so long without its Node is replaced; CAPC's limit.
const WITHOUT_NODE: SignedDuration = SignedDuration::from_mins(5);

/// Health of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// It runs and its Node has joined.
    Good,
    /// It may become good until then.
    Pending(Option<Timestamp>),
    /// It stopped, or its Node did not come.
    Bad,
}

/// Nothing is known of a machine whose state nobody recorded, as after a move.
fn health(machine: &CloudStackMachine, owner: &Machine, now: Timestamp) -> Health {
    let status = &machine.status;
    match status.instance_state.as_str() {
        "Running" if owner.status.phase == Some(MachinePhase::Running) => Health::Good,
        "Running" => {
            let since = status.instance_state_last_updated.map(|time| time.timestamp());
            let limit = since.and_then(|since| since.saturating_add(WITHOUT_NODE).ok());
            if limit.is_some_and(|limit| limit < now) { Health::Bad } else { Health::Pending(limit) }
        }
        "Stopped" | "Shutdown" | "Error" | "Destroyed" | "Expunging" => Health::Bad,
        _ => Health::Pending(None),
    }
}

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<StateCheckers>) -> Decision {
    let mut decision = Decision::rest(look);
    let (Some(machine), Some(owner)) = (&look.seen.machine, &look.seen.owner) else { return decision };
    let going = machine.metadata.is_deleting() || owner.metadata.is_deleting();
    if look.paused.is_some() || look.object.metadata.is_deleting() || going {
        return decision;
    }
    let health = health(machine, owner, look.now);
    decision.object.status.ready = health == Health::Good;
    match health {
        Health::Good | Health::Pending(None) => {}
        Health::Pending(Some(limit)) => {
            let left = limit.duration_since(look.now);
            decision.again_in(Duration::try_from(left).unwrap_or_default());
        }
        Health::Bad => {
            let state = &machine.status.instance_state;
            let message =
                format!("virtual machine {} is {state}: Machine is deleted", look.object.spec.instance_id);
            decision.note(Note::warning("MachineStateBad", "Delete", message));
            decision.then(Effect::delete(&**owner));
        }
    }
    decision
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_cloudstack_types::v1beta3::CloudStackMachineStateChecker;
    use capstan_object::ObjectMeta;
    use capstan_provider_kit::testing::{effects, now};

    use super::super::Seen;
    use super::*;

    #[test]
    fn the_machine_of_a_stopped_machine_is_deleted_and_of_an_unknown_one_is_kept() {
        let old = now().saturating_sub(SignedDuration::from_mins(6)).expect("a time");
        for (state, since, phase, ready, deleted) in [
            ("Running", old, MachinePhase::Running, true, false),
            ("Running", old, MachinePhase::Provisioned, false, true),
            ("Running", now(), MachinePhase::Provisioned, false, false),
            ("Stopped", now(), MachinePhase::Running, false, true),
            ("Error", now(), MachinePhase::Provisioning, false, true),
            ("Starting", old, MachinePhase::Provisioning, false, false),
            ("", old, MachinePhase::Running, false, false),
        ] {
            let mut machine =
                CloudStackMachine { metadata: ObjectMeta::named("ns", "m"), ..Default::default() };
            machine.status.instance_state = state.to_owned();
            machine.status.instance_state_last_updated = Some(since.into());
            let mut owner = Machine { metadata: ObjectMeta::named("ns", "m"), ..Default::default() };
            owner.status.phase = Some(phase);
            let object = CloudStackMachineStateChecker {
                metadata: ObjectMeta::named("ns", "id"),
                ..Default::default()
            };
            let seen = Seen { machine: Some(Arc::new(machine)), owner: Some(Arc::new(owner)) };
            let decision = decide(&Look::new(Arc::new(object), seen, now()));
            assert_eq!(decision.object.status.ready, ready, "{state}");
            assert_eq!(effects(&decision).len(), usize::from(deleted), "{state}");
        }
    }
}
