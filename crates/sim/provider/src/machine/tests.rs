//! Decisions about SimMachines.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineAddressType, label};
use capstan_controller::{Concluded, INTENTS, Look};
use capstan_guest::vm::{Phase, Vm};
use capstan_object::{Conditions as _, ObjectMeta};
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::testing::{calls, cluster, deleted, look, machine as owner, ready};
use capstan_provider_kit::{BootData, BootDataError, BootDataRef};
use serde_json::{Value, json};

use super::decide::decide;
use super::{FINALIZER, MACHINE_TAG, MachineCall, SITE, Seen, SimMachines};
use crate::types::SimMachine;

const ID: &str = "ns/m/u";

fn object() -> SimMachine {
    let metadata = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("ns", "m") };
    let mut machine = SimMachine { metadata, ..SimMachine::default() };
    machine.metadata.finalizers.push(FINALIZER.to_owned());
    machine
}

fn made() -> SimMachine {
    let mut machine = object();
    machine.spec.provider_id = format!("sim://{ID}");
    machine.status.initialization.provisioned = Some(true);
    machine
}

fn vm(phase: Phase) -> Vm {
    Vm {
        id: ID.to_owned(),
        name: "m".to_owned(),
        address: Ipv4Addr::new(172, 16, 0, 2),
        phase,
        node: None,
        tags: BTreeMap::from([(MACHINE_TAG.to_owned(), ID.to_owned())]),
    }
}

fn seen(vm: Option<Vm>) -> Seen {
    let boot_data = Some(Ok(BootData { reference: boot_data(), ignition: false }));
    Seen {
        machine: Some(Arc::new(owner())),
        cluster: Some(Arc::new(cluster())),
        vm,
        boot_data,
        ..Seen::default()
    }
}

fn boot_data() -> BootDataRef {
    BootDataRef {
        secret: "m-data".to_owned(),
        key: "value".to_owned(),
        uid: "su".to_owned(),
        resource_version: "7".to_owned(),
    }
}

/// A call as older releases recorded it.
fn create_without_order() -> MachineCall {
    serde_json::from_value(json!({"verb": "create", "id": ID})).expect("a call")
}

#[test]
fn the_order_is_complete_when_it_is_decided_and_holds_no_boot_data() {
    let mut object = object();
    object.spec.cpus = Some(8);
    let mut machine = owner();
    machine.spec.version = "v1.36.0".to_owned();
    machine.spec.cluster_name = "c".to_owned();
    let seen = Seen { machine: Some(Arc::new(machine)), ..seen(None) };
    let [call] = calls(&decide(&look(object, seen))).try_into().expect("one call");
    let wanted = json!({"verb": "create", "id": ID, "order": {
        "v": 1, "name": "m", "kubernetes": "v1.36.0", "cpus": 8, "memoryMiB": 4096,
        "tags": {MACHINE_TAG: ID, label::CLUSTER_NAME: "c"},
        "bootData": {"secret": "m-data", "key": "value", "uid": "su", "resourceVersion": "7"},
    }});
    assert_eq!(serde_json::to_value(&call).expect("JSON"), wanted);
    assert_eq!(serde_json::from_value::<MachineCall>(wanted).expect("a call"), call);
}

#[test]
fn unreadable_boot_data_is_reported_and_retried() {
    let gone = BootDataError::Unreadable("there is no Secret ns/m-data".to_owned());
    let decision = decide(&look(object(), Seen { boot_data: Some(Err(gone)), ..seen(None) }));
    assert_eq!(calls(&decision), []);
    assert_eq!(ready(&decision).message, "E-SIM-BOOT-DATA: there is no Secret ns/m-data");
    assert!(decision.look_again.is_some());
}

#[test]
fn a_machine_waits_with_a_reason_until_its_dependencies_exist() {
    let early = Cluster::default();
    let mut uninitialised = cluster();
    uninitialised.status.initialization.control_plane_initialized = None;
    let mut empty = owner();
    empty.spec.bootstrap.data_secret_name = None;
    let mut first = empty.clone();
    first.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
    for (what, machine, cluster, reason) in [
        ("no infrastructure", owner(), early, "WaitingForClusterInfrastructureReady"),
        ("no boot data", empty.clone(), cluster(), "WaitingForBootstrapData"),
        ("no control plane", empty, uninitialised.clone(), "WaitingForControlPlaneInitialized"),
        ("the first of the control plane", first, uninitialised, "WaitingForBootstrapData"),
    ] {
        let seen =
            Seen { machine: Some(Arc::new(machine)), cluster: Some(Arc::new(cluster)), ..Seen::default() };
        let decision = decide(&look(object(), seen));
        assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], reason), "{what}");
        assert_eq!(decision.waits[0].reason, reason, "{what}");
        assert_eq!(decision.object.spec.provider_id, "", "{what}");
    }
    let decision = decide(&look(object(), seen(None)));
    let made = calls(&decision);
    assert!(matches!(&made[..], [MachineCall::Create { id, order: Some(_) }] if id == ID), "{made:?}");
    assert_eq!(decision.object.spec.provider_id, "sim://ns/m/u", "written with the intent");
    let ownerless = decide(&look(object(), Seen::default()));
    assert_eq!((calls(&ownerless), ownerless.waits[0].reason.as_str()), (vec![], "WaitingForOwner"));
}

#[test]
fn ready_mirrors_the_state_of_the_machine() {
    let failed = Phase::Failed("bad token abcdef.0123456789abcdef".to_owned());
    for (phase, is_ready, reason) in [
        (Phase::Booting, false, "Booting"),
        (Phase::Booted, true, "Running"),
        (Phase::Off, false, "PoweredOff"),
        (failed, false, "BootFailed"),
    ] {
        let decision = decide(&look(object(), seen(Some(vm(phase)))));
        assert!(decision.effects.is_empty());
        assert_eq!((ready(&decision).is_true(), ready(&decision).reason.as_str()), (is_ready, reason));
        assert!(!ready(&decision).message.contains("0123456789abcdef"), "{}", ready(&decision).message);
        let object = &decision.object;
        assert_eq!(object.spec.provider_id, "sim://ns/m/u");
        assert_eq!(object.status.initialization.provisioned, Some(true));
        let addresses: Vec<_> =
            object.status.addresses.iter().map(|a| (a.kind, a.address.as_str())).collect();
        assert_eq!(
            addresses,
            [(Some(MachineAddressType::Hostname), "m"), (Some(MachineAddressType::InternalIP), "172.16.0.2")]
        );
    }
}

#[test]
fn the_failure_domain_of_the_machine_takes_precedence() {
    let mut object = object();
    object.spec.failure_domain = "b".to_owned();
    let domain = |machine: Machine| {
        let seen = Seen { machine: Some(Arc::new(machine)), ..seen(Some(vm(Phase::Booted))) };
        decide(&look(object.clone(), seen)).object.status.failure_domain
    };
    let mut placed = owner();
    placed.spec.failure_domain = "a".to_owned();
    assert_eq!((domain(placed).as_str(), domain(owner()).as_str()), ("a", "b"));
}

#[test]
fn a_vanished_machine_is_reported_and_never_recreated() {
    let decision = decide(&look(made(), seen(None)));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "Gone"));

    // After a move the status is lost: the call shows that a machine existed.
    let mut moved = made();
    moved.status = Default::default();
    let mut look: Look<SimMachines> = look(moved, seen(None));
    assert_eq!(calls(&decide(&look)).len(), 1);
    look.concluded = vec![Concluded { call: create_without_order(), result: Some(Value::Null) }];
    let decision = decide(&look);
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "Gone"));
    assert_eq!(decision.object.status.initialization.provisioned, Some(true));
}

#[test]
fn deletion_destroys_only_our_machine_and_then_removes_the_finalizer() {
    let foreign = Vm { tags: BTreeMap::new(), ..vm(Phase::Booted) };
    let destroy = vec![MachineCall::Destroy { id: ID.to_owned() }];
    for (what, vm, expected, kept) in [
        ("it runs", Some(vm(Phase::Booted)), destroy, true),
        ("it is gone", None, vec![], false),
        ("it is not ours", Some(foreign.clone()), vec![], false),
    ] {
        // Also without an owner: a machine must be destroyed even if its Machine is gone.
        let decision = decide(&look(deleted(made()), Seen { vm, ..Seen::default() }));
        assert_eq!(calls(&decision), expected, "{what}");
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), kept, "{what}");
    }
    let decision = decide(&look(made(), seen(Some(foreign))));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "NotOurs"));
}

#[test]
fn a_moved_machine_keeps_its_id() {
    let mut moved = made();
    moved.metadata.uid = "another".to_owned();
    let decision = decide(&look(deleted(moved), seen(Some(vm(Phase::Booted)))));
    assert_eq!(calls(&decision), [MachineCall::Destroy { id: ID.to_owned() }]);
}

#[test]
fn a_site_that_does_not_answer_leaves_a_machine_as_it_was_last_seen() {
    let silence =
        || Silence { code: crate::code::SITE, why: "the site at http://s does not answer: refused".into() };
    let unknown = || Seen { silence: Some(silence()), boot_data: None, ..seen(None) };
    let running = decide(&look(made(), seen(Some(vm(Phase::Booted))))).object;
    let decision = decide(&look(running.clone(), unknown()));
    let reported =
        decision.object.status.conditions.condition(CLOUD_REACHABLE).cloned().expect("a condition");
    assert!(reported.message.starts_with("E-SIM-SITE: the site at http://s does not answer"), "{reported:?}");
    assert!(ready(&decision).is_true(), "as last seen");
    assert_eq!((calls(&decision), &decision.object.status.addresses), (vec![], &running.status.addresses));
    let again = decide(&look(decision.object, seen(Some(vm(Phase::Booted)))));
    assert_eq!(again.object.status.conditions.condition(CLOUD_REACHABLE), None);

    for object in [object(), deleted(made())] {
        let decision = decide(&look(object, unknown()));
        assert_eq!(ready(&decision).reason, "Unreachable");
        assert_eq!(
            (calls(&decision), decision.object.metadata.finalizers.len()),
            (vec![], 1),
            "nothing is concluded"
        );
    }
}

#[test]
fn a_silent_site_is_an_error_while_the_outcome_of_a_call_is_open() {
    let silence = Silence { code: crate::code::SITE, why: "refused".into() };
    let mut meta = object().metadata;
    assert!(silence.clone().observed(&meta).is_ok());
    meta.annotations.insert(format!("{INTENTS}simmachine"), "[{}]".to_owned());
    assert!(silence.observed(&meta).is_err());
}

#[test]
fn the_address_of_a_site_in_another_process_is_on_its_machines() {
    let at = |url: Option<&str>| Seen { url: url.map(Into::into), ..seen(Some(vm(Phase::Booted))) };
    let object = decide(&look(made(), at(Some("http://site:1")))).object;
    assert_eq!(object.metadata.annotations[SITE], "http://site:1");
    let moved = decide(&look(object, at(None))).object;
    assert_eq!(moved.metadata.annotations.get(SITE), None);
}
