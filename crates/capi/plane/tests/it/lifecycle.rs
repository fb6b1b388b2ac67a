//! The lifecycle of a cluster and its machines.

use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_controller::{Deletion, KindName, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::plane::{World, cluster_scoped, condition, core, fake};

fn clusters() -> KindName {
    core("Cluster", "clusters")
}

fn machines() -> KindName {
    core("Machine", "machines")
}

fn nodes() -> KindName {
    cluster_scoped("", "v1", "Node", "nodes")
}

fn pods() -> KindName {
    KindName::namespaced("", "v1", "Pod", "pods")
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiGroup": "fake.example.com", "kind": kind, "name": name})
}

async fn add_cluster(world: &World) {
    let status = json!({"initialization": {"provisioned": true}, "failureDomains": [{"name": "a", "controlPlane": true}]});
    let spec = json!({"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}});
    world.create(&fake("FakeCluster"), "c", json!({"spec": spec, "status": status})).await;
    let status = json!({"initialization": {"controlPlaneInitialized": true}, "replicas": 1});
    world.create(&fake("FakeControlPlane"), "c", json!({"spec": {"replicas": 1}, "status": status})).await;
    let spec = json!({
        "infrastructureRef": reference("FakeCluster", "c"), "controlPlaneRef": reference("FakeControlPlane", "c"),
    });
    world.create(&clusters(), "c", json!({"spec": spec})).await;
}

async fn add_machine(world: &World, name: &str, labels: Value) {
    let spec = json!({
        "clusterName": "c", "version": "v1.34.0",
        "bootstrap": {"configRef": reference("FakeConfig", name)},
        "infrastructureRef": reference("FakeMachine", name),
    });
    world.create(&machines(), name, json!({"metadata": {"labels": labels}, "spec": spec})).await;
    let status =
        json!({"initialization": {"dataSecretCreated": true}, "dataSecretName": format!("{name}-data")});
    world.create(&fake("FakeConfig"), name, json!({"status": status})).await;
    let spec = json!({"providerID": format!("fake://{name}")});
    let status = json!({"initialization": {"provisioned": true}, "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]});
    world.create(&fake("FakeMachine"), name, json!({"spec": spec, "status": status})).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {
            "providerID": format!("fake://{name}"),
            "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}],
        },
    });
    world.guest.create(&nodes(), "", &node).await.expect("a node");
    report(world, name, "True", "2026-01-01T00:00:00Z").await;
}

/// A kubelet reports its node's status.
async fn report(world: &World, name: &str, ready: &str, heartbeat: &str) {
    let is = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": heartbeat})
    };
    let conditions = [
        is("Ready", ready),
        is("MemoryPressure", "False"),
        is("DiskPressure", "False"),
        is("PIDPressure", "False"),
    ];
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    world.guest.patch(&nodes(), &Key::new("", name), Some("status"), &patch).await.expect("a node's status");
}

async fn running(world: &World, name: &str) -> Value {
    let available = |object: Option<&Value>| {
        object.is_some_and(|object| condition(object, "Available")["status"] == "True")
    };
    world.until(&machines(), name, "Available", available).await.expect("a machine")
}

async fn healthy_cluster() -> World {
    let world = World::start().await;
    add_cluster(&world).await;
    add_machine(&world, "cp", json!({"cluster.x-k8s.io/control-plane": ""})).await;
    add_machine(&world, "w", json!({"node-role.kubernetes.io/worker": ""})).await;
    running(&world, "cp").await;
    running(&world, "w").await;
    world
}

fn kinds() -> Vec<KindName> {
    let mut kinds = vec![clusters(), machines()];
    kinds.extend(["FakeCluster", "FakeControlPlane", "FakeMachine", "FakeConfig"].map(fake));
    kinds
}

#[tokio::test(start_paused = true)]
async fn a_manifest_becomes_a_cluster_with_nodes() {
    let world = healthy_cluster().await;
    let available = |object: Option<&Value>| {
        object.is_some_and(|object| condition(object, "Available")["status"] == "True")
    };
    let cluster = world.until(&clusters(), "c", "Available", available).await.expect("a cluster");
    assert_eq!(cluster["spec"]["controlPlaneEndpoint"], json!({"host": "10.0.0.1", "port": 6443}));
    assert_eq!(cluster["status"]["phase"], "Provisioned");
    assert_eq!(cluster["status"]["failureDomains"][0]["name"], "a");
    let machine = running(&world, "w").await;
    assert_eq!(machine["spec"]["providerID"], "fake://w");
    assert_eq!(machine["spec"]["bootstrap"]["dataSecretName"], "w-data");
    assert_eq!(
        (&machine["status"]["phase"], &machine["status"]["nodeRef"]["name"]),
        (&json!("Running"), &json!("w"))
    );
    let node: Value =
        world.guest.get_raw(&nodes(), &Key::new("", "w")).await.unwrap().unwrap().parse().unwrap();
    assert_eq!(node["metadata"]["labels"]["node-role.kubernetes.io/worker"], "");
    assert_eq!(node["metadata"]["annotations"]["cluster.x-k8s.io/machine"], "w");
    assert_eq!(node["spec"]["taints"].as_array().map_or(0, Vec::len), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_nothing_changes() {
    let world = healthy_cluster().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = world.versions(&kinds()).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.versions(&kinds()).await, before);
}

#[tokio::test(start_paused = true)]
async fn heartbeats_trigger_no_reconcile_and_node_changes_trigger_all_dependents() {
    let world = healthy_cluster().await;
    // A Machine and a health check with the same name.
    for name in ["check", "w"] {
        let spec = json!({"clusterName": "c", "selector": {"matchLabels": {"cluster.x-k8s.io/cluster-name": "c"}},
            "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 300}]}});
        world.create(&core("MachineHealthCheck", "machinehealthchecks"), name, json!({"spec": spec})).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let looks = || {
        let metrics = world.runtime.metrics();
        ["machine", "machinehealthcheck", "kubeadmcontrolplane"].map(|name| metrics.reconciles(name))
    };
    let before = looks();
    for minute in 1..=9 {
        report(&world, "w", "True", &format!("2026-01-01T00:0{minute}:00Z")).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert_eq!(looks(), before, "a heartbeat is nothing to look at");
    report(&world, "w", "False", "2026-01-01T00:10:00Z").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = looks();
    assert!(after[0] > before[0], "the machine was not reconciled");
    assert!(after[1] >= before[1] + 2, "not both checks were reconciled");
}

#[tokio::test(start_paused = true)]
async fn removed_finalizers_and_owner_references_are_restored() {
    let world = healthy_cluster().await;
    let strip = || json!({"metadata": {"finalizers": null, "ownerReferences": null, "labels": {"cluster.x-k8s.io/cluster-name": null}}});
    for (kind, name) in
        [(machines(), "w"), (fake("FakeMachine"), "w"), (fake("FakeConfig"), "w"), (fake("FakeCluster"), "c")]
    {
        let before = world.get(&kind, name).await.expect("an object");
        world.patch(&kind, name, strip()).await;
        let fields = ["finalizers", "ownerReferences", "labels"];
        let back = |object: Option<&Value>| {
            object.is_some_and(|object| {
                fields.iter().all(|field| object["metadata"][field] == before["metadata"][field])
            })
        };
        world.until(&kind, name, "what it was", back).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_drained_within_budgets_before_deletion() {
    let world = healthy_cluster().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "w", "containers": [{"name": "c", "image": "i"}]},
    });
    world.guest.create(&pods(), "default", &pod).await.expect("a pod");
    // Budgets protect ready pods only.
    let ready = Patch::Merge(
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
    );
    world
        .guest
        .patch(&pods(), &Key::new("default", "web"), Some("status"), &ready)
        .await
        .expect("a ready pod");
    let budgets = KindName::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    world.guest.create(&budgets, "default", &budget).await.expect("a budget");
    let allow = |allowed: i32| {
        let status = json!({
            "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1,
        });
        Patch::Merge(json!({"status": status}))
    };
    let key = Key::new("default", "web");
    world.guest.patch(&budgets, &key, Some("status"), &allow(0)).await.expect("a status");
    world
        .user
        .delete(&machines(), &Key::new("default", "w"), &Deletion::default())
        .await
        .expect("a deletion");
    let message = |words: &'static str| {
        move |object: Option<&Value>| {
            object.is_some_and(|object| {
                condition(object, "Deleting")["message"].as_str().is_some_and(|text| text.contains(words))
            })
        }
    };
    world
        .until(
            &machines(),
            "w",
            "refused",
            message("cannot evict pod as it would violate the pod's disruption budget."),
        )
        .await;
    let node: Value =
        world.guest.get_raw(&nodes(), &Key::new("", "w")).await.unwrap().unwrap().parse().unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    world.guest.patch(&budgets, &key, Some("status"), &allow(1)).await.expect("a status");
    world
        .until(
            &machines(),
            "w",
            "evicted",
            message("deletionTimestamp set, but still not removed from the Node"),
        )
        .await;
    assert!(world.get(&fake("FakeMachine"), "w").await.is_some(), "the machine stays while pods run on it");
    // As the kubelet does once the containers have ended.
    let path = pods().object_path(&key, None);
    let now = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    world.force_delete(&path, &now).await;
    world.until(&machines(), "w", "gone", |object| object.is_none()).await;
    for kind in ["FakeMachine", "FakeConfig"] {
        assert!(world.get(&fake(kind), "w").await.is_none(), "{kind}");
    }
    assert!(
        world.guest.get_raw(&nodes(), &Key::new("", "w")).await.unwrap().is_none(),
        "the node goes with its machine"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_rejects_node_writes_does_not_block_deletion_forever() {
    let world = healthy_cluster().await;
    world.refuses.store(true, Ordering::Relaxed);
    // A change that should reach the Node and never does.
    let spec = json!({"deletion": {
        "nodeDrainTimeoutSeconds": 30, "nodeVolumeDetachTimeoutSeconds": 30, "nodeDeletionTimeoutSeconds": 90,
    }});
    let labels = json!({"node-role.kubernetes.io/more": ""});
    world.patch(&machines(), "w", json!({"metadata": {"labels": labels}, "spec": spec})).await;
    world
        .user
        .delete(&machines(), &Key::new("default", "w"), &Deletion::default())
        .await
        .expect("a deletion");
    let begun = tokio::time::Instant::now();
    let tries = |object: Option<&Value>| {
        object.is_some_and(|object| {
            let message = condition(object, "Deleting")["message"].as_str().unwrap_or_default();
            message.contains("Error deleting Node: nodes are not yours")
        })
    };
    world.until(&machines(), "w", "a refused deletion of its Node", tries).await;
    assert!(world.get(&fake("FakeMachine"), "w").await.is_none(), "the infrastructure goes before the Node");
    world.until(&machines(), "w", "gone", |object| object.is_none()).await;
    assert!(
        begun.elapsed() >= Duration::from_secs(90),
        "{:?}: the Node is tried for its time",
        begun.elapsed()
    );
    assert!(world.guest.get_raw(&nodes(), &Key::new("", "w")).await.unwrap().is_some(), "it was deleted");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_deleted_after_its_workers_and_objects() {
    let world = healthy_cluster().await;
    world
        .user
        .delete(&machines(), &Key::new("default", "cp"), &Deletion::default())
        .await
        .expect("a deletion");
    world.until(&machines(), "cp", "gone", |object| object.is_none()).await;
    // The control plane is deleted slowly.
    world
        .patch(&fake("FakeControlPlane"), "c", json!({"metadata": {"finalizers": ["fake.example.com/x"]}}))
        .await;
    world
        .user
        .delete(&clusters(), &Key::new("default", "c"), &Deletion::default())
        .await
        .expect("a deletion");
    let stage = |reason: &'static str| {
        move |object: Option<&Value>| {
            object.is_some_and(|object| condition(object, "Deleting")["reason"] == reason)
        }
    };
    world
        .until(&clusters(), "c", "waiting for the control plane", stage("WaitingForControlPlaneDeletion"))
        .await;
    assert!(world.get(&machines(), "w").await.is_none(), "workers go first");
    assert!(
        world.get(&fake("FakeCluster"), "c").await.is_some(),
        "the infrastructure stays until the control plane is gone"
    );
    world.patch(&fake("FakeControlPlane"), "c", json!({"metadata": {"finalizers": null}})).await;
    world.until(&clusters(), "c", "gone", |object| object.is_none()).await;
    assert!(world.get(&fake("FakeCluster"), "c").await.is_none());
}
