//! The update of a machine in place.

use std::time::Duration;

use capstan_capi_types::runtime::pending::PENDING_HOOKS;

use super::*;
use crate::in_place::{Failure, Progress};

/// An object of the machine, with the mark of the update or without.
fn marked(object: Lookup, marked: bool) -> Lookup {
    let Lookup::Object(object) = object else { panic!("an object") };
    let mut value = object.value().clone();
    if marked {
        value["metadata"]["annotations"] = json!({annotation::UPDATE_IN_PROGRESS: ""});
    }
    Lookup::Object(Box::new(External::new(object.kind.clone(), object.contract, value)))
}

fn seen(update: Update, marks: bool) -> Observed {
    Observed {
        update,
        bootstrap: marked(config(true), marks),
        infrastructure: marked(infrastructure(true), marks),
        ..running()
    }
}

/// A machine that ran and is being updated: what it has of the mark and the pending hook.
fn updating(annotations: &[&str]) -> Machine {
    let mut machine = decide(machine(), running()).object;
    for key in annotations {
        let value = if *key == PENDING_HOOKS { "UpdateMachine" } else { "" };
        machine.metadata.annotations.insert((*key).to_owned(), value.to_owned());
    }
    machine
}

const BOTH: [&str; 2] = [annotation::UPDATE_IN_PROGRESS, PENDING_HOOKS];

#[test]
fn an_update_is_reported_as_far_as_it_is() {
    let again = Duration::from_secs(7);
    let going = |message: &str| Update::Asked(Progress::Going { again, message: message.to_owned() });
    let failure = Failure { why: "refused".to_owned(), again };
    for (update, reason, message) in [
        (Update::NotDue, "InPlaceUpdating", "In-place update in progress"),
        (going(""), "InPlaceUpdating", "In-place update in progress"),
        (going("rebooting"), "InPlaceUpdating", "In-place update in progress: rebooting"),
        (Update::Failed(failure), "InPlaceUpdateFailed", "UpdateMachine hook failed: refused"),
        (Update::Impossible, "InPlaceUpdateFailed", "In-place update not possible: InfraMachine not found"),
    ] {
        let decision = decide(updating(&BOTH), seen(update.clone(), true));
        assert_eq!(condition(&decision, "Updating"), (ConditionStatus::True, reason, message));
        assert_eq!(condition(&decision, "Ready").0, ConditionStatus::False, "{update:?}");
        assert_eq!(decision.object.status.phase, Some(MachinePhase::Updating));
        assert_eq!(effects(&decision), Vec::<String>::new());
    }
    let waits = decide(updating(&BOTH), seen(going("x"), true));
    assert_eq!(waits.look_again, Some(again));
}

#[test]
fn marks_go_when_the_update_is_done_and_the_pending_hook_last() {
    let done = || Update::Asked(Progress::Done);
    let first = decide(updating(&BOTH), seen(done(), true));
    let annotations = &first.object.metadata.annotations;
    assert!(!annotations.contains_key(annotation::UPDATE_IN_PROGRESS));
    assert!(annotations.contains_key(PENDING_HOOKS), "until the objects have no mark any more");
    assert_eq!(effects(&first), ["patch fakemachines.g n/x", "patch fakeconfigs.g n/x"]);
    assert_eq!(condition(&first, "Updating").0, ConditionStatus::True);

    let second = decide(updating(&[PENDING_HOOKS]), seen(Update::NotDue, false));
    assert!(!second.object.metadata.annotations.contains_key(PENDING_HOOKS));
    assert_eq!(condition(&second, "Updating"), (ConditionStatus::False, "NotUpdating", ""));

    let called_off = decide(updating(&[PENDING_HOOKS]), seen(Update::NotDue, true));
    assert_eq!(effects(&called_off).len(), 2, "an update whose mark somebody removed leaves nothing behind");
}

#[test]
fn the_server_is_asked_once_everything_has_its_new_spec() {
    type Change<'a> = &'a dyn Fn(&mut Machine, &mut Observed);
    let cases: [(&str, Change<'_>, bool); 8] = [
        ("ready", &|_, _| (), true),
        (
            "its owner is not done",
            &|machine, _| drop(machine.metadata.annotations.remove(PENDING_HOOKS)),
            false,
        ),
        ("no node", &|machine, _| machine.status.node_ref.name.clear(), false),
        (
            "not provisioned",
            &|machine, _| machine.status.initialization.infrastructure_provisioned = None,
            false,
        ),
        ("its infrastructure", &|_, seen| seen.infrastructure = infrastructure(true), false),
        ("its bootstrap config", &|_, seen| seen.bootstrap = config(true), false),
        ("a bootstrap config that is gone", &|_, seen| seen.bootstrap = Lookup::Missing, true),
        ("deleted", &|machine, _| machine.metadata.deletion_timestamp = Some(at(1).into()), false),
    ];
    for (what, change, expected) in cases {
        let (mut machine, mut seen) = (updating(&BOTH), seen(Update::NotDue, true));
        machine.status.node_ref.name = "node".to_owned();
        machine.status.initialization.infrastructure_provisioned = Some(true);
        machine.status.initialization.bootstrap_data_secret_created = Some(true);
        change(&mut machine, &mut seen);
        let due = crate::machine::in_place::due(&machine, &seen);
        let crate::machine::in_place::Due::Question(request) = &due else {
            assert!(!expected, "{what}: {due:?}");
            continue;
        };
        assert!(expected, "{what}");
        assert_eq!(request["desired"]["machine"].get("status"), None);
        assert_eq!(request["desired"]["infrastructureMachine"]["kind"], "FakeMachine");
    }
    let mut gone = seen(Update::NotDue, true);
    gone.infrastructure = Lookup::Missing;
    let mut machine = updating(&BOTH);
    machine.status.node_ref.name = "node".to_owned();
    assert_eq!(crate::machine::in_place::due(&machine, &gone), crate::machine::in_place::Due::Impossible);
}
