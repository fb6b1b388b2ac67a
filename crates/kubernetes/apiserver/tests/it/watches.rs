//! Watches: order, selectors, resuming, bookmarks.

use capstan_apiserver::Config;
use serde_json::{Value, json};

use crate::client::Client;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn secret(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}})
}

#[tokio::test]
async fn a_watch_tells_what_happens_in_order_and_can_be_resumed() {
    let client = Client::start().await;
    let (_, list) = client.get(SECRETS).await;
    let from = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    client.create(SECRETS, &secret("a", &json!({}))).await;
    let (_, b) = client.create(SECRETS, &secret("b", &json!({}))).await;
    client.delete(&format!("{SECRETS}/a")).await;
    let mut events = client.watch(&format!("{SECRETS}?watch=true&resourceVersion={from}")).await;
    assert_eq!(events.names(3).await, ["ADDED a", "ADDED b", "DELETED a"]);

    let after_b = b["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut resumed = client.watch(&format!("{SECRETS}?watch=true&resourceVersion={after_b}")).await;
    assert_eq!(resumed.names(1).await, ["DELETED a"]);
}

#[tokio::test]
async fn an_object_that_leaves_the_selection_is_deleted_for_the_watcher() {
    let client = Client::start().await;
    let mut events = client.watch(&format!("{SECRETS}?watch=true&labelSelector=on%3Dyes")).await;
    client.create(SECRETS, &secret("a", &json!({"on": "yes"}))).await;
    let off = json!({"metadata": {"labels": {"on": "no"}}});
    let path = format!("{SECRETS}/a");
    let (_, changed) = client.patch(&path, "application/merge-patch+json", &off).await;
    assert_eq!(events.names(1).await, ["ADDED a"]);
    let gone = events.next().await.expect("an event");
    assert_eq!(gone["type"], "DELETED");
    assert_eq!(gone["object"]["metadata"]["labels"]["on"], "yes");
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn a_streaming_list_ends_its_initial_events_with_a_marked_bookmark() {
    let client = Client::start().await;
    client.create(SECRETS, &secret("a", &json!({}))).await;
    let options =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = client.watch(&format!("{SECRETS}?{options}")).await;
    assert_eq!(events.names(1).await, ["ADDED a"]);
    let bookmark = events.next().await.expect("a bookmark");
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

/// An object of 100 KiB.
fn large(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"a": "x".repeat(75 << 10)}})
}

#[tokio::test]
async fn a_watcher_that_does_not_read_holds_little_of_what_it_missed() {
    let client = Client::start().await;
    let mut live = client.watch(&format!("{SECRETS}?watch=true")).await;
    for n in 0..60 {
        assert_eq!(client.create(SECRETS, &large(&format!("s{n}"))).await.0, 201);
    }
    let listed =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut initial = client.watch(&format!("{SECRETS}?{listed}")).await;
    for events in [&mut live, &mut initial] {
        let first = events.piece().await.expect("events");
        assert!(first.len() < 3 << 19, "{} bytes in one piece", first.len());
        let mut all = first.len();
        while all < (60 * 100) << 10 {
            all += events.piece().await.expect("the rest follows").len();
        }
    }
}

#[tokio::test]
async fn a_watcher_that_falls_behind_the_history_is_ended_and_lists_again() {
    let client = Client::with(Config::in_memory().with_history_bytes(512 << 10)).await;
    let mut events = client.watch(&format!("{SECRETS}?watch=true")).await;
    for n in 0..30 {
        assert_eq!(client.create(SECRETS, &large(&format!("s{n}"))).await.0, 201);
    }
    let last = loop {
        let event = events.next().await.expect("an event");
        if event["type"] == "ERROR" {
            break event;
        }
    };
    assert_eq!((&last["object"]["code"], &last["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(events.next().await, None);
}
