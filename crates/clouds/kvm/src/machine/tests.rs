//! Decisions about KVMMachines.

use std::net::Ipv4Addr;
use std::sync::Arc;

use capstan_capi_types::core::{Machine, MachineAddressType};
use capstan_controller::{Concluded, Look};
use capstan_object::{ConditionStatus, Conditions as _, ObjectMeta};
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::testing::{calls, cluster, deleted, look, machine, ready};
use capstan_provider_kit::{BootData, BootDataError, BootDataRef};
use serde_json::{Value, json};

use super::decide::decide;
use super::{FINALIZER, KVMMachines, MachineCall, Order, Seen};
use crate::backend::{Id, Instance, Phase};
use crate::types::KVMMachine;

fn id() -> Id {
    "u-1".to_owned().try_into().expect("an id")
}

fn object() -> KVMMachine {
    let metadata = ObjectMeta { uid: "u-1".to_owned(), ..ObjectMeta::named("ns", "m") };
    let mut machine = KVMMachine { metadata, ..KVMMachine::default() };
    machine.metadata.finalizers.push(FINALIZER.to_owned());
    machine
}

fn made() -> KVMMachine {
    let mut machine = object();
    machine.spec.provider_id = "kvm:///u-1".to_owned();
    machine.status.initialization.provisioned = Some(true);
    machine
}

fn instance(phase: Phase) -> Instance {
    Instance {
        id: id(),
        name: "m".to_owned(),
        address: Ipv4Addr::new(10, 89, 0, 2),
        has_booted: matches!(phase, Phase::Booted | Phase::Failed(_)),
        phase,
        console: "/state/console.log".into(),
    }
}

fn seen(instance: Option<Instance>) -> Seen {
    let network = Some("n-1".to_owned().try_into().expect("an id"));
    let boot_data = Some(Ok(BootData { reference: boot_data(), ignition: false }));
    Seen {
        machine: Some(Arc::new(machine())),
        cluster: Some(Arc::new(cluster())),
        network,
        instance,
        boot_data,
        silence: None,
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

fn order() -> Order {
    Order {
        name: "m".to_owned(),
        network: "n-1".to_owned().try_into().expect("an id"),
        image: "kubernetes-".to_owned(),
        cpus: None,
        memory_mib: None,
        dns_servers: Vec::new(),
        host_volumes: Vec::new(),
        node_labels: Default::default(),
        node_taints: Vec::new(),
        boot_data: boot_data(),
    }
}

fn create() -> MachineCall {
    MachineCall::Create { id: id(), order: Some(Box::new(order())) }
}

fn journaled(call: &MachineCall) -> Value {
    serde_json::to_value(call).expect("JSON")
}

#[test]
fn the_order_is_complete_when_it_is_decided_and_holds_no_boot_data() {
    let mut object = object();
    object.spec = serde_json::from_value(json!({
        "cpus": 2, "memoryMiB": 2048, "dnsServers": ["9.9.9.9"], "nodeLabels": {"a": "b"},
        "hostVolumes": [{"hostPath": "/srv", "guestPath": "/data", "readOnly": true}],
        "nodeTaints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    }))
    .expect("a spec");
    let mut seen = seen(None);
    seen.machine = seen.machine.map(|machine| {
        let mut machine = Machine::clone(&machine);
        machine.spec.version = "v1.36.0".to_owned();
        Arc::new(machine)
    });
    let decision = decide(&look(object, seen));
    let [call] = calls(&decision).try_into().expect("one call");
    let wanted = json!({"verb": "create", "id": "u-1", "order": {
        "v": 1, "name": "m", "network": "n-1", "image": "kubernetes-v1.36.0", "cpus": 2, "memoryMiB": 2048,
        "dnsServers": ["9.9.9.9"], "nodeLabels": {"a": "b"},
        "hostVolumes": [{"hostPath": "/srv", "guestPath": "/data", "readOnly": true}],
        "nodeTaints": ["k=v:NoSchedule"],
        "bootData": {"secret": "m-data", "key": "value", "uid": "su", "resourceVersion": "7"},
    }});
    assert_eq!(journaled(&call), wanted);
    assert_eq!(serde_json::from_value::<MachineCall>(wanted).expect("a call"), call);
}

#[test]
fn a_machine_that_cannot_be_ordered_reports_why_without_a_call() {
    let gone = BootDataError::Unreadable("there is no Secret ns/m-data".to_owned());
    let mut long = seen(None);
    let name = "m".repeat(64);
    let mut machine = Machine { metadata: ObjectMeta::named("ns", name.as_str()), ..Machine::default() };
    machine.spec.bootstrap.data_secret_name = Some("m-data".to_owned());
    long.machine = Some(Arc::new(machine));
    for (seen, why) in [
        (Seen { boot_data: Some(Err(gone)), ..seen(None) }, "there is no Secret ns/m-data"),
        (long, "longer than the 63 letters"),
    ] {
        let decision = decide(&look(object(), seen));
        assert_eq!(calls(&decision), []);
        assert!(ready(&decision).message.starts_with("E-KVM-BOOT-DATA: "), "{}", ready(&decision).message);
        assert!(ready(&decision).message.contains(why), "{}", ready(&decision).message);
        assert!(decision.look_again.is_some());
    }
}

#[test]
fn an_intent_of_the_previous_release_is_still_resolved() {
    let call: MachineCall = serde_json::from_value(json!({"verb": "create", "id": "u-1"})).expect("a call");
    let mut moved: Look<KVMMachines> = look(KVMMachine { status: Default::default(), ..made() }, seen(None));
    moved.concluded = vec![Concluded { call, result: Some(Value::Null) }];
    let decision = decide(&moved);
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "Gone"));
}

#[test]
fn a_machine_is_created_once_its_dependencies_exist() {
    let waiting = Seen { network: None, ..seen(None) };
    let decision = decide(&look(object(), waiting));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "WaitingForNetwork"));
    let decision = decide(&look(object(), seen(None)));
    assert_eq!(calls(&decision), [create()]);
    assert_eq!(decision.object.spec.provider_id, "kvm:///u-1", "written with the intent");
}

#[test]
fn creation_of_an_unfinished_machine_continues() {
    let decision = decide(&look(object(), seen(Some(instance(Phase::Stopped)))));
    assert_eq!(calls(&decision), [create()]);
}

#[test]
fn the_state_of_a_machine_is_reported_without_a_call() {
    let failed = Phase::Failed("kubeadm: token abcdef.0123456789abcdef is no good".to_owned());
    for (phase, good, reason) in [
        (Phase::Booting, false, "Booting"),
        (Phase::Booted, true, "Running"),
        (Phase::Stopped, false, "Stopped"),
        (failed, false, "BootFailed"),
    ] {
        let decision = decide(&look(made(), seen(Some(instance(phase)))));
        let condition = ready(&decision);
        assert_eq!((condition.status == ConditionStatus::True, condition.reason.as_str()), (good, reason));
        assert!(!condition.message.contains("0123456789abcdef"), "{}", condition.message);
        assert_eq!(calls(&decision), []);
        let status = &decision.object.status;
        assert_eq!(status.addresses[1].kind, Some(MachineAddressType::InternalIP));
        assert_eq!(status.initialization.provisioned, Some(true));
    }
}

#[test]
fn a_vanished_machine_is_reported_and_never_recreated() {
    let decision = decide(&look(made(), seen(None)));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "Gone"));
    let mut moved: Look<KVMMachines> = look(KVMMachine { status: Default::default(), ..made() }, seen(None));
    moved.concluded = vec![Concluded { call: create(), result: Some(Value::Null) }];
    let decision = decide(&moved);
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "Gone"));
}

#[test]
fn a_stopped_node_is_never_created_again_when_a_move_dropped_the_status() {
    let moved = || KVMMachine { status: Default::default(), ..made() };
    let known = |mut seen: Seen| {
        let mut machine = machine();
        machine.spec.provider_id = "kvm:///u-1".to_owned();
        seen.machine = Some(Arc::new(machine));
        seen
    };
    let node = Instance { has_booted: true, ..instance(Phase::Stopped) };
    for (says, seen, reason) in [
        ("the disk holds a node", seen(Some(node)), "Stopped"),
        ("the Machine has a provider id", known(seen(Some(instance(Phase::Stopped)))), "Stopped"),
        ("the Machine has a provider id, and the files are gone", known(seen(None)), "Gone"),
    ] {
        let decision = decide(&look(moved(), seen));
        assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], reason), "{says}");
        assert_eq!(decision.object.status.initialization.provisioned, Some(true), "{says}");
    }
}

#[test]
fn deletion_destroys_the_machine_and_then_removes_the_finalizer() {
    for (instance, expected, kept) in [
        (Some(instance(Phase::Booted)), vec![MachineCall::Destroy { id: id() }], true),
        (Some(instance(Phase::Stopped)), vec![MachineCall::Destroy { id: id() }], true),
        (None, vec![], false),
    ] {
        // Also without an owner: a machine must be destroyed even if its Machine is gone.
        let decision = decide(&look(deleted(made()), Seen { instance, ..Seen::default() }));
        assert_eq!(calls(&decision), expected);
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), kept);
    }
}

#[test]
fn an_invalid_provider_id_never_reaches_the_host() {
    let mut strange = object();
    strange.spec.provider_id = "kvm:///../../etc".to_owned();
    let decision = decide(&look(strange, seen(None)));
    assert_eq!((calls(&decision), ready(&decision).reason.as_str()), (vec![], "NoIdentity"));
}

#[test]
fn a_host_that_does_not_answer_leaves_a_machine_as_it_was_last_seen() {
    let silence = || Silence { code: crate::code::HOST, why: "its directory cannot be read".to_owned() };
    let unknown = || Seen { silence: Some(silence()), boot_data: None, ..seen(None) };
    let running = decide(&look(made(), seen(Some(instance(Phase::Booted))))).object;
    let decision = decide(&look(running, unknown()));
    assert!(ready(&decision).is_true(), "as last seen");
    assert!(decision.object.status.conditions.condition(CLOUD_REACHABLE).is_some());
    for object in [object(), deleted(made())] {
        let decision = decide(&look(object, unknown()));
        assert_eq!((ready(&decision).reason.as_str(), calls(&decision)), ("Unreachable", vec![]));
        assert_eq!(decision.object.metadata.finalizers, [FINALIZER], "nothing is concluded");
    }
}
