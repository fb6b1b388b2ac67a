//! Rollouts that an extension carries out in place.

use std::time::Duration;

use capstan_capi_core::in_place::Failure;
use capstan_capi_types::core::annotation;
use capstan_capi_types::runtime::pending::PENDING_HOOKS;

use super::*;
use crate::control_plane::observed::InPlace;

const NO_SURGE: &str = "  rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}";

fn possible(machine: &str) -> InPlace {
    InPlace::Possible { machine: machine.to_owned() }
}

fn refused(machine: &str) -> InPlace {
    InPlace::Refused { machine: machine.to_owned(), why: "spec.version".to_owned() }
}

fn failed(_: &str) -> InPlace {
    InPlace::Failed(Failure { why: "CanUpdateMachine: no answer".to_owned(), again: Duration::from_secs(2) })
}

fn marks(test: &TestCluster, name: &str) -> [bool; 4] {
    let machine = &test.machines[name].metadata.annotations;
    let config = &test.configs[name].metadata.annotations;
    [
        machine.contains_key(annotation::UPDATE_IN_PROGRESS),
        !test.infrastructure[name]["metadata"]["annotations"][annotation::UPDATE_IN_PROGRESS].is_null(),
        config.contains_key(annotation::UPDATE_IN_PROGRESS),
        machine.contains_key(PENDING_HOOKS),
    ]
}

/// What the Machine's controller does once the extension is done.
fn complete(test: &mut TestCluster, name: &str) {
    let machine = test.machines.get_mut(name).expect("a machine");
    machine.metadata.annotations.remove(annotation::UPDATE_IN_PROGRESS);
    machine.metadata.annotations.remove(PENDING_HOOKS);
    let config = test.configs.get_mut(name).expect("a config");
    config.metadata.annotations.remove(annotation::UPDATE_IN_PROGRESS);
    let infrastructure = test.infrastructure.get_mut(name).expect("an object");
    infrastructure["metadata"]["annotations"]
        .as_object_mut()
        .expect("annotations")
        .remove(annotation::UPDATE_IN_PROGRESS);
}

#[test]
fn machines_are_updated_in_place_one_at_a_time_and_stay() {
    let mut test = TestCluster::running(3, NO_SURGE);
    let before: Vec<String> = test.machines.keys().cloned().collect();
    test.extension = Some(possible);
    test.control_plane.spec.version = "v1.35.0".to_owned();
    for n in 1..=3 {
        test.settle();
        let updating: Vec<String> = before.iter().filter(|name| marks(&test, name)[0]).cloned().collect();
        let [name] = &updating[..] else { panic!("round {n}: one machine is updated: {updating:?}") };
        assert_eq!(marks(&test, name), [true; 4]);
        assert_eq!(test.machines[name].spec.version, "v1.35.0");
        assert_eq!(test.machine_condition(name, "UpToDate").1, "* In-place update in progress");
        let config = &test.configs[name].spec;
        assert!(config.join_configuration.control_plane.is_some(), "it has what a joining machine has");
        assert_eq!(config.init_configuration, Default::default());
        assert_eq!(test.settle(), NOTHING, "nothing else happens meanwhile");
        assert!(waits(&test).contains(&"UpdatingInPlace".to_owned()));
        complete(&mut test, name);
    }
    test.settle();
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(test.machines.keys().cloned().collect::<Vec<_>>(), before);
    assert!(test.machines.values().all(|machine| machine.metadata.deletion_timestamp.is_none()));
    assert_eq!(test.condition("RollingOut").0, "False");
}

#[test]
fn a_machine_that_cannot_be_updated_is_replaced() {
    let mut test = TestCluster::running(3, NO_SURGE);
    test.extension = Some(refused);
    test.control_plane.spec.version = "v1.35.0".to_owned();
    test.settle();
    let going = test.machines.values().filter(|machine| machine.metadata.is_deleting()).count();
    assert_eq!(going, 1);
    assert!(test.machines.keys().all(|name| !marks(&test, name)[0]));
}

#[test]
fn an_extension_that_does_not_answer_holds_the_rollout() {
    let mut test = TestCluster::running(3, NO_SURGE);
    test.extension = Some(failed);
    test.control_plane.spec.version = "v1.35.0".to_owned();
    test.settle();
    assert!(test.machines.values().all(|machine| !machine.metadata.is_deleting()));
    assert!(test.condition("RollingOut").2.ends_with("\n* CanUpdateMachine: no answer"));
    assert!(waits(&test).contains(&"ExtensionFailed".to_owned()));
    test.extension = Some(possible);
    test.settle();
    assert_eq!(test.machines.keys().filter(|name| marks(&test, name)[0]).count(), 1);
}

#[test]
fn a_rollout_by_time_wants_new_machines() {
    let mut test = TestCluster::running(3, NO_SURGE);
    test.extension = Some(possible);
    test.control_plane.spec.rollout.after = Some(test.now.into());
    test.own(60);
    test.settle();
    assert_eq!(test.machines.values().filter(|machine| machine.metadata.is_deleting()).count(), 1);
}

#[test]
fn with_surge_a_new_machine_comes_first_and_the_last_old_one_goes() {
    let mut test = TestCluster::running(3, "");
    test.extension = Some(possible);
    test.control_plane.spec.version = "v1.35.0".to_owned();
    test.settle();
    let new = test.booting().expect("the surge machine");
    test.boot(&new, "n4");
    test.own(60);
    for _ in 0..2 {
        test.settle();
        let updating: Vec<String> =
            test.machines.keys().filter(|name| marks(&test, name)[0]).cloned().collect();
        assert_eq!(updating.len(), 1);
        complete(&mut test, &updating[0]);
    }
    test.settle();
    assert_eq!(test.machines.values().filter(|machine| machine.metadata.is_deleting()).count(), 1);
}
