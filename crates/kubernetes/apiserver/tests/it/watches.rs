//! Watches: order, selectors, resuming, bookmarks.

use std::sync::Arc;

use bytes::Bytes;
use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, LocalTransport, WatchLimits};
use capstan_transport::{Body, Transport, WatchEvent};
use futures::FutureExt as _;
use http::Request;
use serde_json::{Value, json};

use crate::client::Client;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn secret(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels}})
}

#[tokio::test]
async fn a_watch_reports_events_in_order_and_can_be_resumed() {
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

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind in two versions.
fn widgets() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.it.test"},
        "spec": {
            "group": "it.test", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

/// The body of a watch by a client of the same process.
async fn local(transport: &Arc<dyn Transport>, accept: &str, path: &str) -> Body {
    let request = Request::get(path).header("accept", accept).body(Bytes::new()).expect("a request");
    let response = transport.send(request).await.expect("an answer");
    assert_eq!(response.status(), 200, "{path}");
    response.into_body()
}

/// Everything a body has to say by now, as lines.
async fn lines(mut body: Body) -> Vec<Value> {
    let mut text = Vec::new();
    while let Some(Some(piece)) = body.next().now_or_never() {
        text.extend_from_slice(&piece.expect("a piece"));
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("an event is JSON")).collect()
}

/// The line that an event stands for. What it says beside the object is what the object says.
fn line(event: &WatchEvent) -> Value {
    let object: Value = serde_json::from_slice(event.object()).expect("an object");
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let named = |key: &str, version: u64| {
        assert_eq!(key, format!("{}/{}", text("namespace"), text("name")));
        assert_eq!(version.to_string(), text("resourceVersion"));
    };
    match event {
        WatchEvent::Present { key, resource_version, .. } => named(key, *resource_version),
        WatchEvent::Deleted { key, uid, resource_version, .. } => {
            named(key, *resource_version);
            assert_eq!(&**uid, text("uid"));
        }
        WatchEvent::Bookmark { resource_version, initial_events_end, .. } => {
            assert_eq!(resource_version.to_string(), text("resourceVersion"));
            let marked = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
            assert_eq!(*initial_events_end, marked);
        }
        WatchEvent::Error { code, .. } => assert_eq!(object["code"], *code),
    }
    json!({"type": event.kind(), "object": object})
}

/// Everything a body has to say by now, as events.
async fn events(body: Body) -> Vec<Value> {
    let mut events = body.events().ok().expect("a watch comes as events");
    let mut all = Vec::new();
    while let Some(Some(batch)) = events.next().now_or_never() {
        all.extend(batch.expect("events").iter().map(line));
    }
    all
}

#[tokio::test]
async fn a_client_of_the_same_process_gets_the_events_that_others_read() {
    let client = Client::with(Config::in_memory().with_history_bytes(512 << 10)).await;
    assert_eq!(client.create(DEFINITIONS, &widgets()).await.0, 201);
    let stored = "/apis/it.test/v1/namespaces/default/widgets";
    let served = |(code, _): &(u16, Value)| *code == 200;
    let (_, list) = client.until(stored, served).await;
    let from = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let widget = |name: &str, on: &str| json!({"apiVersion": "it.test/v1", "kind": "Widget", "metadata": {"name": name, "labels": {"on": on}}});
    for (name, on) in [("a", "yes"), ("b", "no"), ("c", "yes")] {
        assert_eq!(client.create(stored, &widget(name, on)).await.0, 201);
    }
    let merge = "application/merge-patch+json";
    client.patch(&format!("{stored}/a"), merge, &json!({"spec": {"size": 1}})).await;
    client.patch(&format!("{stored}/a"), merge, &json!({"metadata": {"labels": {"on": "no"}}})).await;
    client.patch(&format!("{stored}/b"), merge, &json!({"metadata": {"labels": {"on": "yes"}}})).await;
    client.delete(&format!("{stored}/c")).await;

    let transport: Arc<dyn Transport> =
        Arc::new(LocalTransport::privileged(client.server().clone(), "local"));
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let of_version = |version: &str| format!("/apis/it.test/{version}/namespaces/default/widgets?watch=true");
    let mut kinds = Vec::new();
    for version in ["v1", "v2"] {
        for query in [
            format!("resourceVersion={from}"),
            format!("resourceVersion={from}&labelSelector=on%3Dyes"),
            format!("resourceVersion={from}&fieldSelector=metadata.name%3Da"),
            initial.to_owned(),
            format!("{initial}&labelSelector=on%3Dyes"),
        ] {
            let path = format!("{}&{query}", of_version(version));
            let received = events(local(&transport, "application/json", &path).await).await;
            assert_eq!(received, lines(local(&transport, "application/json", &path).await).await, "{path}");
            assert!(!received.is_empty(), "{path}");
            assert!(
                received.iter().all(|event| event["object"]["apiVersion"] == format!("it.test/{version}"))
            );
            kinds.extend(received.iter().map(|event| event["type"].as_str().unwrap_or_default().to_owned()));
        }
    }
    for kind in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"] {
        assert!(kinds.iter().any(|received| received == kind), "{kind}");
    }

    // What the history has lost is an error on both ways, and so is to fall behind.
    let late = local(&transport, "application/json", &of_version("v1")).await;
    for n in 0..30 {
        let mut filler = widget(&format!("filler{n}"), "no");
        filler["spec"] = json!({"filler": "x".repeat(75 << 10)});
        assert_eq!(client.create(stored, &filler).await.0, 201);
    }
    let too_late = events(late).await;
    let expired = (&json!("ERROR"), &json!(410));
    let last = too_late.last().expect("an event");
    assert_eq!((&last["type"], &last["object"]["code"]), expired);
    let path = format!("{}&resourceVersion={from}", of_version("v1"));
    let too_old = lines(local(&transport, "application/json", &path).await).await;
    assert_eq!(
        too_old.iter().map(|event| (&event["type"], &event["object"]["code"])).collect::<Vec<_>>(),
        [expired]
    );
}

#[tokio::test]
async fn a_watch_in_another_shape_or_encoding_is_bytes_for_everybody() {
    let client = Client::start().await;
    client.create(SECRETS, &secret("a", &json!({}))).await;
    let transport: Arc<dyn Transport> =
        Arc::new(LocalTransport::privileged(client.server().clone(), "local"));
    let path = format!("{SECRETS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    for accept in [
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/vnd.kubernetes.protobuf",
    ] {
        let body = local(&transport, accept, &path).await;
        let mut body = body.events().err().expect("bytes");
        assert!(!body.next().await.expect("a piece").expect("a piece").is_empty(), "{accept}");
    }
}

#[tokio::test]
async fn a_user_who_has_too_many_watches_open_gets_a_429_until_one_ends() {
    let limits = WatchLimits { total: 10, per_user: 2 };
    let client = Client::with(Config::in_memory().trusting_everybody().with_watches(limits)).await;
    let jane = client.as_user(User::new("jane", ["system:authenticated"]));
    let path = format!("{SECRETS}?watch=true");
    let first = jane.watch(&path).await;
    let second = jane.watch(&format!("{path}&timeoutSeconds=1")).await;
    let refused = jane.reply("GET", &path, &[], String::new()).await;
    assert_eq!(refused.headers().get("retry-after").map(http::HeaderValue::as_bytes), Some(&b"5"[..]));
    let (code, status) = crate::client::read(refused).await;
    assert_eq!(
        (code, &status["reason"], &status["details"]),
        (429, &json!("TooManyRequests"), &json!({"retryAfterSeconds": 5}))
    );
    assert!(
        status["message"].as_str().is_some_and(|why| why.contains("\"jane\" has 2 watches open")),
        "{status}"
    );
    client.watch(&path).await;
    second.collect().await;
    let third = jane.watch(&path).await;
    drop(first);
    let _fourth = jane.watch(&path).await;
    assert_eq!(jane.reply("GET", &path, &[], String::new()).await.status(), 429);
    drop(third);
    assert_eq!(jane.reply("GET", &path, &[], String::new()).await.status(), 200);
}
