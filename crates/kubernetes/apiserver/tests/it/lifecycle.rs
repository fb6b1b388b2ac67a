//! Namespaces, owners and finalizers.

use serde_json::{Value, json};

use crate::client::Client;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn owned(name: &str, owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        }]},
    })
}

async fn owner_and_dependent(client: &Client) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
    let (_, owner) = client.create(CONFIG_MAPS, &object).await;
    assert_eq!(client.create(CONFIG_MAPS, &owned("child", &owner)).await.0, 201);
}

#[tokio::test]
async fn dependents_follow_their_owner_in_the_background() {
    let client = Client::start().await;
    owner_and_dependent(&client).await;
    client.delete(&format!("{CONFIG_MAPS}/owner")).await;
    client.until(&format!("{CONFIG_MAPS}/child"), |(code, _)| *code == 404).await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_is_deleted_last() {
    let client = Client::start().await;
    owner_and_dependent(&client).await;
    let from = client.get(CONFIG_MAPS).await.1["metadata"]["resourceVersion"].clone();
    let from = from.as_str().expect("a version");
    client.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Foreground")).await;
    client.until(&format!("{CONFIG_MAPS}/owner"), |(code, _)| *code == 404).await;
    let mut events = client.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}")).await;
    let mut gone = Vec::new();
    while gone.len() < 2 {
        let event = events.next().await.expect("the watch goes on");
        if event["type"] == "DELETED" {
            gone.push(event["object"]["metadata"]["name"].clone());
        }
    }
    assert_eq!(gone, ["child", "owner"]);
}

#[tokio::test]
async fn an_orphan_stays_and_forgets_its_owner() {
    let client = Client::start().await;
    owner_and_dependent(&client).await;
    client.delete(&format!("{CONFIG_MAPS}/owner?propagationPolicy=Orphan")).await;
    client.until(&format!("{CONFIG_MAPS}/owner"), |(code, _)| *code == 404).await;
    let (code, child) = client.get(&format!("{CONFIG_MAPS}/child")).await;
    assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None));
}

#[tokio::test]
async fn a_finalizer_holds_a_deleted_object_until_it_is_taken_off() {
    let client = Client::start().await;
    let held = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "finalizers": ["example.com/hold"]},
    });
    client.create(CONFIG_MAPS, &held).await;
    let path = format!("{CONFIG_MAPS}/held");
    let (code, pending) = client.delete(&path).await;
    assert_eq!(code, 200);
    assert!(pending["metadata"]["deletionTimestamp"].is_string());
    let off = json!({"metadata": {"finalizers": null}});
    client.patch(&path, "application/merge-patch+json", &off).await;
    assert_eq!(client.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_new_namespace_is_furnished_and_a_deleted_one_takes_everything_along() {
    let client = Client::start().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    client.create("/api/v1/namespaces", &namespace).await;
    client.until("/api/v1/namespaces/n/serviceaccounts/default", |(code, _)| *code == 200).await;
    client.until("/api/v1/namespaces/n/configmaps/kube-root-ca.crt", |(code, _)| *code == 200).await;
    client.delete("/api/v1/namespaces/n").await;
    client.until("/api/v1/namespaces/n", |(code, _)| *code == 404).await;
    let (_, left) = client.get("/api/v1/namespaces/n/configmaps").await;
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn the_namespaces_the_system_stands_on_cannot_be_deleted() {
    let client = Client::start().await;
    let (code, status) = client.delete("/api/v1/namespaces/default").await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
}
