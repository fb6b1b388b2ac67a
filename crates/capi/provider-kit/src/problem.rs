//! Events about things that went wrong. Conditions show the present; events stay when it is over.

use capstan_capi_types::core::condition;
use capstan_controller::{Note, code_in};
use capstan_object::Condition;
use capstan_object::ConditionStatus::True;

/// The event of a change of conditions: something that was ready is not any more, such as a machine that was destroyed in
/// the cloud, or an error has appeared, such as refused credentials.
pub fn problem(before: &[Condition], after: &[Condition]) -> Option<Note> {
    let appeared = |now: &&Condition| {
        let old = before.iter().find(|old| old.kind == now.kind);
        let broke =
            now.kind == condition::READY && now.status != True && old.is_some_and(|it| it.status == True);
        let code = code_in(&now.message).filter(|_| now.status != True);
        broke || code.is_some_and(|code| old.and_then(|it| code_in(&it.message)) != Some(code))
    };
    let now = after.iter().find(appeared)?;
    Some(Note::warning(&now.reason, "Reconcile", now.message.as_str()))
}

#[cfg(test)]
mod tests {
    use capstan_object::ConditionStatus::{self, False, Unknown};
    use jiff::Timestamp;

    use super::*;

    fn conditions(all: &[(&str, ConditionStatus, &str)]) -> Vec<Condition> {
        let condition = |(kind, status, message): &(&str, ConditionStatus, &str)| Condition {
            kind: (*kind).to_owned(),
            status: *status,
            observed_generation: None,
            last_transition_time: Timestamp::UNIX_EPOCH.into(),
            reason: "Because".to_owned(),
            message: (*message).to_owned(),
        };
        all.iter().map(condition).collect()
    }

    #[test]
    fn what_broke_and_what_failed_is_an_event_once() {
        let fine = conditions(&[("Ready", True, "")]);
        let starting = conditions(&[("Ready", False, "Waiting for the machine")]);
        let gone = conditions(&[("Ready", False, "the machine is gone")]);
        let off = conditions(&[("Ready", Unknown, "the server is in state SHUTOFF")]);
        let refused = conditions(&[("Ready", True, ""), ("CloudReachable", False, "E-CS-CREDENTIALS: no")]);
        let still = conditions(&[("Ready", True, ""), ("CloudReachable", False, "E-CS-CREDENTIALS: never")]);
        let quota = conditions(&[("Ready", False, "E-CS-QUOTA: no more")]);
        let unknown = conditions(&[("Ready", Unknown, "E-CS-UNREACHABLE: no answer")]);
        for (before, after, event) in [
            (&fine, &gone, Some("the machine is gone")),
            (&fine, &off, Some("the server is in state SHUTOFF")),
            (&gone, &gone, None),
            (&gone, &fine, None),
            (&starting, &gone, None),
            (&fine, &refused, Some("E-CS-CREDENTIALS: no")),
            (&refused, &still, None),
            (&refused, &fine, None),
            (&starting, &quota, Some("E-CS-QUOTA: no more")),
            (&quota, &unknown, Some("E-CS-UNREACHABLE: no answer")),
            (&Vec::new(), &starting, None),
        ] {
            let note = problem(before, after);
            assert_eq!(note.as_ref().map(|note| note.message.as_str()), event, "{before:?} {after:?}");
        }
    }
}
