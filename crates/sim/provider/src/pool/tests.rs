//! Decisions about SimMachinePools.

use std::sync::Arc;

use capstan_capi_types::core::{Machine, MachinePool, annotation, label};
use capstan_controller::Effect;
use capstan_object::{Condition, Conditions, ObjectMeta, OwnerReference};
use capstan_provider_kit::testing::{cluster, look};
use serde_json::json;

use super::decide::decide;
use super::{FINALIZER, Member, Seen, SimMachinePools, VERSION};
use crate::types::{SimMachine, SimMachinePool};

type Decision = capstan_controller::Decision<SimMachinePools>;

fn object() -> SimMachinePool {
    let metadata = ObjectMeta {
        uid: "u".to_owned(),
        finalizers: vec![FINALIZER.to_owned()],
        ..ObjectMeta::named("ns", "pool")
    };
    SimMachinePool { metadata, ..SimMachinePool::default() }
}

fn pool(replicas: i32) -> MachinePool {
    let metadata = ObjectMeta { uid: "p".to_owned(), ..ObjectMeta::named("ns", "pool") };
    let mut pool = MachinePool { metadata, ..MachinePool::default() };
    pool.spec.cluster_name = "c".to_owned();
    pool.spec.replicas = Some(replicas);
    pool.spec.template.spec.version = "v1.36.0".to_owned();
    pool.spec.template.spec.bootstrap.data_secret_name = Some("data".to_owned());
    pool
}

/// A provisioned machine with a Machine.
fn member(name: &str, version: &str, ready: bool) -> Member {
    let metadata = ObjectMeta {
        uid: format!("s-{name}"),
        owner_references: vec![OwnerReference::to(&object())],
        ..ObjectMeta::named("ns", name)
    };
    let mut infrastructure = SimMachine { metadata, ..SimMachine::default() };
    infrastructure.metadata.annotations.insert(VERSION.to_owned(), version.to_owned());
    infrastructure.spec.provider_id = format!("sim://{name}");
    infrastructure.status.initialization.provisioned = Some(true);
    let metadata = ObjectMeta { uid: format!("m-{name}"), ..ObjectMeta::named("ns", name) };
    let mut machine = Machine { metadata, ..Machine::default() };
    machine.status.conditions.push(condition("Ready", ready));
    Member { infrastructure: Arc::new(infrastructure), machine: Some(Arc::new(machine)) }
}

fn condition(kind: &str, holds: bool) -> Condition {
    let status = if holds { "True" } else { "False" };
    let condition = json!({
        "type": kind, "status": status, "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    serde_json::from_value(condition).expect("a condition")
}

fn current(name: &str, ready: bool) -> Member {
    member(name, "v1.36.0", ready)
}

fn outdated(name: &str) -> Member {
    member(name, "v1.35.2", true)
}

fn decided(pool: MachinePool, members: Vec<Member>) -> Decision {
    let seen =
        Seen { pool: Some(Arc::new(pool)), cluster: Some(Arc::new(cluster())), members, ..Seen::default() };
    decide(&look(object(), seen))
}

/// The number of machines that are created, and the Machines that are deleted.
fn changes(decision: &Decision) -> (usize, Vec<String>) {
    let created = decision.effects.iter().filter(|it| matches!(it.effect, Effect::Create { .. })).count();
    let deleted = decision.effects.iter().filter_map(|planned| match &planned.effect {
        Effect::Delete { target, .. } => Some(target.key.name.clone()),
        _ => None,
    });
    (created, deleted.collect())
}

#[test]
fn a_pool_is_scaled_and_replaced_one_by_one() {
    let two = || vec![current("a", true), current("b", true)];
    let old = || vec![outdated("a"), outdated("b")];
    let with = |mut members: Vec<Member>, more: Member| {
        members.push(more);
        members
    };
    let cases = [
        ("created at once", 3, vec![], (3, vec![])),
        ("complete", 2, two(), (0, vec![])),
        ("scaled up", 4, two(), (2, vec![])),
        ("scaled down, what is not ready first", 2, with(two(), current("z", false)), (0, vec!["z"])),
        ("scaled to zero", 0, two(), (0, vec!["a", "b"])),
        ("replaced: one more first", 2, old(), (1, vec![])),
        ("replaced: the new one is not ready", 2, with(old(), current("c", false)), (0, vec![])),
        ("replaced: the new one is ready", 2, with(old(), current("c", true)), (0, vec!["a"])),
        ("replaced: the next", 2, vec![outdated("b"), current("c", true)], (1, vec![])),
        ("scaled down while replaced", 1, old(), (0, vec!["a"])),
        ("scaled to zero while replaced", 0, old(), (0, vec!["a", "b"])),
    ];
    for (what, replicas, members, (created, deleted)) in cases {
        let deleted: Vec<String> = deleted.into_iter().map(str::to_owned).collect();
        assert_eq!(changes(&decided(pool(replicas), members)), (created, deleted), "{what}");
    }
}

#[test]
fn a_machine_of_another_template_is_outdated_and_its_failure_domain_is_no_difference() {
    let mut spread = current("a", true);
    Arc::make_mut(&mut spread.infrastructure).spec.failure_domain = "zone-1".to_owned();
    assert_eq!(changes(&decided(pool(1), vec![spread])), (0, vec![]));
    let mut other = current("a", true);
    Arc::make_mut(&mut other.infrastructure).spec.cpus = Some(8);
    assert_eq!(changes(&decided(pool(1), vec![other])), (1, vec![]));
}

#[test]
fn new_machines_belong_to_the_pool_and_are_spread_over_failure_domains() {
    let mut pool = pool(3);
    pool.spec.failure_domains = vec!["a".to_owned(), "b".to_owned()];
    let decision = decided(pool, vec![]);
    let created: Vec<SimMachine> = decision
        .effects
        .iter()
        .map(|planned| match &planned.effect {
            Effect::Create { body, .. } => serde_json::from_value(body.clone()).expect("a SimMachine"),
            other => panic!("{}", other.summary()),
        })
        .collect();
    let domains: Vec<&str> = created.iter().map(|machine| machine.spec.failure_domain.as_str()).collect();
    assert_eq!(domains, ["a", "b", "a"]);
    let metadata = &created[0].metadata;
    assert_eq!(metadata.labels.get(label::POOL_NAME).map(String::as_str), Some("pool"));
    assert_eq!(metadata.labels.get(label::CLUSTER_NAME).map(String::as_str), Some("c"));
    assert_eq!(metadata.annotations.get(VERSION).map(String::as_str), Some("v1.36.0"));
    assert!(metadata.controller().is_none() && metadata.is_owned_by("u"));
}

#[test]
fn unhealthy_machines_are_replaced_and_marked_ones_go_first() {
    let mut sick = current("a", true);
    if let Some(machine) = &mut sick.machine {
        let conditions = &mut Arc::make_mut(machine).status.conditions;
        conditions.push(condition("HealthCheckSucceeded", false));
        conditions.push(condition("OwnerRemediated", false));
    }
    assert_eq!(changes(&decided(pool(2), vec![sick, current("b", true)])), (0, vec!["a".to_owned()]));
    let mut marked = current("z", true);
    if let Some(machine) = &mut marked.machine {
        let annotations = &mut Arc::make_mut(machine).metadata.annotations;
        annotations.insert(annotation::DELETE_MACHINE.to_owned(), String::new());
    }
    assert_eq!(changes(&decided(pool(1), vec![current("a", true), marked])), (0, vec!["z".to_owned()]));
}

#[test]
fn the_pool_reports_what_the_contract_asks_for() {
    let decision = decided(pool(2), vec![current("b", true), current("a", true)]);
    let own = &decision.object;
    assert_eq!(own.spec.provider_id_list, ["sim://a", "sim://b"]);
    assert_eq!((own.status.replicas, own.status.ready), (Some(2), Some(true)));
    assert_eq!(own.status.initialization.provisioned, Some(true));
    assert_eq!(own.status.infrastructure_machine_kind, "SimMachine");
    assert!(own.status.conditions.is_condition_true("Ready"));
    let growing = decided(pool(3), vec![current("a", true)]);
    assert_eq!(growing.object.status.initialization.provisioned, None);
}

#[test]
fn without_boot_data_nothing_is_created() {
    let mut pool = pool(2);
    pool.spec.template.spec.bootstrap.data_secret_name = None;
    let decision = decided(pool, vec![]);
    assert_eq!(changes(&decision), (0, vec![]));
    assert_eq!(decision.waits[0].reason, "WaitingForBootstrapData");
}

#[test]
fn a_deleted_pool_goes_after_its_machines() {
    let mut object = object();
    object.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).expect("a time");
    let with = |members: Vec<Member>| {
        let seen = Seen {
            pool: Some(Arc::new(pool(1))),
            cluster: Some(Arc::new(cluster())),
            members,
            ..Seen::default()
        };
        decide(&look(object.clone(), seen))
    };
    let decision = with(vec![current("a", true)]);
    assert_eq!(changes(&decision), (0, vec!["a".to_owned()]));
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    assert!(with(vec![]).object.metadata.finalizers.is_empty());
}
