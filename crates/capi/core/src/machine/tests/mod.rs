//! Decisions about one machine.

mod conditions;
mod creation;
mod deletion;
mod in_place;

use std::sync::Arc;

use capstan_capi_types::core::machine::FINALIZER;
use capstan_capi_types::core::{Cluster, Machine, MachineDeletionStatus, MachinePhase, annotation, label};
use capstan_controller::testing::{best_efforts, effects};
use capstan_controller::{
    Concluded, Controller, Decision, Effect, Failure, Health, KindName, Look, catalogue,
};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::drain::Plan;
use super::*;
use crate::contract::{ContractVersion, External, Lookup};
use crate::workload::Node;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a moment")
}

const NOW: i64 = 1000;

fn machine() -> Machine {
    let mut machine = Machine { metadata: ObjectMeta::named("n", "m"), ..Machine::default() };
    machine.metadata.uid = "machine-uid".to_owned();
    machine.metadata.finalizers = vec![FINALIZER.to_owned()];
    machine.metadata.labels.insert(label::CLUSTER_NAME.to_owned(), "c".to_owned());
    machine.metadata.owner_references = vec![OwnerReference::to(&*cluster())];
    machine.spec.cluster_name = "c".to_owned();
    machine.spec.infrastructure_ref.kind = "FakeMachine".to_owned();
    machine.spec.bootstrap.config_ref.kind = "FakeConfig".to_owned();
    machine
}

fn cluster() -> Arc<Cluster> {
    let mut cluster = Cluster { metadata: ObjectMeta::named("n", "c"), ..Cluster::default() };
    cluster.metadata.uid = "cluster-uid".to_owned();
    cluster.status.initialization.infrastructure_provisioned = Some(true);
    cluster.status.conditions.push(Condition {
        kind: "ControlPlaneInitialized".to_owned(),
        status: ConditionStatus::True,
        observed_generation: None,
        last_transition_time: at(NOW - 100).into(),
        reason: "Initialized".to_owned(),
        message: String::new(),
    });
    Arc::new(cluster)
}

/// A provider's object that already belongs to the machine.
fn object(kind: &str, mut value: Value) -> Lookup {
    value["metadata"] = json!({
        "name": "x", "namespace": "n", "uid": "x-uid", "resourceVersion": "1",
        "labels": {label::CLUSTER_NAME: "c"},
        "ownerReferences": [OwnerReference::controlled_by(&machine())],
    });
    let kind = KindName::namespaced("g", "v1", kind.to_owned(), format!("{}s", kind.to_lowercase()));
    Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn config(created: bool) -> Lookup {
    object(
        "FakeConfig",
        json!({"status": {"initialization": {"dataSecretCreated": created}, "dataSecretName": "s"}}),
    )
}

fn infrastructure(provisioned: bool) -> Lookup {
    let value = json!({
        "spec": {"providerID": "fake://1", "failureDomain": "z"},
        "status": {
            "initialization": {"provisioned": provisioned},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    });
    object("FakeMachine", value)
}

fn node() -> Arc<Node> {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "1970-01-01T00:15:00Z"});
    let annotations = json!({
        annotation::CLUSTER_NAME: "c", annotation::CLUSTER_NAMESPACE: "n", annotation::MACHINE: "m",
        annotation::LABELS_FROM_MACHINE: "", annotation::ANNOTATIONS_FROM_MACHINE: "", annotation::TAINTS_FROM_MACHINE: "",
    });
    let node = json!({
        "metadata": {"name": "node", "annotations": annotations},
        "spec": {"providerID": "fake://1"},
        "status": {"nodeInfo": {"kubeletVersion": "v1.34.0"}, "conditions": [
            condition("Ready", "True"), condition("MemoryPressure", "False"),
            condition("DiskPressure", "False"), condition("PIDPressure", "False"),
        ]},
    });
    Arc::new(serde_json::from_value(node).expect("a node"))
}

fn running() -> Observed {
    Observed {
        cluster: Some(cluster()),
        bootstrap: config(true),
        infrastructure: infrastructure(true),
        health: Health { last_success: Some(at(NOW - 5)), failures: 0, error: None },
        node: ObservedNode::Found(node()),
        ..Observed::default()
    }
}

fn controller() -> MachineController {
    MachineController::new(Nodes::new(), Settings::default())
}

fn look(machine: Machine, seen: Observed) -> Look<MachineController> {
    Look::new(Arc::new(machine), seen, at(NOW))
}

fn decide(machine: Machine, seen: Observed) -> Decision<MachineController> {
    controller().decide(&look(machine, seen))
}

fn condition<'a>(
    decision: &'a Decision<MachineController>,
    kind: &str,
) -> (ConditionStatus, &'a str, &'a str) {
    let condition =
        decision.object.status.conditions.condition(kind).unwrap_or_else(|| panic!("no condition {kind}"));
    (condition.status, &condition.reason, &condition.message)
}

/// A machine that ran and is being deleted.
fn deleting() -> Machine {
    let mut machine = decide(machine(), running()).object;
    machine.metadata.deletion_timestamp = Some(at(NOW - 10).into());
    machine
}

fn going() -> Observed {
    Observed {
        control_plane_machines: 1,
        pods: Some(Ok(Plan::default())),
        volumes: Some(Ok(volumes::Attached::default())),
        ..running()
    }
}

fn pods(names: &[&str]) -> Vec<PodName> {
    names.iter().map(|name| PodName { namespace: "n".to_owned(), name: (*name).to_owned() }).collect()
}
