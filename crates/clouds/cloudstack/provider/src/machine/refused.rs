//! Deletions of a machine and its disks that CloudStack refused. The next follows after a pause, each longer than the one
//! before: what is protected stays so until somebody changes it, and each refusal of a machine is a failed job.

use capstan_controller::Look;
use capstan_provider_kit::retry::{FailedTry, OrderStep};

use super::decide::{Decision, SOON};
use super::failures::failure_of;
use super::{CloudStackMachines, MachineCall};
use crate::account_cache::EXPUNGE_REFUSED;
use crate::{annotation, code};

/// What is done about deletions.
pub(super) enum Step {
    /// They are sent. Why the last were refused, if they were.
    Send(Option<String>),
    /// They pause, and this is reported.
    Pause(String),
}

/// Whether deletions are sent. A refusal is recorded on the object.
pub(super) fn step(
    look: &Look<CloudStackMachines>,
    calls: &[MachineCall],
    reason: &str,
    decision: &mut Decision,
) -> Step {
    // What is there after all shows better a little later.
    if calls.iter().any(|call| look.result_of(call).is_some()) {
        decision.again_in(SOON);
        return Step::Pause(
            "CloudStack carried the deletion out, and still lists what it deleted".to_owned(),
        );
    }
    let meta = &look.object.metadata;
    let refused = calls.iter().find_map(|call| refusal(look, call));
    match OrderStep::of(meta, annotation::DELETE_REFUSED, refused, look.now) {
        OrderStep::Pause(refused) => {
            refused.put(&mut decision.object.metadata, annotation::DELETE_REFUSED);
            Step::Pause(refused.pause(reason, look.now, decision))
        }
        OrderStep::Send => {
            let failed = calls.iter().find_map(|call| failure_of(look, call));
            let before = FailedTry::of(meta, annotation::DELETE_REFUSED);
            Step::Send(failed.map(|it| it.error.to_string()).or(before.map(|it| it.message)))
        }
    }
}

/// Why CloudStack refused a deletion. A server that cannot be asked refuses nothing, and one that may not be expunged is
/// destroyed instead.
fn refusal(look: &Look<CloudStackMachines>, call: &MachineCall) -> Option<String> {
    let error = &failure_of(look, call)?.error;
    let destroys = matches!(call, MachineCall::Destroy { expunge: false, .. });
    let is_refusal = [code::DELETE, code::FAILED, code::PERMISSION].contains(&error.code);
    let passed = destroys && error.message.contains(EXPUNGE_REFUSED);
    (is_refusal && !passed).then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use capstan_controller::{Code, Concluded, Error, Failure};
    use serde_json::json;

    use super::super::decide::decide;
    use super::super::teardown::Teardown;
    use super::super::tests::{calls, deleted, look, now, provisioned, ready, seen, vm};
    use super::super::{CloudStackMachine, Instance, Seen};
    use super::*;

    const PROTECTED: &str =
        "Instance [id = v1, name = m] has delete protection enabled and cannot be deleted.";

    fn failure(effect: &str, code: Code, message: &str) -> Failure<MachineCall> {
        let error = Error { code, message: message.to_owned() };
        Failure { effect: effect.to_owned(), call: None, error, since: now(), attempts: 1 }
    }

    fn leaving(
        object: CloudStackMachine,
        instance: Instance,
        teardown: Teardown,
    ) -> Look<CloudStackMachines> {
        look(deleted(object), Seen { teardown: Some(Ok(teardown)), ..seen(instance) })
    }

    #[test]
    fn a_refused_deletion_pauses_from_the_first_refusal_on_and_says_why() {
        let left = Teardown { left: vec!["d1".into()], ..Teardown::default() };
        for (instance, teardown, call) in
            [(vm("Running"), Teardown::default(), "destroy-vm v1"), (Instance::Gone, left, "delete-disk d1")]
        {
            let at = |object: &CloudStackMachine, seconds: i64| {
                let mut look = leaving(object.clone(), instance.clone(), teardown.clone());
                look.now = now() + jiff::SignedDuration::from_secs(seconds);
                look
            };
            let mut object = provisioned();
            for (sent, pause) in [(0, 30), (30, 60), (90, 120)] {
                let mut due = at(&object, sent);
                assert_eq!(calls(&decide(&due)), [call]);
                due.failures.push(failure(call, code::DELETE, PROTECTED));
                let refused = decide(&due);
                assert!(refused.effects.is_empty() && !refused.object.metadata.finalizers.is_empty());
                assert_eq!(refused.look_again, Some(Duration::from_secs(pause)));
                let said = &ready(&refused).message;
                assert!(said.starts_with(&format!("E-CS-DELETE: {PROTECTED}; next try at ")), "{said}");
                object = refused.object;
                assert!(decide(&at(&object, sent + 29)).effects.is_empty());
            }
            assert!(ready(&decide(&at(&object, 210))).message.contains(PROTECTED), "why stays visible");
        }
    }

    #[test]
    fn only_a_refusal_pauses() {
        let no_expunge = "internal error (530): Account does not have permission for expunging.";
        let rows = [
            ("the server cannot be asked", code::UNREACHABLE, "no answer", false, true),
            ("it may not be expunged", code::FAILED, no_expunge, true, false),
            ("it is destroyed and not expunged", code::FAILED, no_expunge, false, true),
        ];
        for (says, code, message, expunge, sent) in rows {
            let mut look = leaving(provisioned(), vm("Running"), Teardown { expunge, ..Teardown::default() });
            look.failures.push(failure("destroy-vm v1", code, message));
            assert_eq!(!decide(&look).effects.is_empty(), sent, "{says}");
        }
    }

    #[test]
    fn a_machine_that_was_destroyed_and_runs_on_is_looked_at_before_it_is_destroyed_again() {
        let mut look = leaving(provisioned(), vm("Running"), Teardown::default());
        let call = MachineCall::Destroy { id: "v1".to_owned(), expunge: false, disks: Vec::new() };
        look.concluded.push(Concluded { call, result: Some(json!(null)) });
        let decision = decide(&look);
        assert!(decision.effects.is_empty() && decision.look_again == Some(Duration::from_secs(3)));
    }
}
