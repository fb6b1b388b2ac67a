//! Machines that move between sets and are updated in place.

use std::sync::Arc;

use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{Machine, MachineSet, annotation, label};
use capstan_capi_types::runtime::pending::PENDING_HOOKS;
use capstan_controller::{Effect, KindName, Look, Patch};
use capstan_object::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::decide::{Decided, decide};
use super::in_place::move_machines;
use super::{Arrival, Observed, Templated};
use crate::contract::{ContractVersion, External, Lookup};
use crate::testing::{at, condition, machine};

fn set(name: &str, replicas: i32, annotations: &[(&str, &str)]) -> MachineSet {
    let metadata = ObjectMeta { uid: format!("uid-{name}"), ..ObjectMeta::named("ns", name) };
    let mut set = MachineSet { metadata, ..MachineSet::default() };
    set.metadata.labels.insert(label::MACHINE_TEMPLATE_HASH.to_owned(), format!("hash-{name}"));
    set.metadata.labels.insert(label::DEPLOYMENT_NAME.to_owned(), "d".to_owned());
    for (key, value) in annotations {
        set.metadata.annotations.insert((*key).to_owned(), (*value).to_owned());
    }
    set.spec.cluster_name = "prod".to_owned();
    set.spec.replicas = Some(replicas);
    set.spec.template.spec.version = "v2".to_owned();
    set
}

/// A machine of a set as the set wants its labels, with a node.
fn of(set: &MachineSet, name: &str) -> Machine {
    let mut machine = machine(name);
    machine.metadata.owner_references = vec![OwnerReference::controlled_by(set)];
    super::desired::propagated(set).write(&mut machine.metadata);
    machine.spec = super::desired::followed(set, &machine.spec);
    machine.spec.version = "v1".to_owned();
    machine.status.node_ref.name = format!("node-{name}");
    machine
}

fn mark(machine: &mut Machine, key: &str) {
    machine.metadata.annotations.insert(key.to_owned(), String::new());
}

fn decided(set: &MachineSet, seen: Observed) -> Decided {
    let cluster = capstan_capi_types::core::Cluster {
        metadata: ObjectMeta { uid: "c".to_owned(), ..ObjectMeta::named("ns", "prod") },
        ..Default::default()
    };
    decide(&Look::new(Arc::new(set.clone()), Observed { cluster: Some(Arc::new(cluster)), ..seen }, at(100)))
}

/// The bodies of patches by name, and what else is done.
fn effects(decision: &Decided) -> Vec<(String, Value)> {
    let effect = |planned: &capstan_controller::Planned<_>| match &planned.effect {
        Effect::Patch { target, patch: Patch::Merge(body), .. } => {
            let mut body = body.clone();
            body["metadata"].as_object_mut().map(|meta| meta.remove("resourceVersion"));
            (target.key.name.clone(), body)
        }
        other => (other.summary(), Value::Null),
    };
    decision.effects.iter().map(effect).collect()
}

fn moving(machines: Vec<Machine>, target: &[(&str, &str)]) -> Observed {
    Observed {
        machines: machines.into_iter().map(Arc::new).collect(),
        move_target: Some(Arc::new(set("new", 0, target))),
        ..Observed::default()
    }
}

#[test]
fn surplus_machines_move_to_the_set_that_accepts_them() {
    let old = set("old", 1, &[(annotation::MOVE_MACHINES_TO, "new")]);
    let accepts = [(annotation::RECEIVE_MACHINES_FROM, "other,old")];
    let machines = || vec![of(&old, "a"), of(&old, "b")];
    let decision = decided(&old, moving(machines(), &accepts));
    let [(name, body)] = effects(&decision).try_into().expect("one machine moves");
    assert_eq!(name, "a");
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "uid-new");
    assert_eq!(body["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert_eq!(body["metadata"]["labels"], json!({label::MACHINE_TEMPLATE_HASH: "hash-new"}));
    assert_eq!(
        body["metadata"]["annotations"],
        json!({annotation::UPDATE_IN_PROGRESS: "", annotation::PENDING_ACKNOWLEDGE_MOVE: ""})
    );

    /// What is so, how the machines become so, the annotations of the target, and the effects.
    type Case<'a> = (&'a str, &'a dyn Fn(&mut Vec<Machine>), &'a [(&'a str, &'a str)], Vec<&'a str>);
    let cases: [Case<'_>; 5] = [
        ("a target that does not accept", &|_| (), &[], vec![]),
        (
            "one that is updated stays until it is done",
            &|machines| mark(&mut machines[0], annotation::UPDATE_IN_PROGRESS),
            &accepts,
            vec!["b"],
        ),
        (
            "one without a node stays until it has one",
            &|machines| machines[0].status.node_ref.name.clear(),
            &accepts,
            vec!["b"],
        ),
        (
            "one that goes anyway counts",
            &|machines| machines[1].metadata.deletion_timestamp = Some(at(1).into()),
            &accepts,
            vec![],
        ),
        (
            "one to be remediated is not worth an update",
            &|machines| {
                machines[1].status.conditions = vec![
                    condition(machine_condition::HEALTH_CHECK_SUCCEEDED, "False", "R", ""),
                    condition(machine_condition::OWNER_REMEDIATED, "False", "CannotBeRemediated", ""),
                ];
            },
            &accepts,
            vec!["delete machines.cluster.x-k8s.io ns/b"],
        ),
    ];
    for (what, change, accepts, expected) in cases {
        let mut machines = machines();
        change(&mut machines);
        let look = Look::new(Arc::new(old.clone()), moving(machines, accepts), at(100));
        let mut decision = Decided::rest(&look);
        move_machines(&mut decision, &look, 1);
        let found = effects(&decision);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected, "{what}");
    }
}

fn template(name: &str, size: &str) -> Lookup {
    let kind = KindName::namespaced("infra.x", "v1", "SimMachineTemplate", "simmachinetemplates");
    let owners =
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "prod", "uid": "c"}]);
    let value = json!({
        "metadata": {"name": name, "namespace": "ns", "ownerReferences": owners},
        "spec": {"template": {"spec": {"size": size}}},
    });
    Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn object(from: &str, marked: bool) -> Lookup {
    let kind = KindName::namespaced("infra.x", "v1", "SimMachine", "simmachines");
    let mut annotations = json!({
        annotation::CLONED_FROM_NAME: from,
        annotation::CLONED_FROM_GROUP_KIND: "SimMachineTemplate.infra.x",
    });
    if marked {
        annotations[annotation::UPDATE_IN_PROGRESS] = "".into();
    }
    let value = json!({
        "metadata": {"name": "i", "namespace": "ns", "annotations": annotations}, "spec": {"size": "small"},
    });
    Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn arriving(machine: Machine, infrastructure: Lookup) -> Observed {
    let machine = Arc::new(machine);
    Observed {
        machines: vec![machine.clone()],
        infrastructure_template: template("large", "large"),
        arrivals: vec![Arrival {
            machine,
            infrastructure: Templated { object: infrastructure, template: template("small", "small") },
            bootstrap: Templated::default(),
        }],
        ..Observed::default()
    }
}

#[test]
fn a_machine_that_arrived_begins_its_update_once_it_is_counted() {
    let receiving = [(annotation::RECEIVE_MACHINES_FROM, "old")];
    let counted = [receiving[0], (annotation::ACKNOWLEDGED_MOVE, "m")];
    for (what, annotations, infrastructure, expected) in [
        ("not counted yet", &receiving[..], object("small", false), None),
        ("counted: its object first", &counted[..], object("small", false), Some("i")),
        ("then itself", &counted[..], object("large", true), Some("m")),
        ("a set that receives no more does not wait", &[][..], object("large", true), Some("m")),
        ("without its object nothing begins", &counted[..], Lookup::Missing, None),
    ] {
        let set = set("new", 1, annotations);
        let mut machine = of(&set, "m");
        mark(&mut machine, annotation::UPDATE_IN_PROGRESS);
        mark(&mut machine, annotation::PENDING_ACKNOWLEDGE_MOVE);
        let decision = decided(&set, arriving(machine, infrastructure));
        let found = effects(&decision);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.into_iter().collect::<Vec<_>>(), "{what}");
        match expected {
            Some("i") => {
                let (_, body) = &found[0];
                assert_eq!(body["spec"], json!({"size": "large"}));
                assert_eq!(body["metadata"]["annotations"][annotation::CLONED_FROM_NAME], "large");
                assert_eq!(body["metadata"]["annotations"][annotation::UPDATE_IN_PROGRESS], "");
            }
            Some(_) => {
                let annotations =
                    json!({PENDING_HOOKS: "UpdateMachine", annotation::PENDING_ACKNOWLEDGE_MOVE: null});
                let change = json!({"metadata": {"annotations": annotations}, "spec": {"version": "v2"}});
                assert_eq!(found[0].1, change, "{what}");
            }
            None => assert!(!decision.waits.is_empty(), "{what}"),
        }
    }
}
