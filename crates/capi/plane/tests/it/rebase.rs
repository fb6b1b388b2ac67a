//! Clusters that come to a class from another class, or from none.

use serde_json::{Value, json};

use crate::class_of_fakes::{class_spec, create_templates};
use crate::plane::{World, condition, fake};
use crate::topologies::{
    VERSION, classes, clusters, control_plane_has, create_class, create_cluster, deployments, list, own,
    refusal, reports, topology, until_own,
};

/// Another class, whose templates have this name and flavor.
async fn create_other_class(world: &World, name: &str) {
    let text = class_spec(json!({})).to_string().replace("\"t\"", &format!("\"{name}\""));
    for kind in
        ["FakeClusterTemplate", "FakeControlPlaneTemplate", "FakeMachineTemplate", "FakeConfigTemplate"]
    {
        let spec = json!({"template": {"spec": {"flavor": name}}});
        world.create(&fake(kind), name, json!({"spec": spec})).await;
    }
    let spec: Value = serde_json::from_str(&text).expect("a class");
    world.create(&classes(), name, json!({"spec": spec})).await;
    let ready = |class: Option<&Value>| {
        class.is_some_and(|class| condition(class, "VariablesReady")["status"] == "True")
    };
    world.until(&classes(), name, "variables are ready", ready).await;
}

/// Names of what the cluster consists of.
async fn parts(world: &World) -> Vec<String> {
    let cluster = world.get(&clusters(), "c").await.expect("a cluster");
    let refs = ["infrastructureRef", "controlPlaneRef"].map(|field| cluster["spec"][field]["name"].clone());
    let deployments = list(world, &deployments()).await;
    let names = deployments.iter().map(|deployment| deployment["metadata"]["name"].clone());
    refs.into_iter().chain(names).map(|name| name.as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_moves_to_another_class_keeps_its_parts_and_gets_new_templates() {
    let world = World::start().await;
    create_class(&world, json!({})).await;
    create_cluster(&world).await;
    until_own(&world, "FakeMachineTemplate", 2).await;
    create_other_class(&world, "other").await;
    let (before, templates) = (parts(&world).await, own(&world, "FakeMachineTemplate").await);

    world.patch(&clusters(), "c", json!({"spec": {"topology": {"classRef": {"name": "other"}}}})).await;
    let flavored = |object: Option<&Value>| object.is_some_and(|object| object["spec"]["flavor"] == "other");
    world.until(&fake("FakeCluster"), &before[0], "the infrastructure of the class", flavored).await;
    world.until(&fake("FakeControlPlane"), &before[1], "the control plane of the class", flavored).await;
    reports(&world, "ReconcileSucceeded", "").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(parts(&world).await, before, "nothing is created anew");

    let after = own(&world, "FakeMachineTemplate").await;
    assert!(
        after.len() == 2 && after.iter().all(|name| !templates.contains(name)),
        "{templates:?} {after:?}"
    );
    for name in &after {
        let template = world.get(&fake("FakeMachineTemplate"), name).await.expect("a template");
        assert_eq!(template["spec"]["template"]["spec"]["flavor"], "other");
        assert_eq!(template["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"], "other");
    }
    let deployment = &list(&world, &deployments()).await[0];
    let used = deployment["spec"]["template"]["spec"]["infrastructureRef"]["name"].as_str().expect("a name");
    assert!(after.iter().any(|name| name == used));
    let deleted =
        world.user.delete(&classes(), &capstan_object::Key::new("default", "k"), &Default::default()).await;
    deleted.expect("nobody uses the former class");
}

#[tokio::test(start_paused = true)]
async fn a_topology_takes_over_a_cluster_that_had_none() {
    let world = World::start().await;
    create_templates(&world).await;
    world.create(&classes(), "k", json!({"spec": class_spec(json!({}))})).await;
    world.create(&fake("FakeCluster"), "old", json!({"spec": {"network": "mine"}})).await;
    let control_plane = json!({"spec": {"version": VERSION, "replicas": 1, "mine": {"field": 1}}});
    world.create(&fake("FakeControlPlane"), "old", control_plane).await;
    let reference = |kind: &str| json!({"apiGroup": "fake.example.com", "kind": kind, "name": "old"});
    let spec = json!({
        "infrastructureRef": reference("FakeCluster"), "controlPlaneRef": reference("FakeControlPlane"),
    });
    world.create(&clusters(), "c", json!({"spec": spec})).await;
    control_plane_has(&world, VERSION).await;

    let mut change = json!({"spec": {"topology": topology()}});
    let refused = refusal(&world, &clusters(), "c", change.clone()).await;
    assert!(refused.contains("classRef cannot be set on an existing Cluster"), "{refused}");
    let annotation = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
    change["metadata"]["annotations"][annotation] = "".into();
    world.patch(&clusters(), "c", change).await;
    reports(&world, "ReconcileFailed", "FakeCluster default/old is not topology owned").await;

    // Its owner hands the objects over, one by one.
    let handed_over = json!({"metadata": {"labels": {"topology.cluster.x-k8s.io/owned": ""}}});
    world.patch(&fake("FakeCluster"), "old", handed_over.clone()).await;
    reports(&world, "ReconcileFailed", "FakeControlPlane default/old is not topology owned").await;
    world.patch(&fake("FakeControlPlane"), "old", handed_over).await;
    reports(&world, "ReconcileSucceeded", "").await;
    until_own(&world, "FakeMachineTemplate", 2).await;
    assert_eq!(parts(&world).await[..2], ["old", "old"]);
    let found = world.get(&fake("FakeControlPlane"), "old").await.expect("a control plane");
    assert_eq!(found["spec"]["mine"], json!({"field": 1}), "the user's fields stay");
    assert!(found["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"].is_string());
    let network = &world.get(&fake("FakeCluster"), "old").await.expect("infrastructure")["spec"]["network"];
    assert_eq!(network, "mine");
}
