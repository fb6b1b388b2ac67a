use std::sync::Arc;

use capstan_capi_types::core::cluster::FINALIZER;
use capstan_capi_types::core::{
    APIEndpoint, Cluster, ClusterAvailabilityGate, ClusterPhase, ConditionPolarity, Machine,
    MachineDeployment, label,
};
use capstan_controller::testing::effects;
use capstan_controller::{Controller, Decision, Effect, Health, KindName, Look, NoCall};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::*;
use crate::contract::{ContractVersion, External, Lookup};
use crate::testing::at;

fn cluster() -> Cluster {
    let mut cluster = Cluster { metadata: ObjectMeta::named("n", "c"), ..Cluster::default() };
    cluster.metadata.uid = "cluster-uid".to_owned();
    cluster.metadata.finalizers = vec![FINALIZER.to_owned()];
    cluster.spec.infrastructure_ref.kind = "FakeCluster".to_owned();
    cluster.spec.control_plane_ref.kind = "FakeControlPlane".to_owned();
    cluster
}

/// A provider's object that already belongs to the cluster.
fn object(kind: &str, mut value: Value) -> Lookup {
    value["metadata"] = json!({
        "name": "x", "namespace": "n", "uid": "x-uid", "resourceVersion": "1",
        "labels": {label::CLUSTER_NAME: "c"},
        "ownerReferences": [OwnerReference::to(&cluster())],
    });
    let kind = KindName::namespaced("g", "v1", kind.to_owned(), "fakes");
    Lookup::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn infrastructure(value: Value) -> Lookup {
    object("FakeCluster", value)
}

fn provisioned() -> Lookup {
    infrastructure(json!({
        "spec": {"controlPlaneEndpoint": {"host": "1.2.3.4", "port": 6443}},
        "status": {"initialization": {"provisioned": true}, "failureDomains": [{"name": "b"}, {"name": "a"}]},
    }))
}

fn initialized() -> Lookup {
    object(
        "FakeControlPlane",
        json!({"spec": {"replicas": 3}, "status": {
            "initialization": {"controlPlaneInitialized": true}, "replicas": 3, "readyReplicas": 2,
        }}),
    )
}

fn running() -> Observed {
    Observed {
        infrastructure: provisioned(),
        control_plane: initialized(),
        health: Health { last_success: Some(at(95)), failures: 0, error: None },
        ..Observed::default()
    }
}

fn decide(cluster: Cluster, seen: Observed) -> Decision<ClusterController> {
    let look = Look::new(Arc::new(cluster), seen, at(100));
    ClusterController::new().decide(&look)
}

fn condition<'a>(
    decision: &'a Decision<ClusterController>,
    kind: &str,
) -> (ConditionStatus, &'a str, &'a str) {
    let condition =
        decision.object.status.conditions.condition(kind).unwrap_or_else(|| panic!("no condition {kind}"));
    (condition.status, &condition.reason, &condition.message)
}

fn deployment(name: &str, deleting: bool) -> Arc<MachineDeployment> {
    let mut deployment =
        MachineDeployment { metadata: ObjectMeta::named("n", name), ..MachineDeployment::default() };
    deployment.metadata.owner_references = vec![OwnerReference::to(&cluster())];
    deployment.metadata.deletion_timestamp = deleting.then(|| at(90).into());
    Arc::new(deployment)
}

fn worker(name: &str) -> Arc<Machine> {
    Arc::new(Machine { metadata: ObjectMeta::named("n", name), ..Machine::default() })
}

fn deleting() -> Cluster {
    let mut cluster = cluster();
    cluster.metadata.deletion_timestamp = Some(at(50).into());
    cluster
}

#[test]
fn a_new_cluster_gets_its_finalizer_and_waits_for_objects_that_do_not_exist() {
    let mut new = cluster();
    new.metadata.finalizers.clear();
    let seen =
        Observed { infrastructure: Lookup::Missing, control_plane: Lookup::Missing, ..Observed::default() };
    let decision = decide(new, seen);
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
    assert_eq!(
        decision.waits.iter().map(|wait| wait.what.as_str()).collect::<Vec<_>>(),
        ["FakeCluster to be created", "FakeControlPlane to be created"]
    );
    assert_eq!(
        condition(&decision, "InfrastructureReady"),
        (ConditionStatus::False, "ObjectDoesNotExist", "FakeCluster does not exist")
    );
    assert_eq!(decision.object.status.phase, Some(ClusterPhase::Provisioning));
}

#[test]
fn an_unowned_object_gets_an_owner_reference_without_controller() {
    let stray = json!({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "4"}});
    let kind = KindName::namespaced("g", "v1", "FakeCluster", "fakes");
    let external = External::new(kind, ContractVersion::V1Beta2, stray);
    let decision =
        decide(cluster(), Observed { infrastructure: Lookup::Object(Box::new(external)), ..running() });
    let Some(Effect::<NoCall>::Patch { patch, .. }) = decision.effects.first().map(|planned| &planned.effect)
    else {
        panic!("no patch")
    };
    assert_eq!(patch.body()["metadata"]["ownerReferences"][0]["uid"], "cluster-uid");
    assert_eq!(patch.body()["metadata"]["ownerReferences"][0].get("controller"), None);
    assert_eq!(patch.body()["metadata"]["labels"][label::CLUSTER_NAME], "c");
    assert_eq!(patch.body()["metadata"]["resourceVersion"], "4");
}

#[test]
fn endpoint_and_failure_domains_come_with_the_infrastructure_and_not_before() {
    let early = infrastructure(json!({"spec": {"controlPlaneEndpoint": {"host": "h", "port": 1}}}));
    let decision = decide(cluster(), Observed { infrastructure: early, ..Observed::default() });
    assert!(decision.object.spec.control_plane_endpoint.is_zero());
    assert_eq!(decision.object.status.initialization.infrastructure_provisioned, None);
    assert_eq!(
        condition(&decision, "InfrastructureReady"),
        (ConditionStatus::False, "NotReady", "FakeCluster status.initialization.provisioned is false")
    );

    let decision = decide(cluster(), running());
    assert_eq!(
        decision.object.spec.control_plane_endpoint,
        APIEndpoint { host: "1.2.3.4".to_owned(), port: 6443 }
    );
    let domains: Vec<_> =
        decision.object.status.failure_domains.iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(domains, ["a", "b"]);
    assert_eq!(decision.object.status.phase, Some(ClusterPhase::Provisioned));
    assert_eq!(decision.object.status.initialization.control_plane_initialized, Some(true));
}

#[test]
fn an_endpoint_that_is_set_is_never_overwritten() {
    let mut set = cluster();
    set.spec.control_plane_endpoint = APIEndpoint { host: "mine".to_owned(), port: 1 };
    assert_eq!(decide(set, running()).object.spec.control_plane_endpoint.host, "mine");
}

#[test]
fn an_idle_cluster_has_no_effects() {
    let first = decide(cluster(), running());
    assert_eq!(effects(&first), [""; 0]);
    let second = decide(first.object.clone(), running());
    assert_eq!(second.object, first.object);
    assert_eq!(effects(&second), [""; 0]);
    assert_eq!(condition(&second, "Available"), (ConditionStatus::True, "Available", ""));
}

#[test]
fn a_paused_cluster_reports_it_and_has_no_effects() {
    let mut paused = cluster();
    paused.spec.paused = Some(true);
    let seen = Observed {
        infrastructure: provisioned(),
        deployments: vec![deployment("d", false)],
        ..Observed::default()
    };
    let mut look = Look::new(Arc::new(paused), seen, at(100));
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = ClusterController::new().decide(&look);
    assert_eq!(
        condition(&decision, "Paused"),
        (ConditionStatus::True, "Paused", "Cluster spec.paused is set to true")
    );
    assert_eq!((effects(&decision), decision.object.status.conditions.len()), (vec![], 1));
}

#[test]
fn a_cluster_is_deleted_workers_control_plane_infrastructure_finalizer() {
    let stages = [
        (
            Observed {
                deployments: vec![deployment("d", false)],
                worker_machines: vec![worker("w")],
                ..running()
            },
            vec!["delete machinedeployments.cluster.x-k8s.io n/d"],
            ("WaitingForWorkersDeletion", "* MachineDeployments: d\n* Worker Machines: w"),
        ),
        (
            Observed { deployments: vec![deployment("d", true)], ..running() },
            vec![],
            ("WaitingForWorkersDeletion", "* MachineDeployments: d"),
        ),
        (
            running(),
            vec!["delete fakes.g n/x"],
            ("WaitingForControlPlaneDeletion", "Waiting for FakeControlPlane to be deleted"),
        ),
        (
            Observed { control_plane: Lookup::Missing, ..running() },
            vec!["delete fakes.g n/x"],
            ("WaitingForInfrastructureDeletion", "Waiting for FakeCluster to be deleted"),
        ),
        (
            Observed { control_plane: Lookup::Missing, infrastructure: Lookup::Missing, ..running() },
            vec![],
            ("DeletionCompleted", "Deletion completed"),
        ),
    ];
    for (seen, expected, (reason, message)) in stages {
        let decision = decide(deleting(), seen);
        assert_eq!(effects(&decision), expected, "{reason}");
        assert_eq!(condition(&decision, "Deleting"), (ConditionStatus::True, reason, message));
        assert_eq!(decision.object.metadata.finalizers.is_empty(), reason == "DeletionCompleted", "{reason}");
    }
}

#[test]
fn nothing_is_deleted_while_the_control_plane_cannot_be_read() {
    let seen = Observed { control_plane: Lookup::Unusable("no label".to_owned()), ..running() };
    let decision = decide(deleting(), seen);
    assert_eq!(effects(&decision), [""; 0]);
    assert_eq!(condition(&decision, "Deleting"), (ConditionStatus::True, "InternalError", "no label"));
    assert_eq!(decision.object.metadata.finalizers, [FINALIZER]);
}

#[test]
fn machines_of_a_control_plane_object_are_deleted_by_it() {
    let control_plane_machine = || {
        let mut machine = Machine { metadata: ObjectMeta::named("n", "cp"), ..Machine::default() };
        machine.metadata.owner_references = vec![OwnerReference::to(&cluster())];
        vec![Arc::new(machine)]
    };
    let decision =
        decide(deleting(), Observed { control_plane_machines: control_plane_machine(), ..running() });
    assert_eq!(effects(&decision), ["delete fakes.g n/x"]);
    let mut alone = deleting();
    alone.spec.control_plane_ref.kind.clear();
    let seen = Observed {
        control_plane: Lookup::NotReferenced,
        control_plane_machines: control_plane_machine(),
        ..running()
    };
    assert_eq!(effects(&decide(alone, seen)), ["delete machines.cluster.x-k8s.io n/cp"]);
}

#[test]
fn the_probe_reports_since_when_the_cluster_is_unreachable() {
    let health = |last: Option<i64>, failures| Health { last_success: last.map(at), failures, error: None };
    for (health, expected) in [
        (health(None, 0), (ConditionStatus::False, "ProbeFailed", "Remote connection not established yet")),
        (health(None, 5), (ConditionStatus::False, "ProbeFailed", "Remote connection probe failed")),
        (health(Some(90), 0), (ConditionStatus::True, "ProbeSucceeded", "")),
        (health(Some(90), 3), (ConditionStatus::True, "ProbeSucceeded", "")),
        (
            health(Some(-300), 9),
            (
                ConditionStatus::False,
                "ProbeFailed",
                "Remote connection probe failed, probe last succeeded at 2001-09-09T01:41:40Z",
            ),
        ),
    ] {
        let decision = decide(cluster(), Observed { health: health.clone(), ..running() });
        assert_eq!(condition(&decision, "RemoteConnectionProbe"), expected, "{health:?}");
    }
}

#[test]
fn a_vanished_object_is_reported_differently_from_a_missing_one() {
    for (was, going, reason, message) in [
        (false, false, "DoesNotExist", "FakeCluster does not exist"),
        (true, false, "Deleted", "FakeCluster has been deleted while the cluster still exists"),
        (false, true, "DoesNotExist", "FakeCluster does not exist"),
        (true, true, "Deleted", "FakeCluster has been deleted"),
    ] {
        let mut cluster = if going { deleting() } else { cluster() };
        cluster.status.initialization.infrastructure_provisioned = was.then_some(true);
        let decision = decide(cluster, Observed { infrastructure: Lookup::Missing, ..running() });
        let (status, reported, words) = condition(&decision, "InfrastructureReady");
        assert_eq!((status, words), (ConditionStatus::False, message));
        assert!(reported.ends_with(reason), "{reported}");
    }
}

#[test]
fn availability_gates_affect_availability() {
    let mut gated = cluster();
    gated.spec.availability_gates = vec![ClusterAvailabilityGate {
        condition_type: "example.com/Backup".to_owned(),
        polarity: Some(ConditionPolarity::Negative),
    }];
    let gate = |status| Condition {
        kind: "example.com/Backup".to_owned(),
        status,
        observed_generation: None,
        last_transition_time: at(0).into(),
        reason: "Because".to_owned(),
        message: "runs".to_owned(),
    };
    for (conditions, expected) in [
        (
            vec![],
            (
                ConditionStatus::Unknown,
                "AvailableUnknown",
                "* example.com/Backup: Condition not yet reported",
            ),
        ),
        (
            vec![gate(ConditionStatus::True)],
            (ConditionStatus::False, "NotAvailable", "* example.com/Backup: runs"),
        ),
        (
            vec![gate(ConditionStatus::False)],
            (ConditionStatus::True, "Available", "* example.com/Backup: runs"),
        ),
    ] {
        let mut cluster = gated.clone();
        cluster.status.conditions = conditions;
        let decision = decide(cluster, running());
        assert_eq!(condition(&decision, "Available"), expected);
    }
}

#[test]
fn replicas_are_counted_from_control_plane_and_worker_groups() {
    let mut first = MachineDeployment::clone(&deployment("a", false));
    first.spec.replicas = Some(2);
    first.status.replicas = Some(2);
    first.status.ready_replicas = Some(1);
    let mut second = MachineDeployment::clone(&deployment("b", false));
    second.spec.replicas = Some(3);
    let seen = Observed { deployments: vec![Arc::new(first), Arc::new(second)], ..running() };
    let status = decide(cluster(), seen).object.status;
    let (plane, workers) = (status.control_plane.expect("counts"), status.workers.expect("counts"));
    assert_eq!((plane.desired_replicas, plane.replicas, plane.ready_replicas), (Some(3), Some(3), Some(2)));
    assert_eq!(
        (workers.desired_replicas, workers.replicas, workers.ready_replicas),
        (Some(5), Some(2), Some(1))
    );
    assert_eq!(workers.available_replicas, None);
}

#[test]
fn an_operation_changes_only_with_its_steps() {
    use capstan_controller::operation::{Intention, Operation};
    let first = decide(cluster(), Observed { infrastructure: infrastructure(json!({})), ..running() });
    let operation = Operation::of(&first.object.metadata).expect("an operation");
    assert_eq!(operation.intention, Intention::Create);
    assert_eq!(operation.current().map(|step| step.name.as_str()), Some("Network"));
    assert_eq!(operation.blocked_by.map(|blocked| blocked.reason), Some("NotReady".to_owned()));
    let again = |second| {
        let seen = Observed { infrastructure: infrastructure(json!({})), ..running() };
        let look = Look::new(Arc::new(first.object.clone()), seen, at(second));
        ClusterController::new().decide(&look).object.metadata.annotations
    };
    assert_eq!(again(500), first.object.metadata.annotations, "time alone changes nothing");
}

#[test]
fn tools_that_wait_see_a_cluster_in_progress_until_its_parts_are_done() {
    let plane =
        |status: Value| object("FakeControlPlane", json!({"spec": {"replicas": 1}, "status": status}));
    let reconciling = json!([{"type": "Reconciling", "status": "True", "reason": "ScalingUp",
        "message": "Scaling up from 1 to 3 replicas", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let up = json!({"initialization": {"controlPlaneInitialized": true}});
    let mut scaling = up.clone();
    scaling["conditions"] = reconciling;
    let unobserved = || {
        let mut deployment = MachineDeployment::clone(&deployment("d", false));
        deployment.metadata.generation = 2;
        deployment.status.observed_generation = 1;
        deployment.status.conditions.push(crate::testing::condition("Available", "True", "Available", ""));
        vec![Arc::new(deployment)]
    };
    let generation = "MachineDeployment d: generation 2 is not observed yet, the last one was 1";
    for (what, seen, expected) in [
        ("settled", Observed { control_plane: plane(up.clone()), ..running() }, None),
        (
            "a part says so",
            Observed { control_plane: plane(scaling), ..running() },
            Some("FakeControlPlane x: Scaling up from 1 to 3 replicas"),
        ),
        (
            "a part has not seen its spec",
            Observed { control_plane: plane(up.clone()), deployments: unobserved(), ..running() },
            Some(generation),
        ),
        (
            "not available",
            Observed { control_plane: plane(json!({})), ..running() },
            Some(
                "* ControlPlaneAvailable: FakeControlPlane status.initialization.controlPlaneInitialized is false",
            ),
        ),
    ] {
        let decided = decide(cluster(), seen).object;
        let reported = decided.status.conditions.condition("Reconciling");
        assert_eq!(reported.map(|condition| condition.message.as_str()), expected, "{what}");
    }
}
