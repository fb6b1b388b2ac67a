//! Priority levels and flow schemas: what every server has, and what they do to requests.

use std::future::Future as _;
use std::task::{Context, Waker};

use capstan_apiserver::auth::User;
use capstan_apiserver::{Config, InFlightLimits};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const GROUP: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

fn schema(name: &str, level: &str, user: &str) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 10,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": user}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
                }],
            }],
        },
    })
}

fn level(name: &str, response: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": response,
        }},
    })
}

/// A server with a level of one seat for jane.
async fn one_seat(response: Value) -> (Client, Client) {
    with_level(InFlightLimits { read_only: 1, mutating: 1 }, response).await
}

async fn with_level(limits: InFlightLimits, response: Value) -> (Client, Client) {
    let admin = Client::with(Config::in_memory().trusting_everybody().with_in_flight(limits)).await;
    let (code, created) =
        admin.create(&format!("{GROUP}/prioritylevelconfigurations"), &level("narrow", response)).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(admin.create(&format!("{GROUP}/flowschemas"), &schema("jane", "narrow", "jane")).await.0, 201);
    let jane = admin.as_user(User::new("jane", ["system:authenticated"]));
    (admin, jane)
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test]
async fn a_level_that_rejects_answers_429_and_does_not_affect_others() {
    let (admin, jane) = one_seat(json!({"type": "Reject"})).await;
    // Its body never arrives: it keeps its seat.
    let mut upload = Box::pin(jane.upload_without_end("POST", MAPS));
    assert!(upload.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());

    let refused = jane.reply("POST", MAPS, &[], map("a").to_string()).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.headers()["content-type"], "text/plain; charset=utf-8");
    let uid =
        async |path: String| admin.get(&path).await.1["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let schema_uid = uid(format!("{GROUP}/flowschemas/jane")).await;
    let level_uid = uid(format!("{GROUP}/prioritylevelconfigurations/narrow")).await;
    assert_eq!(refused.headers()["x-kubernetes-pf-flowschema-uid"], schema_uid.as_str());
    assert_eq!(refused.headers()["x-kubernetes-pf-prioritylevel-uid"], level_uid.as_str());
    let text = refused.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(text, "Too many requests, please try again later.\n");

    assert_eq!(admin.create(MAPS, &map("a")).await.0, 201, "administrators are exempt");
    let joe = admin.as_user(User::new("joe", ["system:authenticated"]));
    assert_eq!(joe.get(MAPS).await.0, 200, "others have seats of their own");
    assert_eq!(jane.reply("GET", "/readyz", &[], String::new()).await.status(), 200, "probes are exempt");

    drop(upload);
    assert_eq!(jane.create(MAPS, &map("b")).await.0, 201);
    // A watch needs its seat only until it starts.
    let _watches =
        [jane.watch(&format!("{MAPS}?watch=true")).await, jane.watch(&format!("{MAPS}?watch=true")).await];
    assert_eq!(jane.get(MAPS).await.0, 200);
    let metrics = admin.reply("GET", "/metrics", &[], String::new()).await.into_body().collect().await;
    let metrics = String::from_utf8_lossy(&metrics.expect("a body").to_bytes()).into_owned();
    let line = "apiserver_flowcontrol_rejected_requests_total{priority_level=\"narrow\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn a_level_with_queues_lets_requests_wait_for_a_seat() {
    let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 2});
    let (_admin, jane) = one_seat(json!({"type": "Queue", "queuing": queuing})).await;
    let mut upload = Box::pin(jane.upload_without_end("POST", MAPS));
    assert!(futures::poll!(&mut upload).is_pending());
    let a = map("a");
    let mut waiting = Box::pin(jane.create(MAPS, &a));
    let mut second = Box::pin(jane.get(MAPS));
    assert!(futures::poll!(&mut waiting).is_pending() && futures::poll!(&mut second).is_pending());
    assert_eq!(jane.get(MAPS).await.0, 429, "the queue is full");
    drop(upload);
    assert_eq!(waiting.await.0, 201);
    assert_eq!(second.await.0, 200);

    // Whoever waits too long is rejected.
    let mut upload = Box::pin(jane.upload_without_end("POST", MAPS));
    assert!(futures::poll!(&mut upload).is_pending());
    assert_eq!(jane.get(MAPS).await.0, 429);
}

#[tokio::test]
async fn a_limit_of_zero_is_none_for_its_kind_of_requests_only() {
    for (read_only, mutating, reads, writes) in [(0, 1, 200, 429), (1, 0, 200, 201), (0, 0, 200, 201)] {
        let limits = InFlightLimits { read_only, mutating };
        let (_admin, jane) = with_level(limits, json!({"type": "Reject"})).await;
        let mut upload = Box::pin(jane.upload_without_end("POST", MAPS));
        assert!(futures::poll!(&mut upload).is_pending());
        let found = (jane.get(MAPS).await.0, jane.create(MAPS, &map("a")).await.0);
        assert_eq!(found, (reads, writes), "{limits:?}");
    }
}

#[tokio::test]
async fn mandatory_objects_come_back_and_suggested_ones_can_be_kept_as_changed() {
    let client = Client::start().await;
    let levels = format!("{GROUP}/prioritylevelconfigurations");
    let schemas = format!("{GROUP}/flowschemas");
    let (_, listed) = client.get(&levels).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(8));
    let (_, listed) = client.get(&schemas).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(11));
    for schema in listed["items"].as_array().expect("schemas") {
        assert_eq!(schema["status"]["conditions"][0]["reason"], "Found", "{schema}");
    }
    // Mandatory: deleted or changed, it comes back.
    let (_, before) = client.get(&format!("{schemas}/catch-all")).await;
    assert_eq!(client.delete(&format!("{schemas}/catch-all")).await.0, 200);
    let new = |(code, object): &(u16, Value)| {
        *code == 200 && object["metadata"]["uid"] != before["metadata"]["uid"]
    };
    client.until(&format!("{schemas}/catch-all"), new).await;
    let (code, refused) = client
        .patch(
            &format!("{levels}/catch-all"),
            "application/merge-patch+json",
            &json!({"spec": {"limited": {"lendablePercent": 10}}}),
        )
        .await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().expect("a message").contains("must equal the fixed value"));
    // Suggested: changed and then restored, unless its annotation says otherwise.
    let change = |auto: &str| {
        json!({
            "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": auto}},
            "spec": {"limited": {"nominalConcurrencyShares": 7}},
        })
    };
    let path = format!("{levels}/workload-low");
    assert_eq!(client.patch(&path, "application/merge-patch+json", &change("true")).await.0, 200);
    let shares = |object: &Value| object["spec"]["limited"]["nominalConcurrencyShares"].clone();
    client.until(&path, |(_, object)| shares(object) == 100).await;
    let path = format!("{levels}/system");
    assert_eq!(client.patch(&path, "application/merge-patch+json", &change("false")).await.0, 200);
    // A schema without its level says so; the change before it was seen by then.
    assert_eq!(client.create(&schemas, &schema("lost", "none", "x")).await.0, 201);
    let lost = |(_, object): &(u16, Value)| object["status"]["conditions"][0]["status"] == "True";
    let (_, dangling) = client.until(&format!("{schemas}/lost"), lost).await;
    assert_eq!(
        dangling["status"]["conditions"][0]["message"],
        "This FlowSchema references the PriorityLevelConfiguration object named \"none\" but there is no such object"
    );
    assert_eq!(shares(&client.get(&path).await.1), 7);
}

#[tokio::test]
async fn a_start_that_finds_every_level_in_order_writes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let revisions = |client: &Client| {
        ["flowschemas", "prioritylevelconfigurations"].map(|kind| {
            client.server().store().bucket_revision(&format!("flowcontrol.apiserver.k8s.io/{kind}"))
        })
    };
    let settled = {
        let client = Client::with(Config::on_disk(dir.path())).await;
        client.server().store().close().await;
        revisions(&client)
    };
    let client = Client::with(Config::on_disk(dir.path())).await;
    assert_eq!(revisions(&client), settled);
}
