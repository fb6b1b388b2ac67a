//! Decisions about CloudStackMachines, as a table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_cloudstack_client::VolumeId;
use capstan_cloudstack_client::model::VirtualMachine;
use capstan_cloudstack_types::names;
use capstan_cloudstack_types::v1beta3::{
    CloudStackAffinityGroup, CloudStackCluster, CloudStackFailureDomain, CloudStackFailureDomainSpec,
    CloudStackIsolatedNetwork, CloudStackMachine,
};
use capstan_controller::{Concluded, Decision, Failure, Look};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use capstan_provider_kit::testing::best_efforts;
pub(super) use capstan_provider_kit::testing::{effects as calls, now};
use capstan_provider_kit::{BootData, BootDataRef};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::catalog::Catalog;
use super::decide::{decide, deployment_error};
use super::teardown::Teardown;
use super::{
    ATTACHED, CLOUD_REACHABLE, CloudStackMachines, Instance, MachineCall, Namesake, Seen, placement,
};
use crate::annotation;
use crate::code;
use crate::error::CloudError;

pub(super) fn object() -> CloudStackMachine {
    let metadata = ObjectMeta { uid: "u".to_owned(), ..ObjectMeta::named("ns", "m") };
    let mut machine = CloudStackMachine { metadata, ..CloudStackMachine::default() };
    machine.metadata.finalizers.push(names::finalizer::MACHINE.to_owned());
    machine
}

fn ordered() -> CloudStackMachine {
    let mut machine = object();
    machine.spec.instance_id = Some("v1".to_owned());
    machine
}

pub(super) fn provisioned() -> CloudStackMachine {
    let mut machine = ordered();
    machine.status.initialization.provisioned = Some(true);
    machine
}

pub(super) fn deleted(mut machine: CloudStackMachine) -> CloudStackMachine {
    machine.metadata.deletion_timestamp = Some(now().into());
    machine
}

pub(super) fn vm(state: &str) -> Instance {
    let machine: VirtualMachine = serde_json::from_value(json!({
        "id": "v1", "name": "m", "state": state,
        "nic": [{"id": "c1", "ipaddress": "10.1.1.5"}],
    }))
    .expect("a machine");
    Instance::There { machine: Arc::new(machine), age: Duration::ZERO }
}

pub(super) fn owner(control_plane: bool) -> Machine {
    let mut machine = Machine { metadata: ObjectMeta::named("ns", "m"), ..Machine::default() };
    machine.spec.bootstrap.data_secret_name = Some("m-data".to_owned());
    if control_plane {
        machine.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
    }
    machine
}

fn domains(names: &[&str]) -> CloudStackCluster {
    let mut cluster = CloudStackCluster { metadata: ObjectMeta::named("ns", "c"), ..Default::default() };
    let domain = |name: &&str| CloudStackFailureDomainSpec { name: (*name).to_owned(), ..Default::default() };
    cluster.spec.failure_domains = names.iter().map(domain).collect();
    cluster
}

pub(super) fn seen(instance: Instance) -> Seen {
    let mut cluster = Cluster { metadata: ObjectMeta::named("ns", "c"), ..Cluster::default() };
    cluster.metadata.uid = "cu".to_owned();
    cluster.status.initialization.infrastructure_provisioned = Some(true);
    cluster.status.initialization.control_plane_initialized = Some(true);
    let mut domain = CloudStackFailureDomain::default();
    domain.spec.name = "a".to_owned();
    domain.status.ready = true;
    Seen {
        machine: Some(Arc::new(owner(false))),
        cluster: Some(Arc::new(cluster)),
        infrastructure: Some(Arc::new(domains(&["a", "b"]))),
        domain: Some(Arc::new(domain)),
        instance,
        catalog: Some(Ok(catalog())),
        boot_data: Some(Ok(BootData { reference: boot_data(), ignition: false })),
        teardown: Some(Ok(Teardown::default())),
        ..Seen::default()
    }
}

pub(super) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("as the cloud writes it")
}

/// What an object without options is ordered from.
pub(super) fn catalog() -> Catalog {
    Catalog {
        service_offerings: Arc::new(vec![read(json!({"id": "o1", "name": "small"}))]),
        templates: Arc::new(vec![read(json!({"id": "t1", "name": "image", "isready": true}))]),
        ..Catalog::default()
    }
}

pub(super) fn boot_data() -> BootDataRef {
    BootDataRef {
        secret: "m-data".to_owned(),
        key: "value".to_owned(),
        uid: "su".to_owned(),
        resource_version: "7".to_owned(),
    }
}

/// A call as releases wrote it that did not journal orders.
fn deploy_without_order() -> MachineCall {
    serde_json::from_value(json!({"verb": "deploy", "name": "m", "attempt": 0})).expect("a call")
}

fn balanced(mut seen: Seen) -> Seen {
    let mut network = CloudStackIsolatedNetwork::default();
    network.status.load_balancer_rule_id = "r1".to_owned();
    seen.network = Some(Arc::new(network));
    seen.machine = Some(Arc::new(owner(true)));
    seen
}

pub(super) fn look(object: CloudStackMachine, seen: Seen) -> Look<CloudStackMachines> {
    Look::new(Arc::new(object), seen, now())
}

pub(super) fn ready(decision: &Decision<CloudStackMachines>) -> &Condition {
    decision.object.status.conditions.condition(condition::READY).expect("Ready")
}

#[test]
fn a_machine_is_not_ordered_before_the_id_of_its_affinity_group_is_known() {
    let wants = || {
        let mut machine = object();
        machine.spec.affinity = "anti".to_owned();
        machine
    };
    let group = |ready: bool, id: &str| {
        let mut group = CloudStackAffinityGroup::default();
        group.status.ready = ready;
        group.spec.id = id.to_owned();
        Some(Arc::new(group))
    };
    let mut owned = owner(false);
    let set =
        OwnerReference { controller: Some(true), kind: "MachineSet".to_owned(), ..OwnerReference::default() };
    owned.metadata.owner_references.push(set);
    let owned = Arc::new(owned);
    let rows = [
        ("not ready", group(false, ""), vec![], "WaitingForAffinityGroup"),
        ("ready, without id", group(true, ""), vec![], "WaitingForAffinityGroup"),
        ("ready", group(true, "g1"), vec!["deploy-vm m"], "Ordering"),
    ];
    for (says, group, wanted, reason) in rows {
        let seen = Seen { machine: Some(owned.clone()), group, ..seen(Instance::None) };
        let decision = decide(&look(wants(), seen));
        assert_eq!(calls(&decision), wanted, "{says}");
        assert_eq!(ready(&decision).reason, reason, "{says}");
    }
}

#[test]
fn a_machine_is_ordered_when_everything_it_needs_is_there_and_waits_with_a_reason_until_then() {
    let mut unprovisioned = seen(Instance::None);
    unprovisioned.cluster = Some(Arc::new(Cluster::default()));
    let mut no_data = seen(Instance::None);
    no_data.machine =
        Some(Arc::new(Machine { metadata: ObjectMeta::named("ns", "m"), ..Machine::default() }));
    let mut unready = seen(Instance::None);
    unready.domain = None;
    let rows = [
        ("all is there", seen(Instance::None), vec!["deploy-vm m"], "Ordering"),
        ("no infrastructure", unprovisioned, vec![], "WaitingForClusterInfrastructureReady"),
        ("no boot data", no_data, vec![], "WaitingForBootstrapData"),
        ("no failure domain", unready, vec![], "WaitingForFailureDomain"),
    ];
    for (says, seen, wanted, reason) in rows {
        let decision = decide(&look(object(), seen));
        assert_eq!(calls(&decision), wanted, "{says}");
        assert_eq!(ready(&decision).reason, reason, "{says}");
    }
    let placed = decide(&look(object(), seen(Instance::None))).object;
    assert_eq!(placed.spec.failure_domain_name, "a");
    assert_eq!(placed.metadata.labels[names::FAILURE_DOMAIN_LABEL], names::failure_domain_object("a", "c"));
}

#[test]
fn an_order_that_was_taken_is_on_the_object_before_anything_else() {
    let mut look = look(object(), seen(Instance::None));
    let call = deploy_without_order();
    look.concluded.push(Concluded { call, result: Some(json!({"id": "v1", "job": "j1"})) });
    let decision = decide(&look);
    assert!(decision.effects.is_empty());
    assert_eq!(decision.object.spec.instance_id.as_deref(), Some("v1"));
    assert_eq!(decision.object.metadata.annotations[annotation::DEPLOY_JOB], "j1");
    assert!(decision.look_again.is_some());
}

#[test]
fn the_state_of_the_instance_is_reported() {
    let unreachable = CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer");
    let rows = [
        (
            "deploying",
            ordered(),
            Instance::Deploying(Duration::from_secs(5)),
            ConditionStatus::False,
            "Deploying",
        ),
        ("stopped before it ran", ordered(), vm("Stopped"), ConditionStatus::False, "Deploying"),
        ("running", ordered(), vm("Running"), ConditionStatus::True, "Running"),
        ("stopped behind our back", provisioned(), vm("Stopped"), ConditionStatus::False, "Stopped"),
        ("in error behind our back", provisioned(), vm("Error"), ConditionStatus::False, "Error"),
        ("gone", provisioned(), Instance::Gone, ConditionStatus::False, "Gone"),
        (
            "nobody answers, and it never ran",
            ordered(),
            Instance::Unknown(unreachable),
            ConditionStatus::Unknown,
            "CloudUnreachable",
        ),
    ];
    for (says, object, instance, status, reason) in rows {
        let decision = decide(&look(object, seen(instance)));
        assert_eq!((ready(&decision).status, ready(&decision).reason.as_str()), (status, reason), "{says}");
        assert!(decision.effects.is_empty(), "{says}: a machine that was there is never made again");
        assert_eq!(decision.object.status.ready, status == ConditionStatus::True, "{says}");
    }
    let running = decide(&look(ordered(), seen(vm("Running")))).object;
    assert_eq!(running.spec.provider_id.as_deref(), Some("cloudstack:///v1"));
    assert_eq!(running.status.addresses[0].address, "10.1.1.5");
    assert_eq!(running.status.initialization.provisioned, Some(true));
}

#[test]
fn a_machine_that_never_came_up_is_removed_and_ordered_again_after_a_pause() {
    let mut failed = ordered();
    failed.metadata.annotations.insert(annotation::DEPLOY_JOB.to_owned(), "j1".to_owned());
    let decision = decide(&look(failed, seen(Instance::Failed("no room".to_owned()))));
    assert_eq!(calls(&decision), ["destroy-vm v1"]);
    assert_eq!(ready(&decision).message, "E-CS-DEPLOY: no room");
    assert!(!decision.object.metadata.annotations.contains_key(annotation::DEPLOY_JOB), "it is counted once");

    let decision = decide(&look(decision.object, seen(Instance::Gone)));
    assert_eq!(decision.object.spec.instance_id, None);
    let mut again = look(decision.object.clone(), seen(Instance::None));
    let decision = decide(&again);
    assert!(decision.effects.is_empty() && decision.look_again == Some(Duration::from_secs(30)));
    again.now = now() + jiff::SignedDuration::from_secs(30);
    assert_eq!(calls(&decide(&again)), ["deploy-vm m-r1"], "CloudStack keeps the old name for days");
    assert!(ready(&decide(&again)).message.contains("no room"), "why it failed stays visible");
    // One that vanishes, or that only the operator still sees, has had its name too.
    for instance in [Instance::Gone, vm("Expunging"), vm("Destroyed")] {
        let mut second = decide(&again).object;
        second.spec.instance_id = Some("v2".to_owned());
        let decision = decide(&look(second, seen(instance)));
        assert_eq!(decision.object.metadata.annotations[annotation::ORDERS], "2");
        assert_eq!(decision.object.spec.instance_id, None);
    }
}

#[test]
fn a_machine_that_ran_is_never_ordered_again_though_its_status_is_lost() {
    // What `clusterctl move` and a restore without status leave of one that ran.
    let mut moved = ordered();
    moved.spec.provider_id = Some("cloudstack:///v1".to_owned());
    let mut of_machine = owner(false);
    of_machine.spec.provider_id = "cloudstack:///v1".to_owned();
    let by_machine = Seen { machine: Some(Arc::new(of_machine)), ..seen(Instance::Gone) };
    for (object, seen) in [(moved.clone(), seen(Instance::Gone)), (ordered(), by_machine)] {
        let decision = decide(&look(object, seen));
        assert!(decision.effects.is_empty());
        assert_eq!(decision.object.spec.instance_id.as_deref(), Some("v1"), "it is not forgotten");
        assert_eq!(ready(&decision).reason, "Gone");
    }
    for state in ["Error", "Stopped", "Destroyed", "Expunging"] {
        let decision = decide(&look(moved.clone(), seen(vm(state))));
        assert!(decision.effects.is_empty(), "{state}");
        assert_eq!(ready(&decision).reason, state);
    }
}

#[test]
fn a_machine_that_is_missing_is_looked_for_once_more_before_another_is_ordered() {
    let after = |object: CloudStackMachine, minutes: i64, instance: Instance| {
        let mut look = look(object, seen(instance));
        look.now = now() + jiff::SignedDuration::from_mins(minutes);
        decide(&look)
    };
    // As CAPC leaves one that runs, or ran, when its provider id was never written.
    let first = after(ordered(), 0, Instance::Gone);
    assert_eq!((first.object.spec.instance_id.as_deref(), first.effects.len()), (Some("v1"), 0));
    assert!(ready(&first).reason == "Missing" && ready(&first).message.contains("virtual machine v1 is not"));
    assert_eq!(first.look_again, Some(Duration::from_secs(300)));
    let early = after(first.object.clone(), 4, Instance::Gone);
    assert_eq!(
        (early.object.spec.instance_id.as_deref(), early.look_again),
        (Some("v1"), Some(Duration::from_secs(60)))
    );
    let back = after(early.object.clone(), 5, vm("Running"));
    assert!(ready(&back).is_true() && !back.object.metadata.annotations.contains_key(annotation::MISSING));
    let gone = after(early.object, 5, Instance::Gone);
    assert_eq!(gone.object.spec.instance_id, None, "another is ordered after a pause");
    assert!(!gone.object.metadata.annotations.contains_key(annotation::MISSING));
}

#[test]
fn refused_orders_pause_from_the_first_on() {
    let mut first = look(object(), seen(Instance::None));
    let [planned] = decide(&first).effects.try_into().expect("one call");
    let error = capstan_controller::Error { code: code::REFUSED, message: "no such key".to_owned() };
    let effect = capstan_controller::Effect::summary(&planned.effect);
    first.failures.push(Failure { effect, call: None, error, since: now(), attempts: 1 });
    let mut object = decide(&first).object;
    for (pause, second) in [(30, 30), (60, 90), (120, 210)] {
        let decision = decide(&look(object.clone(), seen(Instance::None)));
        let at = now() + jiff::SignedDuration::from_secs(second - pause);
        let mut paused = look(object.clone(), seen(Instance::None));
        paused.now = at;
        let decision = if pause == 30 { decision } else { decide(&paused) };
        assert!(decision.effects.is_empty());
        assert_eq!(decision.look_again, Some(Duration::from_secs(u64::try_from(pause).expect("seconds"))));
        assert!(ready(&decision).reason == "OrderFailed" && ready(&decision).message.contains("no such key"));
        let mut due = look(object.clone(), seen(Instance::None));
        due.now = now() + jiff::SignedDuration::from_secs(second);
        assert_eq!(calls(&decide(&due)), ["deploy-vm m"]);
        due.failures.clone_from(&first.failures);
        object = decide(&due).object;
    }
    let mut taken = look(object, seen(Instance::None));
    taken.concluded.push(Concluded { call: deploy_without_order(), result: Some(json!({"id": "v1"})) });
    assert!(!decide(&taken).object.metadata.annotations.contains_key(annotation::ORDER_REFUSED));
}

#[test]
fn a_name_that_is_taken_is_not_ordered_by_again() {
    let refused = |namesake: Namesake| {
        let mut object = object();
        object.metadata.annotations.insert(annotation::ORDERS.to_owned(), "0".to_owned());
        decide(&look(object, Seen { namesake: Some(Ok(namesake)), ..seen(Instance::None) }))
    };
    let hidden = refused(Namesake::Nobody);
    assert_eq!(calls(&hidden), ["deploy-vm m-r1"], "one that only the operator sees has the name");
    assert_eq!(hidden.object.metadata.annotations[annotation::ORDERS], "1");
    let ours = refused(Namesake::Ours { id: "v7".into(), job: None });
    assert!(ours.effects.is_empty());
    assert_eq!(ours.object.spec.instance_id.as_deref(), Some("v7"));
    let another = refused(Namesake::Another { id: "v7".into(), certain: true });
    assert!(another.effects.is_empty() && ready(&another).message.starts_with("E-CS-NOT-OURS"));
}

#[test]
fn a_virtual_machine_of_the_name_without_a_record_is_found_before_the_object_goes() {
    let ordered = || {
        let mut object = object();
        object.metadata.annotations.insert(annotation::ORDERS.to_owned(), "0".to_owned());
        deleted(object)
    };
    let found = |namesake| {
        let namesake = Some(namesake);
        decide(&look(ordered(), Seen { namesake, ..seen(Instance::None) }))
    };
    let ours = found(Ok(Namesake::Ours { id: "v7".into(), job: None }));
    assert_eq!(ours.object.spec.instance_id.as_deref(), Some("v7"));
    let unreachable = CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer");
    for (namesake, held) in [
        (Ok(Namesake::Nobody), false),
        (Ok(Namesake::Ours { id: "v7".into(), job: None }), true),
        (Ok(Namesake::Another { id: "v7".into(), certain: true }), true),
        (Err(unreachable), true),
    ] {
        let decision = found(namesake);
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), held, "{:?}", ready(&decision));
    }
}

#[test]
fn a_stranger_of_the_name_holds_no_object_that_never_had_a_virtual_machine() {
    let refusal = json!({"attempts": 1, "at": now().to_string(), "message": "it already exists"}).to_string();
    let rows = [
        ("nothing was ordered, and its data is another's", None, None, true, false),
        ("nothing was ordered, and its data is not known", None, None, false, true),
        ("the order was refused, and its data is another's", Some("0"), Some(&refusal), true, false),
        ("the order was refused, and its data is not known", Some("0"), Some(&refusal), false, true),
        ("what became of the order is not known", Some("0"), None, true, true),
    ];
    for (says, orders, refused, certain, held) in rows {
        let mut object = deleted(object());
        let annotations = &mut object.metadata.annotations;
        annotations.extend(orders.map(|orders| (annotation::ORDERS.to_owned(), orders.to_owned())));
        annotations.extend(refused.map(|it| (annotation::ORDER_REFUSED.to_owned(), it.clone())));
        let namesake = Some(Ok(Namesake::Another { id: "v7".into(), certain }));
        let decision = decide(&look(object, Seen { namesake, ..seen(Instance::None) }));
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), held, "{says}");
        assert!(decision.effects.is_empty(), "{says}");
    }
}

#[test]
fn a_machine_that_is_being_expunged_is_looked_at_ever_less_often() {
    for (seconds, wanted) in [(0, 3), (8, 3), (400, 100), (172_800, 3600)] {
        let mut leaving = deleted(provisioned());
        leaving.status.instance_state = "Expunging".to_owned();
        leaving.status.instance_state_last_updated = Some(now().into());
        let teardown = Some(Ok(Teardown { expunge: true, ..Teardown::default() }));
        let mut look = look(leaving, Seen { teardown, ..seen(vm("Expunging")) });
        look.now = now() + jiff::SignedDuration::from_secs(seconds);
        assert_eq!(decide(&look).look_again, Some(Duration::from_secs(wanted)), "after {seconds} s");
    }
}

#[test]
fn disks_that_a_machine_left_are_deleted_each_by_itself_before_the_finalizer_goes() {
    let left = ["d1", "d2"].map(VolumeId::from).to_vec();
    let teardown = Some(Ok(Teardown { left, ..Teardown::default() }));
    let decision = decide(&look(deleted(provisioned()), Seen { teardown, ..seen(Instance::Gone) }));
    assert_eq!(calls(&decision), ["delete-disk d1", "delete-disk d2"]);
    assert_eq!(best_efforts(&decision), calls(&decision));
    assert!(!decision.object.metadata.finalizers.is_empty());
}

#[test]
fn a_network_hears_of_machines_that_hold_it_after_they_are_destroyed() {
    let may_not = || Some(Ok(Teardown { expunge: false, ..Teardown::default() }));
    let gone = |noted: bool| {
        let mut seen = Seen { teardown: may_not(), ..balanced(seen(Instance::Gone)) };
        let mut network = seen.network.as_deref().cloned().expect("a network");
        if noted {
            let key = "leaving.capstan.dev/v1".to_owned();
            network.metadata.annotations.insert(key, "2026-01-01T00:00:00Z".to_owned());
        }
        seen.network = Some(Arc::new(network));
        seen
    };
    let first = decide(&look(deleted(provisioned()), gone(false)));
    assert!(first.effects.len() == 1 && !first.object.metadata.finalizers.is_empty());
    let then = decide(&look(deleted(provisioned()), gone(true)));
    assert!(then.effects.is_empty() && then.object.metadata.finalizers.is_empty());
}

#[test]
fn machines_of_the_control_plane_join_the_load_balancer_and_leave_it_before_they_go() {
    let decision = decide(&look(ordered(), balanced(seen(vm("Running")))));
    assert_eq!(calls(&decision), ["add-member v1 to r1"]);
    let mut attached = look(ordered(), balanced(seen(vm("Running"))));
    let call = MachineCall::Attach { rule: "r1".to_owned(), id: "v1".to_owned() };
    attached.concluded.push(Concluded { call, result: Some(json!(null)) });
    let decision = decide(&attached);
    assert!(decision.effects.is_empty());
    let object = decision.object;
    assert!(object.status.conditions.condition(ATTACHED).is_some_and(Condition::is_true));
    assert!(decide(&look(object.clone(), balanced(seen(vm("Running"))))).effects.is_empty());

    let mut leaving = look(deleted(object), balanced(seen(vm("Running"))));
    assert_eq!(calls(&decide(&leaving)), ["remove-member v1 from r1"]);
    let call = MachineCall::Detach { rule: "r1".to_owned(), id: "v1".to_owned() };
    leaving.concluded.push(Concluded { call, result: Some(json!(null)) });
    assert_eq!(calls(&decide(&leaving)), ["destroy-vm v1"]);
}

#[test]
fn the_finalizer_stays_until_nothing_is_left_that_can_be_removed() {
    let renamed = || {
        let machine = serde_json::from_value(json!({"id": "v1", "name": "web", "state": "Running"}));
        Instance::There { machine: Arc::new(machine.expect("a machine")), age: Duration::ZERO }
    };
    let unreachable =
        || Instance::Unknown(CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer"));
    let rows = [
        ("not looked for yet", object(), Instance::None, None, vec![], true),
        ("running", provisioned(), vm("Running"), None, vec!["destroy-vm v1"], true),
        ("in error", ordered(), vm("Error"), None, vec!["destroy-vm v1"], true),
        ("gone", provisioned(), Instance::Gone, None, vec![], false),
        ("expunging", provisioned(), vm("Expunging"), Some(true), vec![], true),
        ("expunging for days", provisioned(), vm("Expunging"), Some(false), vec![], false),
        ("destroyed, and nobody may do more", provisioned(), vm("Destroyed"), Some(false), vec![], false),
        (
            "destroyed, and it can be expunged",
            provisioned(),
            vm("Destroyed"),
            Some(true),
            vec!["destroy-vm v1"],
            true,
        ),
        ("nobody answers", provisioned(), unreachable(), None, vec![], true),
        ("somebody else's", provisioned(), renamed(), None, vec![], true),
    ];
    for (says, object, instance, may_expunge, wanted, held) in rows {
        let teardown = may_expunge.map(|expunge| Ok(Teardown { expunge, ..Teardown::default() }));
        let seen = seen(instance);
        let teardown = teardown.or(seen.teardown);
        let decision = decide(&look(deleted(object), Seen { teardown, ..seen }));
        assert_eq!(calls(&decision), wanted, "{says}");
        assert_eq!(!decision.object.metadata.finalizers.is_empty(), held, "{says}");
    }
    // Objects of CAPC and old backups do not record that there was an order.
    let (mut unbooted, mut lookup) = (seen(Instance::None), seen(Instance::None));
    unbooted.machine = Some(Arc::new(Machine::default()));
    lookup.namesake = Some(Ok(Namesake::Nobody));
    for (says, seen) in [("no boot data", unbooted), ("nobody has the name", lookup)] {
        assert!(decide(&look(deleted(object()), seen)).object.metadata.finalizers.is_empty(), "{says}");
    }
    // An order whose end nobody heard of, found after the machine was given up.
    let mut found = look(deleted(object()), seen(Instance::None));
    let call = deploy_without_order();
    found.concluded.push(Concluded { call, result: Some(json!({"id": "v1", "job": null})) });
    let decision = decide(&found);
    assert_eq!(decision.object.spec.instance_id.as_deref(), Some("v1"));
    assert!(!decision.object.metadata.finalizers.is_empty());
}

#[test]
fn machines_are_spread_over_failure_domains_unless_they_are_placed() {
    let cluster = domains(&["a", "b", "c"]);
    let placed = |counts: &[(&str, usize)]| -> BTreeMap<String, usize> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    let (mut said, mut placed_before) = (owner(false), object());
    said.spec.failure_domain = "c".to_owned();
    placed_before.spec.failure_domain_name = "b".to_owned();
    let rows = [
        ("the first of equals", object(), owner(false), placed(&[]), "a"),
        ("the emptiest", object(), owner(false), placed(&[("a", 1), ("c", 1)]), "b"),
        ("what its Machine says", object(), said.clone(), placed(&[("c", 9)]), "c"),
        ("what it says itself, whatever its Machine says", placed_before, said, placed(&[("b", 9)]), "b"),
    ];
    for (says, object, machine, counts, wanted) in rows {
        assert_eq!(placement::failure_domain(&object, &machine, &cluster, &counts), Some(wanted), "{says}");
    }
}

#[test]
fn an_affinity_group_is_named_as_capc_names_it() {
    let mut machine = owner(true);
    machine.metadata.owner_references.push(OwnerReference {
        api_version: "controlplane.cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "KubeadmControlPlane".to_owned(),
        name: "cp".to_owned(),
        uid: "k".to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    });
    let seen = seen(Instance::None);
    let (cluster, domain) = (seen.cluster.expect("a cluster"), seen.domain.expect("a domain"));
    for (affinity, wanted) in
        [("", None), ("no", None), ("pro", Some("host affinity")), ("Anti", Some("host anti-affinity"))]
    {
        let mut object = object();
        object.spec.affinity = affinity.to_owned();
        let group = placement::group(&object, &machine, &cluster, &domain);
        assert_eq!(group.as_ref().map(|group| group.spec.kind.as_str()), wanted, "{affinity}");
        if affinity == "Anti" {
            let group = group.expect("a group");
            assert_eq!(group.spec.name, "c-cu-AntiAffinity-KubeadmControlPlane-a");
            assert_eq!(group.metadata.name, "c-cu-antiaffinity-kubeadmcontrolplane-a");
        }
    }
}

#[test]
fn a_deployment_that_found_no_host_is_a_matter_of_capacity() {
    let mut object = CloudStackMachine::default();
    object.spec.failure_domain_name = "fd-1".to_owned();
    for (message, code) in [
        (
            "insufficient capacity (533/4330): No destination found for a deployment for VM instance {}",
            code::CAPACITY,
        ),
        ("internal error (530): Unable to start a VM [v] due to insufficient capacity.", code::CAPACITY),
        ("internal error (530): Unable to create a deployment for VM[User|i-2-3-VM]", code::CAPACITY),
        ("internal error (530): Unable to orchestrate the start of VM instance {}.", code::DEPLOY),
    ] {
        let (reported, text) = deployment_error(&object, message);
        assert_eq!(reported, code, "{message}");
        assert!(text.starts_with(&format!("{code}: {message}")), "{text}");
        assert_eq!(text.contains("failure domain fd-1"), code == code::CAPACITY, "{text}");
    }
    let message =
        r#"Unable to orchestrate the start of VM instance {"instanceName":"i-2-3-VM","uuid":"8a1c-0"}."#;
    let (_, text) = deployment_error(&object, message);
    assert_eq!(text, "E-CS-DEPLOY: Unable to orchestrate the start of VM instance 8a1c-0.");
}

#[test]
fn a_machine_that_ran_stays_as_it_was_last_seen_while_the_cloud_does_not_answer() {
    let running = decide(&look(provisioned(), seen(vm("Running")))).object;
    assert!(running.status.ready);
    let cause = CloudError::new(code::UNREACHABLE, "CloudUnreachable", "no answer");
    let silent = decide(&look(running.clone(), seen(Instance::Unknown(cause)))).object;
    let reported = silent.status.conditions.condition(CLOUD_REACHABLE).cloned().expect("a condition");
    assert_eq!((reported.status, reported.reason.as_str()), (ConditionStatus::False, "CloudUnreachable"));
    assert!(reported.message.starts_with("E-CS-UNREACHABLE: no answer"), "{}", reported.message);
    assert!(silent.status.ready && silent.status.conditions.is_condition_true(condition::READY));
    assert_eq!(silent.status.instance_state, running.status.instance_state);
    let again = decide(&look(silent, seen(vm("Running")))).object;
    assert_eq!(again.status.conditions.condition(CLOUD_REACHABLE), None);
}
