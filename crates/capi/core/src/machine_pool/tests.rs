use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::machine_pool::FINALIZER;
use capstan_capi_types::core::{Cluster, Machine, MachinePool, MachinePoolPhase, annotation, label};
use capstan_controller::testing::effects;
use capstan_controller::{Controller, Decision, Effect, KindName, Look, Patch};
use capstan_object::{ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use serde_json::{Value, json};

use super::*;
use crate::contract::{ContractVersion, External, Lookup};
use crate::testing::at;
use crate::workload::Node;

fn cluster() -> Cluster {
    let metadata = ObjectMeta { uid: "c".to_owned(), ..ObjectMeta::named("ns", "prod") };
    Cluster { metadata, ..Cluster::default() }
}

fn pool(replicas: i32) -> MachinePool {
    let pool = json!({
        "metadata": {
            "name": "pool", "namespace": "ns", "uid": "p", "generation": 1, "resourceVersion": "1",
            "finalizers": [FINALIZER],
        },
        "spec": {"clusterName": "prod", "replicas": replicas, "template": {
            "metadata": {"labels": {"tier": "web"}},
            "spec": {
                "clusterName": "prod", "version": "v1.36.0",
                "deletion": {"nodeDeletionTimeoutSeconds": 10, "nodeDrainTimeoutSeconds": 60},
                "bootstrap": {"configRef": {"apiGroup": "boot.x", "kind": "BootConfig", "name": "pool"}},
                "infrastructureRef": {"apiGroup": "infra.x", "kind": "FakeMachinePool", "name": "pool"},
            },
        }},
    });
    serde_json::from_value(pool).expect("a pool")
}

/// A provider's object that belongs to the pool already.
fn owned(group: &str, kind: &str, mut value: Value) -> External {
    value["metadata"] = json!({
        "name": "pool", "namespace": "ns", "uid": format!("{kind}-uid"), "resourceVersion": "1",
        "labels": {label::CLUSTER_NAME: "prod"},
        "ownerReferences": [OwnerReference::controlled_by(&pool(0))],
    });
    let plural = format!("{}s", kind.to_lowercase());
    External::new(
        KindName::namespaced(group.to_owned(), "v1", kind.to_owned(), plural),
        ContractVersion::V1Beta2,
        value,
    )
}

fn config() -> External {
    let status = json!({"initialization": {"dataSecretCreated": true}, "dataSecretName": "pool-data"});
    owned("boot.x", "BootConfig", json!({"status": status}))
}

fn infrastructure(ids: &[&str]) -> External {
    let status = json!({"initialization": {"provisioned": true}, "replicas": ids.len()});
    owned("infra.x", "FakeMachinePool", json!({"spec": {"providerIDList": ids}, "status": status}))
}

/// A machine of the provider.
fn infrastructure_machine(name: &str) -> External {
    let value = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("im-{name}")},
        "spec": {"providerID": format!("fake://{name}")},
    });
    External::new(
        KindName::namespaced("infra.x", "v1", "FakeMachine", "fakemachines"),
        ContractVersion::V1Beta2,
        value,
    )
}

fn node(name: &str, ready: bool) -> Arc<Node> {
    let status = if ready { "True" } else { "False" };
    let node = json!({
        "metadata": {"name": name, "uid": format!("n-{name}"), "resourceVersion": "3"},
        "spec": {"providerID": format!("fake://{name}"), "taints": [
            {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
        ]},
        "status": {
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
            "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2001-09-09T01:46:40Z"}],
        },
    });
    Arc::new(serde_json::from_value(node).expect("a node"))
}

fn nodes(present: &[Arc<Node>], referenced: &[Arc<Node>]) -> ObservedNodes {
    let by_id = present.iter().map(|node| (node.spec.provider_id.clone(), node.clone()));
    ObservedNodes::Known { by_id: by_id.collect::<BTreeMap<_, _>>(), referenced: referenced.to_vec() }
}

fn object(external: External) -> Lookup {
    Lookup::Object(Box::new(external))
}

fn seen(ids: &[&str]) -> Observed {
    Observed {
        cluster: Some(Arc::new(cluster())),
        bootstrap: object(config()),
        infrastructure: object(infrastructure(ids)),
        infrastructure_kind_exists: true,
        ..Observed::default()
    }
}

fn decided(pool: &MachinePool, seen: Observed) -> Decision<MachinePools> {
    let controller = MachinePools::new(crate::workload::Nodes::new());
    controller.decide(&Look::new(Arc::new(pool.clone()), seen, at(1000)))
}

fn condition<'a>(decision: &'a Decision<MachinePools>, kind: &str) -> (ConditionStatus, &'a str, &'a str) {
    let conditions = &decision.object.status.conditions;
    let found = conditions.condition(kind).unwrap_or_else(|| panic!("no condition {kind}"));
    (found.status, &found.reason, &found.message)
}

#[test]
fn a_pool_claims_what_it_refers_to_and_copies_what_it_reports() {
    let mut seen = seen(&["fake://a"]);
    let mut unowned = infrastructure(&["fake://a"]);
    unowned.metadata.owner_references.clear();
    seen.infrastructure = object(unowned);
    let decision = decided(&pool(1), seen);
    assert_eq!(effects(&decision), ["patch fakemachinepools.infra.x ns/pool".to_owned()]);
    let own = &decision.object;
    assert_eq!(own.spec.template.spec.bootstrap.data_secret_name.as_deref(), Some("pool-data"));
    assert_eq!(own.spec.provider_id_list, ["fake://a"]);
    assert_eq!(own.status.replicas, Some(1));
    assert_eq!(own.metadata.owner_references, [OwnerReference::to(&cluster())]);
    assert_eq!(own.metadata.labels.get(label::CLUSTER_NAME).map(String::as_str), Some("prod"));
    assert_eq!(own.status.phase, Some(MachinePoolPhase::ScalingUp));
}

#[test]
fn a_provider_without_machine_pools_is_reported() {
    let missing = |kind_exists| Observed {
        infrastructure: Lookup::Missing,
        infrastructure_kind_exists: kind_exists,
        ..seen(&[])
    };
    let decision = decided(&pool(1), missing(false));
    let (status, reason, message) = condition(&decision, "InfrastructureReady");
    assert_eq!((status, reason), (ConditionStatus::False, "MachinePoolsNotSupported"));
    assert!(message.contains("no kind FakeMachinePool in infra.x"), "{message}");
    let decision = decided(&pool(1), missing(true));
    assert_eq!(
        condition(&decision, "InfrastructureReady"),
        (ConditionStatus::False, "ObjectDoesNotExist", "FakeMachinePool pool does not exist")
    );
}

#[test]
fn a_template_is_no_machine_pool() {
    let mut pool = pool(1);
    pool.spec.template.spec.infrastructure_ref.kind = "FakeMachineTemplate".to_owned();
    let decision = decided(&pool, seen(&[]));
    let (status, reason, _) = condition(&decision, "InfrastructureReady");
    assert_eq!((status, reason), (ConditionStatus::False, "NotAMachinePool"));
}

#[test]
fn each_infrastructure_machine_gets_a_machine() {
    let mut seen = seen(&["fake://a", "fake://b"]);
    seen.infrastructure_machines = Some(vec![infrastructure_machine("a"), infrastructure_machine("b")]);
    seen.nodes = nodes(&[node("a", true)], &[]);
    let decision = decided(&pool(2), seen);
    let machines: Vec<Machine> = decision
        .effects
        .iter()
        .map(|planned| match &planned.effect {
            Effect::Create { body, .. } => serde_json::from_value(body.clone()).expect("a Machine"),
            other => panic!("{}", other.summary()),
        })
        .collect();
    let names: Vec<_> = machines.iter().map(|machine| machine.metadata.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let machine = &machines[0];
    assert_eq!(machine.metadata.controller().map(|owner| owner.kind.as_str()), Some("MachinePool"));
    assert_eq!(machine.metadata.labels.get(label::POOL_NAME).map(String::as_str), Some("pool"));
    assert_eq!(machine.metadata.labels.get("tier").map(String::as_str), Some("web"));
    assert_eq!(machine.spec.infrastructure_ref.kind, "FakeMachine");
    assert_eq!(machine.spec.bootstrap.data_secret_name.as_deref(), Some(""));
    assert_eq!(machine.spec.deletion.node_drain_timeout_seconds, Some(60));
    assert_eq!((machine.spec.version.as_str(), machines[1].spec.version.as_str()), ("v1.36.0", ""));
}

/// A Machine of the pool, as the API server would have stored it.
fn machine(name: &str, seen_node: Option<&Node>) -> Machine {
    let mut machine = super::desired::machine(&pool(1), &infrastructure_machine(name), seen_node);
    machine.metadata.uid = format!("m-{name}");
    machine.metadata.resource_version = "1".to_owned();
    machine.spec.provider_id = format!("fake://{name}");
    machine
}

#[test]
fn a_machine_follows_its_pool_and_its_node() {
    let ready = node("a", true);
    let of = |machine: Machine, change: fn(&mut MachinePool)| {
        let mut pool = pool(1);
        change(&mut pool);
        let mut seen = seen(&["fake://a"]);
        seen.infrastructure_machines = Some(vec![infrastructure_machine("a")]);
        seen.nodes = nodes(&[node("a", true)], &[]);
        seen.machines = vec![Arc::new(machine)];
        let decision = decided(&pool, seen);
        let bodies = decision.effects.iter().filter_map(|planned| match &planned.effect {
            Effect::Patch { subresource: None, patch: Patch::Merge(body), .. } => Some(body.clone()),
            _ => None,
        });
        bodies.collect::<Vec<_>>()
    };
    assert_eq!(of(machine("a", Some(&ready)), |_| {}), Vec::<Value>::new());
    let [change] = of(machine("a", None), |_| {}).try_into().expect("one patch");
    assert_eq!(change["spec"], json!({"version": "v1.36.0"}));
    let [change] = of(machine("a", Some(&ready)), |pool| {
        pool.spec.template.metadata.labels.insert("tier".to_owned(), "db".to_owned());
    })
    .try_into()
    .expect("one patch");
    assert_eq!(change["metadata"]["labels"], json!({"tier": "db"}));
    let mut orphan = machine("a", Some(&ready));
    orphan.metadata.owner_references.clear();
    let [change] = of(orphan, |_| {}).try_into().expect("one patch");
    assert_eq!(change["metadata"]["ownerReferences"][0]["kind"], "MachinePool");
}

#[test]
fn machines_are_marked_up_to_date() {
    let ready = node("a", true);
    let mut seen = seen(&["fake://a"]);
    seen.infrastructure_machines = Some(vec![infrastructure_machine("a")]);
    seen.nodes = nodes(std::slice::from_ref(&ready), &[]);
    seen.machines = vec![Arc::new(machine("a", Some(&ready)))];
    let decision = decided(&pool(1), seen);
    let [planned] = decision.effects.as_slice() else { panic!("{:?}", effects(&decision)) };
    let Effect::Patch { subresource: Some("status"), patch: Patch::Merge(body), .. } = &planned.effect else {
        panic!("{:?}", effects(&decision))
    };
    assert_eq!(body["status"]["conditions"][0]["type"], "UpToDate");
    assert_eq!(body["status"]["conditions"][0]["status"], "True");
}

#[test]
fn nodes_are_referenced_counted_and_annotated() {
    let mut seen = seen(&["fake://a", "fake://b"]);
    seen.nodes = nodes(&[node("a", true), node("b", false)], &[]);
    let decision = decided(&pool(2), seen);
    assert_eq!(effects(&decision), ["patch node a", "patch node b"]);
    let Effect::Call(MachineCall::PatchNode { change, .. }) = &decision.effects[0].effect else {
        panic!("a patch")
    };
    assert_eq!(change["metadata"]["annotations"][annotation::OWNER_KIND], "MachinePool");
    assert_eq!(change["spec"]["taints"], json!([]));
    let status = &decision.object.status;
    let names: Vec<_> = status.node_refs.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let old = status.deprecated.clone().and_then(|deprecated| deprecated.v1beta1).expect("counts");
    assert_eq!((old.ready_replicas, old.available_replicas, old.unavailable_replicas), (1, 1, 1));
    assert_eq!(
        condition(&decision, "ReplicasReady"),
        (ConditionStatus::False, "WaitingForReplicasReady", "1 of 2 replicas are ready")
    );
    let old: Vec<_> = old.conditions.iter().map(|one| (one.kind.as_str(), one.status.as_str())).collect();
    assert_eq!(
        old,
        [
            ("Ready", "False"),
            ("BootstrapReady", "True"),
            ("InfrastructureReady", "True"),
            ("ReplicasReady", "False")
        ]
    );
}

#[test]
fn a_node_whose_machine_left_the_pool_is_deleted() {
    let (kept, retired) = (node("a", true), node("b", true));
    let mut seen = seen(&["fake://a"]);
    seen.nodes = nodes(std::slice::from_ref(&kept), &[kept.clone(), retired.clone()]);
    assert_eq!(effects(&decided(&pool(1), seen)), ["delete node b", "patch node a"]);
    // A Machine deletes its own Node.
    let mut seen = super::tests::seen(&["fake://a"]);
    seen.nodes = nodes(std::slice::from_ref(&kept), &[kept.clone(), retired]);
    seen.infrastructure_machines = Some(Vec::new());
    let mut going = machine("b", None);
    going.metadata.deletion_timestamp = Some(at(10).into());
    seen.machines = vec![Arc::new(going)];
    let calls: Vec<_> =
        effects(&decided(&pool(1), seen)).into_iter().filter(|effect| effect.contains("node")).collect();
    assert_eq!(calls, Vec::<String>::new());
}

#[test]
fn the_phase_follows_ready_nodes() {
    use MachinePoolPhase::{Deleting, Pending, Provisioning, Running, Scaling, ScalingDown, ScalingUp};
    let autoscaled = |pool: &mut MachinePool| {
        pool.metadata
            .annotations
            .insert(annotation::REPLICAS_MANAGED_BY.to_owned(), "cluster-autoscaler".to_owned());
    };
    let none = |_: &mut MachinePool| {};
    let deleted = |pool: &mut MachinePool| pool.metadata.deletion_timestamp = Some(at(999).into());
    type Change = fn(&mut MachinePool);
    let cases: [(i32, &[&str], bool, Change, MachinePoolPhase); 7] = [
        (1, &["a"], true, none, Running),
        (2, &["a"], true, none, ScalingUp),
        (0, &["a"], true, none, ScalingDown),
        (2, &["a"], true, autoscaled, Scaling),
        (2, &["a"], true, deleted, Deleting),
        (2, &[], false, none, Provisioning),
        (0, &[], true, none, Running),
    ];
    for (replicas, names, provisioned, change, expected) in cases {
        let ids: Vec<String> = names.iter().map(|name| format!("fake://{name}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut pool = pool(replicas);
        change(&mut pool);
        let mut seen = seen(&ids);
        if !provisioned {
            seen.infrastructure = object(owned("infra.x", "FakeMachinePool", json!({})));
        }
        let present: Vec<_> = names.iter().map(|name| node(name, true)).collect();
        if !present.is_empty() {
            seen.nodes = nodes(&present, &[]);
        }
        let phase = decided(&pool, seen).object.status.phase;
        assert_eq!(phase, Some(expected), "{replicas} {names:?} {provisioned}");
    }
    let waiting = Observed { bootstrap: Lookup::Missing, infrastructure: Lookup::Missing, ..seen(&[]) };
    assert_eq!(decided(&pool(1), waiting).object.status.phase, Some(Pending));
}

#[test]
fn a_pool_is_deleted_after_its_infrastructure_machines_and_nodes() {
    let mut gone = pool(1);
    gone.metadata.deletion_timestamp = Some(at(995).into());
    gone.spec.provider_id_list = vec!["fake://a".to_owned()];
    gone.status.node_refs =
        vec![capstan_capi_types::kubernetes::ObjectReference { name: "a".to_owned(), ..Default::default() }];
    let kept = |decision: &Decision<MachinePools>| decision.object.metadata.finalizers.len();
    let decision = decided(&gone, seen(&["fake://a"]));
    assert_eq!(
        effects(&decision),
        ["delete fakemachinepools.infra.x ns/pool", "delete bootconfigs.boot.x ns/pool"]
    );
    assert_eq!(kept(&decision), 1);

    let without = || Observed { bootstrap: Lookup::Missing, infrastructure: Lookup::Missing, ..seen(&[]) };
    let left = Observed { machines: vec![Arc::new(machine("a", None))], ..without() };
    let decision = decided(&gone, left);
    assert_eq!(effects(&decision), ["delete machines.cluster.x-k8s.io ns/a"]);

    let (ours, foreign) = (node("a", true), node("z", true));
    let decision = decided(&gone, Observed { nodes: nodes(&[], &[ours.clone(), foreign]), ..without() });
    assert_eq!((effects(&decision), kept(&decision)), (vec!["delete node a".to_owned()], 1));

    assert_eq!(kept(&decided(&gone, Observed { nodes: nodes(&[], &[]), ..without() })), 0);
    // After the timeout, unreachable Nodes are given up.
    let unreachable = || Observed { nodes: ObservedNodes::NotConnected("down".to_owned()), ..without() };
    assert_eq!(kept(&decided(&gone, unreachable())), 1);
    gone.metadata.deletion_timestamp = Some(at(900).into());
    assert_eq!(kept(&decided(&gone, unreachable())), 0);
}
