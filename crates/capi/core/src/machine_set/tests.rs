use std::sync::Arc;

use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{Machine, MachineDeployment, MachineSet};
use capstan_controller::{KindName, NoCall, Patch};
use capstan_object::{Conditions, ObjectMeta, OwnerReference, to_value};

use super::*;
use crate::contract::ContractVersion;
use crate::machine_set::{Observed, Part};
use crate::names::COUNTER;
use crate::testing::{at, condition as condition_of};

fn cluster() -> Cluster {
    let metadata = ObjectMeta { uid: "c".to_owned(), ..ObjectMeta::named("ns", "prod") };
    Cluster { metadata, ..Cluster::default() }
}

fn set(replicas: i32) -> MachineSet {
    let metadata = ObjectMeta {
        uid: "s".to_owned(),
        generation: 1,
        resource_version: "1".to_owned(),
        ..ObjectMeta::named("ns", "workers-abc")
    };
    let mut set = MachineSet { metadata, ..MachineSet::default() };
    set.spec.cluster_name = "prod".to_owned();
    set.spec.replicas = Some(replicas);
    set.spec.selector.match_labels.insert("pool".to_owned(), "workers".to_owned());
    set.spec.template.metadata.labels.insert("pool".to_owned(), "workers".to_owned());
    let template = &mut set.spec.template.spec;
    template.cluster_name = "prod".to_owned();
    template.version = "v1.33.0".to_owned();
    template.infrastructure_ref.kind = "SimMachineTemplate".to_owned();
    template.infrastructure_ref.name = "small".to_owned();
    template.infrastructure_ref.api_group = "infra.x".to_owned();
    template.bootstrap.config_ref.kind = "BootTemplate".to_owned();
    template.bootstrap.config_ref.name = "boot".to_owned();
    template.bootstrap.config_ref.api_group = "boot.x".to_owned();
    set
}

fn external(group: &str, kind: &str, plural: &str, name: &str) -> External {
    let owner = OwnerReference::to(&cluster());
    let value = json!({
        "metadata": {"name": name, "namespace": "ns", "resourceVersion": "5", "ownerReferences": [owner]},
        "spec": {"template": {"spec": {"size": "small"}}},
    });
    External::new(KindName::namespaced(group, "v1", kind, plural), ContractVersion::V1Beta2, value)
}

fn seen(machines: Vec<Machine>) -> Observed {
    Observed {
        cluster: Some(Arc::new(cluster())),
        machines: machines.into_iter().map(Arc::new).collect(),
        infrastructure_template: Lookup::Object(Box::new(external(
            "infra.x",
            "SimMachineTemplate",
            "simmachinetemplates",
            "small",
        ))),
        bootstrap_template: Lookup::Object(Box::new(external(
            "boot.x",
            "BootTemplate",
            "boottemplates",
            "boot",
        ))),
        ..Observed::default()
    }
}

fn decided(set: &MachineSet, seen: Observed) -> Decided {
    decide(&Look::new(Arc::new(set.clone()), seen, at(1000)))
}

/// The machines that a set creates, as the API server would have stored them.
fn created(set: &MachineSet) -> Vec<Machine> {
    let decision = decided(set, seen(vec![]));
    let machines = decision.effects.iter().filter_map(|planned| match &planned.effect {
        Effect::Create { kind, body } if kind.kind == "Machine" => Some(body.clone()),
        _ => None,
    });
    machines
        .map(|body| {
            let mut machine: Machine = serde_json::from_value(body).expect("a Machine");
            machine.metadata.uid = format!("uid-{}", machine.metadata.name);
            machine.metadata.resource_version = "1".to_owned();
            machine.metadata.creation_timestamp = Some(at(0).into());
            machine.status.node_ref.name = format!("node-{}", machine.metadata.name);
            machine
        })
        .collect()
}

fn effects(decision: &Decided) -> Vec<String> {
    let reported = |effect: &Effect<NoCall>| match effect {
        Effect::Patch { target, subresource, patch: Patch::Merge(body) } => {
            let mut body = body.clone();
            if let Some(meta) = body["metadata"].as_object_mut() {
                meta.remove("resourceVersion");
            }
            format!("{}{} {body}", target.key.name, subresource.map_or("", |_| "/status"))
        }
        other => other.summary(),
    };
    decision.effects.iter().map(|planned| reported(&planned.effect)).collect()
}

#[test]
fn a_machine_is_created_after_its_objects_with_one_name() {
    let set = set(1);
    let [machine] = created(&set).try_into().expect("one machine");
    let name = &machine.metadata.name;
    assert_eq!(
        effects(&decided(&set, seen(vec![]))),
        [
            format!("create boots.boot.x {name}"),
            format!("create simmachines.infra.x {name}"),
            format!("create machines.cluster.x-k8s.io {name}"),
        ]
    );
    assert_eq!(machine.metadata.controller().map(|owner| owner.uid.as_str()), Some("s"));
    assert_eq!(machine.metadata.labels[label::SET_NAME], "workers-abc");
    assert_eq!(machine.metadata.labels[label::CLUSTER_NAME], "prod");
    assert_eq!(
        (machine.spec.infrastructure_ref.kind.as_str(), &machine.spec.infrastructure_ref.name),
        ("SimMachine", name)
    );
    assert_eq!(
        (machine.spec.bootstrap.config_ref.kind.as_str(), &machine.spec.bootstrap.config_ref.name),
        ("Boot", name)
    );
}

#[test]
fn names_are_retried_until_observed_and_never_reused() {
    let mut two = set(2);
    let machines = created(&two);
    assert_eq!(machines, created(&two));
    // One of the two is observed: the other is created with the next name.
    let decision = decided(&two, seen(vec![machines[0].clone()]));
    assert_eq!(decision.object.metadata.annotations[COUNTER], "1");
    assert!(effects(&decision).last().is_some_and(|last| last.ends_with(&machines[1].metadata.name)));
    two.metadata.annotations.insert(COUNTER.to_owned(), "2".to_owned());
    let later = created(&two);
    assert!(
        machines.iter().all(|machine| later.iter().all(|other| other.metadata.name != machine.metadata.name))
    );
}

#[test]
fn an_up_to_date_set_has_no_effects() {
    let mut set = set(2);
    let machines = created(&set);
    set = decided(&set, seen(machines.clone())).object;
    let decision = decided(&set, seen(machines));
    assert_eq!(effects(&decision), Vec::<String>::new());
    assert_eq!(to_value(&decision.object).ok(), to_value(&set).ok());
    assert_eq!(decision.object.status.replicas, Some(2));
}

#[test]
fn nothing_is_created_while_blocked() {
    let wants = |change: fn(&mut MachineSet), seen: Observed| {
        let mut set = set(1);
        change(&mut set);
        decided(&set, seen)
    };
    let mut going = cluster();
    going.metadata.deletion_timestamp = Some(at(0).into());
    let mut with_control_plane = cluster();
    with_control_plane.spec.control_plane_ref.kind = "ControlPlane".to_owned();
    let control_plane = |status: Value| {
        let value = json!({"metadata": {"name": "cp", "namespace": "ns"}, "spec": {"version": "v1.33.0"}, "status": status});
        let kind = KindName::namespaced("cp.x", "v1", "ControlPlane", "controlplanes");
        Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
    };
    let settled = || Observed {
        cluster: Some(Arc::new(with_control_plane.clone())),
        control_plane: control_plane(json!({"version": "v1.33.0"})),
        ..seen(vec![])
    };
    let rising = || Observed { control_plane: control_plane(json!({})), ..settled() };
    let disabled = |set: &mut MachineSet| {
        drop(
            set.metadata.annotations.insert(annotation::DISABLE_MACHINE_CREATE.to_owned(), "true".to_owned()),
        );
    };
    let skipping = |set: &mut MachineSet| {
        drop(set.metadata.annotations.insert(annotation::SKIP_PREFLIGHT_CHECKS.to_owned(), "All".to_owned()));
    };
    for (what, decision, creates) in [
        ("a settled control plane is no obstacle", wants(|_| (), settled()), true),
        ("one that comes up is", wants(|_| (), rising()), false),
        ("unless checks are skipped", wants(skipping, rising()), true),
        (
            "one that is not there is",
            wants(|_| (), Observed { control_plane: Lookup::Missing, ..settled() }),
            false,
        ),
        (
            "a cluster that goes is",
            wants(|_| (), Observed { cluster: Some(Arc::new(going)), ..seen(vec![]) }),
            false,
        ),
        ("an order not to is", wants(disabled, settled()), false),
        (
            "a missing template is",
            wants(|_| (), Observed { infrastructure_template: Lookup::Missing, ..settled() }),
            false,
        ),
    ] {
        assert_eq!(!decision.effects.is_empty(), creates, "{what}: {:?}", effects(&decision));
    }
}

#[test]
fn surplus_machines_are_deleted_and_deleting_ones_count() {
    let machines = created(&set(3));
    let names: Vec<_> = machines.iter().map(|machine| machine.metadata.name.clone()).collect();
    let mut sorted = names.clone();
    sorted.sort();
    let of = |set: &MachineSet, machines: Vec<Machine>| effects(&decided(set, seen(machines)));
    assert_eq!(of(&set(2), machines.clone()), [format!("delete machines.cluster.x-k8s.io ns/{}", sorted[0])]);
    let mut one_going = machines.clone();
    one_going[1].metadata.deletion_timestamp = Some(at(900).into());
    assert_eq!(of(&set(2), one_going.clone()), Vec::<String>::new(), "the one that goes is enough");
    assert_eq!(of(&set(3), one_going), Vec::<String>::new(), "it counts until it is gone");
    let mut asked = machines;
    asked[2].metadata.annotations.insert(annotation::DELETE_MACHINE.to_owned(), String::new());
    assert_eq!(of(&set(2), asked), [format!("delete machines.cluster.x-k8s.io ns/{}", names[2])]);
}

#[test]
fn an_unhealthy_machine_is_marked_and_then_deleted() {
    let mut machines = created(&set(2));
    machines[0].status.conditions = vec![
        condition_of(machine_condition::HEALTH_CHECK_SUCCEEDED, "False", "UnhealthyNode", ""),
        condition_of(machine_condition::OWNER_REMEDIATED, "False", "WaitingForRemediation", ""),
    ];
    let name = machines[0].metadata.name.clone();
    let found = effects(&decided(&set(2), seen(machines)));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with(&format!("{name}/status")) && found[0].contains("MachineDeleting"),
        "{found:?}"
    );
    assert_eq!(found[1], format!("delete machines.cluster.x-k8s.io ns/{name}"));
}

#[test]
fn changes_are_propagated_to_machines_and_their_objects() {
    let mut set = set(1);
    let machines = created(&set);
    set.spec.template.metadata.labels.insert("tier".to_owned(), "gold".to_owned());
    set.spec.template.spec.min_ready_seconds = Some(5);
    let reference = ObjectRef::new(
        KindName::namespaced("infra.x", "v1", "SimMachine", "simmachines"),
        machines[0].metadata.key(),
    );
    let part = Part { reference, metadata: desired::part(&super::tests::set(1), &machines[0].metadata.name) };
    let found = effects(&decided(&set, Observed { parts: vec![part], ..seen(machines.clone()) }));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].contains(r#""tier":"gold""#) && found[0].contains(r#""minReadySeconds":5"#),
        "{found:?}"
    );
    assert!(found[1].contains(r#""tier":"gold""#) && !found[1].contains("spec"), "{found:?}");

    let mut going = machines;
    going[0].metadata.deletion_timestamp = Some(at(1).into());
    let [patch] = effects(&decided(&set, seen(going))).try_into().expect("one effect");
    assert!(!patch.contains("gold") && patch.contains(r#""minReadySeconds":5"#), "{patch}");
}

#[test]
fn an_orphan_is_adopted_and_foreign_machines_are_ignored() {
    let mut machines = created(&set(1));
    machines[0].metadata.owner_references.clear();
    let [patch] = effects(&decided(&set(1), seen(machines))).try_into().expect("one effect");
    assert!(patch.contains(r#""controller":true"#), "{patch}");
}

#[test]
fn objects_of_a_machine_that_was_never_created_are_used_or_deleted() {
    let machines = created(&set(1));
    let name = &machines[0].metadata.name;
    let left = || Part {
        reference: ObjectRef::new(
            KindName::namespaced("boot.x", "v1", "Boot", "boots"),
            machines[0].metadata.key(),
        ),
        metadata: desired::part(&set(1), name),
    };
    let with = |replicas: i32, part: Part| {
        effects(&decided(&set(replicas), Observed { made: vec![part], ..seen(vec![]) }))
    };
    assert_eq!(
        with(1, left()),
        [format!("create simmachines.infra.x {name}"), format!("create machines.cluster.x-k8s.io {name}")]
    );
    assert_eq!(with(0, left()), [format!("delete boots.boot.x ns/{name}")]);
    let mut going = left();
    going.metadata.deletion_timestamp = Some(at(0).into());
    let found = with(1, going);
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().all(|effect| !effect.ends_with(name)),
        "the name of an object being deleted is not reused: {found:?}"
    );
}

#[test]
fn a_set_of_a_deployment_is_not_owned_by_the_cluster() {
    let owned = |labelled: bool| {
        let mut set = set(0);
        if labelled {
            set.metadata.labels.insert(label::DEPLOYMENT_NAME.to_owned(), "workers".to_owned());
        }
        let deployment = Some(Arc::new(MachineDeployment::default()));
        decided(&set, Observed { deployment, ..seen(vec![]) }).object.metadata.owner_references.len()
    };
    assert_eq!((owned(false), owned(true)), (1, 0));
}

#[test]
fn a_set_is_deleted_after_its_machines() {
    let mut set = set(1);
    let machines = created(&set);
    set.metadata.finalizers = vec![FINALIZER.to_owned()];
    set.metadata.deletion_timestamp = Some(at(0).into());
    let decision = decided(&set, seen(machines));
    assert_eq!(decision.effects.len(), 1);
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    let decision = decided(&set, seen(vec![]));
    assert!(decision.effects.is_empty() && decision.object.metadata.finalizers.is_empty());
    assert_eq!(
        decision.object.status.conditions.condition(condition::DELETING).map(|c| c.message.as_str()),
        Some("Deletion completed")
    );
}
