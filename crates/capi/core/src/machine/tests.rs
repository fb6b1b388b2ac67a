use std::sync::Arc;

use capstan_capi_types::core::machine::FINALIZER;
use capstan_capi_types::core::{Cluster, Machine, MachineDeletionStatus, MachinePhase, annotation, label};
use capstan_controller::{
    Concluded, Controller, Decision, Effect, Failure, Health, KindName, Look, catalogue,
};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::drain::Plan;
use super::*;
use crate::contract::{ContractVersion, External, Found};
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
fn object(kind: &str, mut value: Value) -> Found {
    value["metadata"] = json!({
        "name": "x", "namespace": "n", "uid": "x-uid", "resourceVersion": "1",
        "labels": {label::CLUSTER_NAME: "c"},
        "ownerReferences": [OwnerReference::controlled_by(&machine())],
    });
    let kind = KindName::namespaced("g", "v1", kind.to_owned(), format!("{}s", kind.to_lowercase()));
    Found::Object(Box::new(External::new(kind, ContractVersion::V1Beta2, value)))
}

fn config(created: bool) -> Found {
    object(
        "FakeConfig",
        json!({"status": {"initialization": {"dataSecretCreated": created}, "dataSecretName": "s"}}),
    )
}

fn infrastructure(provisioned: bool) -> Found {
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

fn running() -> Seen {
    Seen {
        cluster: Some(cluster()),
        bootstrap: config(true),
        infrastructure: infrastructure(true),
        health: Health { last_success: Some(at(NOW - 5)), failures: 0 },
        node: NodeSeen::Found(node()),
        ..Seen::default()
    }
}

fn controller() -> MachineController {
    MachineController::new(Nodes::new())
}

fn look(machine: Machine, seen: Seen) -> Look<MachineController> {
    Look::new(Arc::new(machine), seen, at(NOW))
}

fn decide(machine: Machine, seen: Seen) -> Decision<MachineController> {
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

fn effects(decision: &Decision<MachineController>) -> Vec<String> {
    decision.effects.iter().map(|planned| planned.effect.summary()).collect()
}

/// A machine that ran and is to go; `seen` has what is looked at then.
fn deleting() -> Machine {
    let mut machine = decide(machine(), running()).object;
    machine.metadata.deletion_timestamp = Some(at(NOW - 10).into());
    machine
}

fn going() -> Seen {
    Seen {
        control_plane_machines: 1,
        pods: Some(Ok(Plan::default())),
        volumes: Some(Ok(volumes::Attached::default())),
        ..running()
    }
}

fn pods(names: &[&str]) -> Vec<PodName> {
    names.iter().map(|name| PodName { namespace: "n".to_owned(), name: (*name).to_owned() }).collect()
}

#[test]
fn a_machine_goes_from_pending_to_running_as_its_parts_come() {
    let bare = Seen {
        cluster: Some(cluster()),
        bootstrap: Found::Missing,
        infrastructure: Found::Missing,
        ..Seen::default()
    };
    let steps = [
        (bare, MachinePhase::Pending, ("BootstrapConfigReady", "DoesNotExist")),
        (
            Seen {
                bootstrap: config(false),
                infrastructure: infrastructure(false),
                node: NodeSeen::NotAsked,
                ..running()
            },
            MachinePhase::Pending,
            ("BootstrapConfigReady", "NotReady"),
        ),
        (
            Seen { infrastructure: infrastructure(false), node: NodeSeen::NotAsked, ..running() },
            MachinePhase::Provisioning,
            ("InfrastructureReady", "NotReady"),
        ),
        (
            Seen { node: NodeSeen::Missing, ..running() },
            MachinePhase::Provisioned,
            ("NodeHealthy", "InspectionFailed"),
        ),
        (running(), MachinePhase::Running, ("NodeHealthy", "NodeHealthy")),
    ];
    let mut state = machine();
    for (seen, phase, (kind, reason)) in steps {
        let decision = decide(state, seen);
        assert_eq!(decision.object.status.phase, Some(phase), "{kind} {reason}");
        assert!(condition(&decision, kind).1.ends_with(reason), "{phase}: {:?}", condition(&decision, kind));
        state = decision.object;
    }
    assert_eq!(state.spec.bootstrap.data_secret_name.as_deref(), Some("s"));
    assert_eq!((state.spec.provider_id.as_str(), state.spec.failure_domain.as_str()), ("fake://1", "z"));
    assert_eq!((state.status.addresses.len(), state.status.node_ref.name.as_str()), (1, "node"));
    assert_eq!(state.status.node_info.expect("info").kubelet_version, "v1.34.0");
}

#[test]
fn a_machine_at_rest_asks_for_nothing() {
    let first = decide(machine(), running());
    assert_eq!(effects(&first), [""; 0]);
    let second = decide(first.object.clone(), running());
    assert_eq!((effects(&second), &second.object), (vec![], &first.object));
    assert_eq!(condition(&second, "Ready"), (ConditionStatus::True, "Ready", ""));
    assert_eq!(condition(&second, "Available"), (ConditionStatus::True, "Available", ""));
    assert_eq!(second.look_again, None);
}

#[test]
fn a_machine_without_an_owner_belongs_to_its_cluster_unless_a_label_names_another() {
    let orphan = |extra: Option<&str>| {
        let mut machine = machine();
        machine.metadata.owner_references.clear();
        machine.metadata.labels.clear();
        if let Some(name) = extra {
            machine.metadata.labels.insert(name.to_owned(), "x".to_owned());
        }
        decide(machine, running()).object.metadata
    };
    let adopted = orphan(None);
    assert_eq!(adopted.owner_references, [OwnerReference::to(&*cluster())]);
    assert_eq!(adopted.labels[label::CLUSTER_NAME], "c");
    for name in [label::SET_NAME, label::CONTROL_PLANE_NAME, label::POOL_NAME] {
        assert_eq!(orphan(Some(name)).owner_references, [], "{name}");
    }
}

#[test]
fn finalizer_and_ownership_of_the_parts_come_back_when_stripped() {
    let mut stripped = machine();
    stripped.metadata.finalizers.clear();
    assert_eq!(decide(stripped, running()).object.metadata.finalizers, [FINALIZER]);
    let bare = json!({"metadata": {"name": "x", "namespace": "n", "resourceVersion": "2"}});
    let kind = KindName::namespaced("g", "v1", "FakeMachine", "fakemachines");
    let external = External::new(kind, ContractVersion::V1Beta2, bare);
    let decision = decide(machine(), Seen { infrastructure: Found::Object(Box::new(external)), ..running() });
    let Some(Effect::Patch { patch, .. }) = decision.effects.first().map(|planned| &planned.effect) else {
        panic!("no patch")
    };
    assert_eq!(
        patch.body()["metadata"]["ownerReferences"],
        json!([OwnerReference::controlled_by(&machine())])
    );
}

#[test]
fn a_machine_is_available_only_after_it_was_ready_for_long_enough() {
    let mut slow = machine();
    slow.spec.min_ready_seconds = Some(30);
    let decision = decide(slow, running());
    assert_eq!(condition(&decision, "Available"), (ConditionStatus::False, "WaitingForMinReadySeconds", ""));
    assert_eq!(decision.look_again, Some(std::time::Duration::from_secs(30)));
    let mut later = look(decision.object, running());
    later.now = at(NOW + 30);
    later.seen.health.last_success = Some(at(NOW + 29));
    assert_eq!(condition(&controller().decide(&later), "Available").0, ConditionStatus::True);
}

#[test]
fn a_silent_cluster_does_not_change_what_is_told_until_the_grace_is_over() {
    let ran = decide(machine(), running()).object;
    let silent = |last: i64| Seen {
        node: NodeSeen::NotConnected("refused".to_owned()),
        health: Health { last_success: Some(at(last)), failures: 3 },
        ..running()
    };
    let soon = decide(ran.clone(), silent(NOW - 60));
    assert_eq!(condition(&soon, "NodeHealthy").0, ConditionStatus::True);
    let mut old_cluster = Cluster::clone(&cluster());
    old_cluster.status.conditions[0].last_transition_time = at(0).into();
    let late = decide(ran, Seen { cluster: Some(Arc::new(old_cluster)), ..silent(NOW - 301) });
    assert_eq!(
        condition(&late, "NodeHealthy"),
        (ConditionStatus::Unknown, "ConnectionDown", "Last successful probe at 1970-01-01T00:11:39Z")
    );
}

#[test]
fn a_node_that_vanished_makes_the_machine_unhealthy() {
    let ran = decide(machine(), running()).object;
    let decision = decide(ran, Seen { node: NodeSeen::Missing, ..running() });
    assert_eq!(
        condition(&decision, "NodeHealthy"),
        (ConditionStatus::False, "NodeDeleted", "Node node has been deleted while the Machine still exists")
    );
    assert_eq!(condition(&decision, "Ready").0, ConditionStatus::False);
}

#[test]
fn a_machine_goes_stage_by_stage() {
    let hooked = |name: &str| {
        let mut machine = deleting();
        machine.metadata.annotations.insert(format!("{name}/x"), String::new());
        machine
    };
    let to_evict = Plan { evict_now: pods(&["a"]), ..Plan::default() };
    let attached =
        volumes::Attached { claims: ["n/claim".to_owned()].into(), ..volumes::Attached::default() };
    let gone = || Seen { infrastructure: Found::Missing, bootstrap: Found::Missing, ..going() };
    let stages = [
        (hooked(annotation::PRE_DRAIN_HOOK_PREFIX), going(), vec![], "WaitingForPreDrainHook"),
        (
            deleting(),
            Seen { pods: Some(Ok(to_evict)), volumes: None, ..going() },
            vec!["cordon node node", "evict pods n/a"],
            "DrainingNode",
        ),
        (
            deleting(),
            Seen { volumes: Some(Ok(attached)), ..going() },
            vec!["cordon node node"],
            "WaitingForVolumeDetach",
        ),
        (
            hooked(annotation::PRE_TERMINATE_HOOK_PREFIX),
            going(),
            vec!["cordon node node"],
            "WaitingForPreTerminateHook",
        ),
        (
            deleting(),
            going(),
            vec!["cordon node node", "delete fakemachines.g n/x"],
            "WaitingForInfrastructureDeletion",
        ),
        (
            deleting(),
            Seen { infrastructure: Found::Missing, ..going() },
            vec!["delete fakeconfigs.g n/x"],
            "WaitingForBootstrapDeletion",
        ),
        (deleting(), gone(), vec!["delete node node"], "DeletingNode"),
        (deleting(), Seen { node: NodeSeen::Missing, ..gone() }, vec![], "DeletionCompleted"),
    ];
    for (machine, seen, expected, reason) in stages {
        let decision = decide(machine, seen);
        assert_eq!(effects(&decision), expected, "{reason}");
        assert_eq!(condition(&decision, "Deleting").1, reason);
        assert_eq!(decision.object.metadata.finalizers.is_empty(), reason == "DeletionCompleted", "{reason}");
        assert_eq!(decision.object.status.phase, Some(MachinePhase::Deleting));
    }
}

#[test]
fn the_drain_is_left_out_where_nobody_would_mind() {
    let busy = || Seen {
        pods: Some(Ok(Plan { evict_now: pods(&["a"]), ..Plan::default() })),
        volumes: None,
        ..going()
    };
    let mut going_cluster = Cluster::clone(&cluster());
    going_cluster.metadata.deletion_timestamp = Some(at(1).into());
    let mut excluded = deleting();
    excluded.metadata.annotations.insert(annotation::EXCLUDE_NODE_DRAINING.to_owned(), String::new());
    excluded
        .metadata
        .annotations
        .insert(annotation::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH.to_owned(), String::new());
    let mut timed_out = deleting();
    timed_out.spec.deletion.node_drain_timeout_seconds = Some(60);
    timed_out.spec.deletion.node_volume_detach_timeout_seconds = Some(60);
    timed_out.status.deletion = Some(MachineDeletionStatus {
        node_drain_start_time: Some(at(NOW - 60).into()),
        wait_for_node_volume_detach_start_time: Some(at(NOW - 60).into()),
        ..MachineDeletionStatus::default()
    });
    let mut no_node = deleting();
    no_node.status.node_ref.name.clear();
    for (what, machine, seen) in [
        ("the cluster goes", deleting(), Seen { cluster: Some(Arc::new(going_cluster)), ..busy() }),
        ("no control plane is left", deleting(), Seen { control_plane_machines: 0, ..busy() }),
        ("an annotation says so", excluded, busy()),
        ("its time is up", timed_out, busy()),
        ("it never was a node", no_node, Seen { node: NodeSeen::NotAsked, ..busy() }),
    ] {
        let decision = decide(machine, seen);
        assert_eq!(condition(&decision, "Deleting").1, "WaitingForInfrastructureDeletion", "{what}");
    }
}

#[test]
fn what_a_budget_refused_is_told_and_not_tried_again_at_once() {
    let plan = Plan { evict_now: pods(&["a"]), ..Plan::default() };
    let mut look = look(deleting(), Seen { pods: Some(Ok(plan)), volumes: None, ..going() });
    let refused = Evicted {
        refused: vec![(
            pods(&["a"])[0].clone(),
            "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        )],
    };
    look.concluded = vec![
        Concluded { call: MachineCall::Cordon { node: "node".to_owned() }, result: Some(Value::Null) },
        Concluded {
            call: MachineCall::Evict { pods: pods(&["a"]), grace_seconds: None },
            result: Some(serde_json::to_value(refused).expect("a result")),
        },
    ];
    let decision = controller().decide(&look);
    assert_eq!(effects(&decision), [""; 0]);
    assert_eq!(
        condition(&decision, "Deleting").2,
        "Drain not completed yet (started at 1970-01-01T00:16:40Z):\n\
         * Pod n/a: cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(decision.look_again, Some(std::time::Duration::from_secs(20)));
}

#[test]
fn a_node_that_cannot_be_deleted_holds_the_machine_only_for_its_time_and_is_tried_more_than_once() {
    let gone = || Seen { infrastructure: Found::Missing, bootstrap: Found::Missing, ..going() };
    let failed = |limit, tried| {
        let mut machine = deleting();
        machine.spec.deletion.node_deletion_timeout_seconds = limit;
        let mut look = look(machine, gone());
        let call = MachineCall::DeleteNode { node: "node".to_owned() };
        look.failures = vec![Failure {
            effect: "delete node node".to_owned(),
            call: Some(call),
            error: capstan_controller::Error {
                code: catalogue::WORKLOAD_UNREACHABLE,
                message: "refused".to_owned(),
            },
            since: at(NOW - tried),
            attempts: 2,
        }];
        let decision = controller().decide(&look);
        (condition(&decision, "Deleting").1.to_owned(), decision.object.metadata.finalizers.is_empty())
    };
    assert_eq!(failed(None, 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(0), 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(60), 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(10), 0), ("DeletingNode".to_owned(), false), "one refusal is not the end");
    assert_eq!(failed(Some(10), 10), ("DeletionCompleted".to_owned(), true));
}

#[test]
fn certificates_of_a_control_plane_machine_expire_when_the_machine_or_its_configuration_says() {
    let expiry = |own: Option<&str>| {
        let mut machine = machine();
        machine.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
        if let Some(own) = own {
            machine.metadata.annotations.insert(annotation::CERTIFICATES_EXPIRY.to_owned(), own.to_owned());
        }
        decide(machine, running()).object.status.certificates_expiry_date.map(|time| time.to_string())
    };
    assert_eq!(expiry(Some("2027-01-02T03:04:05Z")).as_deref(), Some("2027-01-02T03:04:05Z"));
    assert_eq!(expiry(None), None);
}

#[test]
fn a_machine_of_a_deployment_says_whether_it_is_what_is_wanted() {
    use capstan_capi_types::core::{MachineDeployment, MachineSet};
    type Change<'a> = &'a dyn Fn(&mut MachineSet, &mut MachineDeployment);
    let seen = |change: Change<'_>| {
        let (mut set, mut deployment) = (MachineSet::default(), MachineDeployment::default());
        set.metadata.creation_timestamp = Some(at(500).into());
        change(&mut set, &mut deployment);
        Seen { set: Some(Arc::new(set)), deployment: Some(Arc::new(deployment)), ..running() }
    };
    let mut right = machine();
    right.spec.version = "v1.34.0".to_owned();
    let cases: [(&str, Change<'_>, _); 4] = [
        ("v1.34.0", &|_, _| (), (ConditionStatus::True, "UpToDate", "")),
        (
            "v1.34.0",
            &|_, deployment| deployment.spec.template.spec.failure_domain = "b".to_owned(),
            (ConditionStatus::False, "NotUpToDate", "* Failure domain , b required"),
        ),
        (
            "v1.34.0",
            &|_, deployment| deployment.spec.rollout.after = Some(at(600).into()),
            (ConditionStatus::False, "NotUpToDate", "* MachineDeployment spec.rolloutAfter expired"),
        ),
        (
            "v1.35.0",
            &|_, _| (),
            (
                ConditionStatus::False,
                "Updating",
                "* Node.status.nodeInfo.kubeletVersion v1.34.0, v1.35.0 required",
            ),
        ),
    ];
    for (version, change, expected) in cases {
        let mut machine = right.clone();
        machine.spec.version = version.to_owned();
        assert_eq!(condition(&decide(machine, seen(change)), "UpToDate"), expected);
    }
    let alone = decide(right, running());
    assert!(alone.object.status.conditions.condition("UpToDate").is_none(), "nobody to compare it with");
}
