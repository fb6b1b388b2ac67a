//! Two management processes on one server, each with the clusters of its label.

use std::time::Duration;

use capstan_capi_plane::Settings;
use capstan_controller::KindName;
use serde_json::{Value, json};

use crate::plane::{World, core, fake};

fn clusters() -> KindName {
    core("Cluster", "clusters")
}

fn only(value: &str) -> Settings {
    Settings { watch_filter: Some(value.to_owned()), ..Settings::default() }
}

/// A cluster and its infrastructure, both with the watch-filter label.
async fn add(world: &World, name: &str, labels: Value) {
    let metadata = json!({"labels": labels});
    world.create(&fake("FakeCluster"), name, json!({"metadata": metadata, "spec": {}})).await;
    let reference = json!({"apiGroup": "fake.example.com", "kind": "FakeCluster", "name": name});
    let spec = json!({"infrastructureRef": reference});
    world.create(&clusters(), name, json!({"metadata": metadata, "spec": spec})).await;
}

/// The version of a cluster, and whether a controller reconciles it.
async fn state(world: &World, name: &str) -> (Value, bool) {
    let cluster = world.get(&clusters(), name).await.expect("a cluster");
    let looked_after = cluster["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    (
        cluster["metadata"]["resourceVersion"].clone(),
        looked_after && !cluster["status"]["conditions"].is_null(),
    )
}

#[tokio::test(start_paused = true)]
async fn watch_filters_separate_the_clusters_of_two_processes() {
    let world = World::start_with(&only("blue")).await;
    let filter = |value: &str| json!({"cluster.x-k8s.io/watch-filter": value});
    add(&world, "blue", filter("blue")).await;
    add(&world, "green", filter("green")).await;
    add(&world, "nobodys", json!({})).await;
    let untouched = [state(&world, "green").await, state(&world, "nobodys").await];
    let long = Duration::from_secs(600);
    tokio::time::sleep(long).await;
    assert!(state(&world, "blue").await.1, "the plane of the label looks after it");
    assert_eq!([state(&world, "green").await, state(&world, "nobodys").await], untouched);
    assert!(!untouched[0].1 && !untouched[1].1);

    let blue = state(&world, "blue").await;
    let other = world.another(&only("green"));
    tokio::time::sleep(long).await;
    assert!(state(&world, "green").await.1, "the other plane has come");
    assert_eq!(state(&world, "blue").await, blue, "what the one has done is not done again");
    assert_eq!(state(&world, "nobodys").await, untouched[1]);

    // A process without a filter takes the rest, and has nothing else to do.
    let green = state(&world, "green").await;
    other.stop().await;
    let all = world.another(&Settings::default());
    tokio::time::sleep(long).await;
    assert!(state(&world, "nobodys").await.1);
    assert_eq!([state(&world, "blue").await, state(&world, "green").await], [blue, green]);
    all.stop().await;
}
