//! Edits of a class: which of its clusters are written to, and which fields are whose.

use std::time::Duration;

use capstan_controller::KindName;
use serde_json::{Value, json};

use crate::class_of_fakes::class_spec;
use crate::plane::{World, condition, core, fake};
use crate::topologies::{
    classes, clusters, control_plane_has, create_class, create_cluster, deployments, topology,
};

fn kinds() -> Vec<KindName> {
    let mut kinds = vec![clusters(), deployments(), core("MachineSet", "machinesets")];
    kinds.extend(["FakeCluster", "FakeControlPlane", "FakeMachineTemplate", "FakeConfigTemplate"].map(fake));
    kinds
}

/// Lets everything come to rest.
async fn rest() {
    tokio::time::sleep(Duration::from_secs(90)).await;
}

fn reconciles(world: &World) -> u64 {
    world.runtime.metrics().reconciles("capi-topology")
}

/// The class with one more class of workers, which has these labels and which no cluster uses.
fn with_spare_workers(labels: Value) -> Value {
    let mut workers = class_spec(json!({}))["workers"].clone();
    let mut spare = workers["machineDeployments"][0].clone();
    spare["class"] = "spare".into();
    spare["metadata"]["labels"] = labels;
    workers["machineDeployments"].as_array_mut().expect("workers").push(spare);
    json!({"spec": {"workers": workers}})
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_class_that_changes_nothing_for_its_clusters_writes_nothing_and_wakes_each_once() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    for name in ["d", "e"] {
        world.create(&clusters(), name, json!({"spec": {"topology": topology()}})).await;
    }
    rest().await;
    let (written, before) = (world.versions(&kinds()).await, reconciles(&world));
    for (number, labels) in (1..).zip([json!({"a": "b"}), json!({"a": "c"}), json!({})]) {
        world.patch(&classes(), "k", with_spare_workers(labels)).await;
        rest().await;
        assert_eq!(world.versions(&kinds()).await, written, "edit {number} writes");
        assert_eq!(reconciles(&world) - before, 3 * number, "after edit {number}");
    }
    world.patch(&classes(), "k", json!({"metadata": {"labels": {"of": "users"}}})).await;
    rest().await;
    assert_eq!(reconciles(&world) - before, 9, "labels of a class are nothing to its clusters");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_a_class_reaches_its_clusters_without_a_flicker() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    rest().await;
    let of_cluster = async || world.get(&clusters(), "c").await.expect("a cluster");
    let (before, began) = (of_cluster().await, reconciles(&world));
    let mut spec = class_spec(json!({}));
    spec["controlPlane"]["metadata"] = json!({"labels": {"tier": "gold"}});
    world.patch(&classes(), "k", json!({"spec": spec})).await;
    let name = before["spec"]["controlPlaneRef"]["name"].as_str().expect("a name");
    let labelled =
        |object: Option<&Value>| object.is_some_and(|object| object["metadata"]["labels"]["tier"] == "gold");
    world.until(&fake("FakeControlPlane"), name, "the label of the class", labelled).await;
    rest().await;
    assert_eq!(of_cluster().await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    let count = reconciles(&world) - began;
    assert!(count <= 3, "{count} reconciles for one edit");
}

#[tokio::test(start_paused = true)]
async fn a_class_that_stays_unreconciled_is_reported_by_its_clusters() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    world.patch(&classes(), "k", paused).await;
    rest().await;
    world.patch(&classes(), "k", with_spare_workers(json!({}))).await;
    let reason = |reason: &'static str| {
        move |cluster: Option<&Value>| {
            cluster.is_some_and(|cluster| condition(cluster, "TopologyReconciled")["reason"] == reason)
        }
    };
    world.until(&clusters(), "c", "it waits", reason("ClusterClassNotReconciled")).await;
    let resumed = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    world.patch(&classes(), "k", resumed).await;
    world.until(&clusters(), "c", "it goes on", reason("ReconcileSucceeded")).await;
}

/// The template of control planes in the class, with this spec.
async fn template_has(world: &World, spec: Value) {
    let body = json!({"spec": {"template": {"spec": spec}}});
    world.create(&fake("FakeControlPlaneTemplate"), "u", body).await;
    let mut of_class = class_spec(json!({}));
    of_class["controlPlane"]["templateRef"]["name"] = "u".into();
    world.patch(&classes(), "k", json!({"spec": of_class})).await;
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_class_does_not_set_are_the_users() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    let cluster = world.get(&clusters(), "c").await.expect("a cluster");
    let name = cluster["spec"]["controlPlaneRef"]["name"].as_str().expect("a name");
    let (kind, control_plane) = (fake("FakeControlPlane"), async || {
        world.get(&fake("FakeControlPlane"), name).await.expect("a control plane")
    });
    let own = json!({
        "metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "x"}},
        "spec": {"own": {"field": 1}, "machineTemplate": {"spec": {"own": "x"}}},
    });
    world.patch(&kind, name, own.clone()).await;
    template_has(&world, json!({"args": {"a": 1}, "shared": {"ours": 1}})).await;
    let set = |object: Option<&Value>| object.is_some_and(|object| object["spec"]["args"]["a"] == 1);
    world.until(&kind, name, "the field of the class", set).await;
    let found = control_plane().await;
    for field in
        ["/metadata/labels/mine", "/metadata/annotations/mine", "/spec/own", "/spec/machineTemplate/spec/own"]
    {
        assert_eq!(found.pointer(field), own.pointer(field), "{field}");
    }

    // Beside a field of the class, and in place of one.
    world.patch(&kind, name, json!({"spec": {"args": {"a": 2}, "shared": {"mine": 1}}})).await;
    control_plane_has(&world, "v1.35.0").await;
    world.until(&kind, name, "what the class sets is set again", set).await;
    assert_eq!(control_plane().await["spec"]["shared"], json!({"ours": 1, "mine": 1}));

    // What the class no longer sets goes.
    world.create(&fake("FakeControlPlaneTemplate"), "v", json!({"spec": {"template": {"spec": {}}}})).await;
    let mut of_class = class_spec(json!({}));
    of_class["controlPlane"]["templateRef"]["name"] = "v".into();
    world.patch(&classes(), "k", json!({"spec": of_class})).await;
    let gone =
        |object: Option<&Value>| object.is_some_and(|object| object["spec"]["args"].get("a").is_none());
    world.until(&kind, name, "the field of the class is gone", gone).await;
    assert_eq!(control_plane().await["spec"]["own"], own["spec"]["own"]);
}
