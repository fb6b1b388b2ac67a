//! Expiration of events and history.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use capstan_apiserver::Config;
use capstan_env::Env;
use serde_json::{Value, json};

use crate::client::Client;

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A server with a manual clock.
async fn at_a_clock() -> (Client, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(1_800_000_000));
    let clock = now.clone();
    let env = Env::simulated(
        move || jiff::Timestamp::from_second(clock.load(Ordering::Relaxed)).expect("a time"),
        1,
    );
    (Client::with(Config::in_memory().with_env(env)).await, now)
}

/// Advances both clocks. Tokio's time is paused, so this does not wait.
async fn pass(now: &AtomicI64, minutes: i64) {
    for _ in 0..minutes {
        now.fetch_add(60, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "a"},
        "reason": "Tested", "message": "m", "type": "Normal",
    })
}

#[tokio::test(start_paused = true)]
async fn an_event_expires_an_hour_after_its_last_write_and_watchers_see_its_deletion() {
    let (client, now) = at_a_clock().await;
    client.create(EVENTS, &event("quiet")).await;
    client.create(EVENTS, &event("repeated")).await;
    let mut watch = client
        .watch("/apis/events.k8s.io/v1/namespaces/default/events?watch=true&timeoutSeconds=36000")
        .await;
    pass(&now, 30).await;
    let path = format!("{EVENTS}/repeated");
    client.patch(&path, "application/merge-patch+json", &json!({"count": 2})).await;
    assert_eq!(watch.names(3).await, ["ADDED quiet", "ADDED repeated", "MODIFIED repeated"]);
    pass(&now, 29).await;
    assert_eq!(client.get(&format!("{EVENTS}/quiet")).await.0, 200);
    pass(&now, 3).await;
    assert_eq!(client.get(&format!("{EVENTS}/quiet")).await.0, 404);
    assert_eq!(watch.names(1).await, ["DELETED quiet"]);
    assert_eq!(client.get(&path).await.0, 200);
    pass(&now, 30).await;
    assert_eq!(client.get(&path).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_server_forgets_history_older_than_an_hour() {
    let (client, now) = at_a_clock().await;
    pass(&now, 1).await;
    let (_, list) = client.get(EVENTS).await;
    let then = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    client.create("/api/v1/namespaces/default/configmaps", &object).await;
    pass(&now, 50).await;
    let path = format!("{EVENTS}?resourceVersion={then}&resourceVersionMatch=Exact");
    assert_eq!(client.get(&path).await.0, 200);
    pass(&now, 15).await;
    assert_eq!(client.get(&path).await.0, 410);
}
