//! Requests in the audit log.

use std::sync::Arc;
use std::time::Duration;

use capstan_apiserver::auth::User;
use capstan_apiserver::{Audit, Config};
use capstan_audit::{AuditLog, LogOptions, Policy, verify};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- {level: None, users: ["system:serviceaccount:a:quiet"]}
- {level: Metadata, resources: [{group: "", resources: [secrets]}]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}], omitStages: [RequestReceived]}
- {level: Metadata, nonResourceURLs: ["/version"]}
"#;

pub async fn audited() -> (Client, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        path: dir.path().join("audit.log"),
        max_bytes: 1 << 20,
        max_backups: 0,
        max_age: Duration::ZERO,
    };
    let log = AuditLog::open(options).expect("a log");
    let audit = Audit { policy: Policy::parse(POLICY).expect("a policy"), log: Some(log), webhook: None };
    (Client::with(Config::in_memory().with_audit(Arc::new(audit))).await, dir)
}

/// Waits until the log has so many events about a path.
pub async fn events(dir: &TempDir, path: &str, count: usize) -> Vec<Value> {
    for _ in 0..1000 {
        let text = std::fs::read_to_string(dir.path().join("audit.log")).expect("the log");
        let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let about: Vec<Value> =
            all.filter(|e| e["requestURI"].as_str().is_some_and(|uri| uri.starts_with(path))).collect();
        if about.len() >= count {
            assert_eq!(about.len(), count, "{about:#?}");
            return about;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {count} events about {path}");
}

#[tokio::test]
async fn the_policy_decides_how_much_is_recorded() {
    let (client, dir) = audited().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    assert_eq!(client.create(path, &body).await.0, 201);
    let created = &events(&dir, path, 1).await[0];
    assert_eq!((&created["stage"], &created["verb"]), (&json!("ResponseComplete"), &json!("create")));
    assert_eq!(created["requestObject"]["data"], json!({"k": "v"}));
    assert_eq!(created["responseObject"]["metadata"]["name"], "a");
    assert_eq!(created["responseObject"]["metadata"]["managedFields"], Value::Null);
    assert_eq!(created["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(created["user"]["username"], "tester");
    assert_eq!(created["userAgent"], "it/1");
    assert_eq!(
        created["objectRef"],
        json!({"resource": "configmaps", "namespace": "default", "apiVersion": "v1"})
    );
    assert_eq!(created["annotations"]["authorization.k8s.io/decision"], "allow");

    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hidden"},
    });
    assert_eq!(client.create(secrets, &secret).await.0, 201);
    let both = events(&dir, secrets, 2).await;
    assert_eq!(both[0]["stage"], "RequestReceived");
    assert_eq!(both[0]["auditID"], both[1]["auditID"]);
    let text = std::fs::read_to_string(dir.path().join("audit.log")).expect("the log");
    assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{text}");
    assert_eq!(verify(&dir.path().join("audit.log")).expect("whole").last, 3);
}

#[tokio::test]
async fn an_error_that_quotes_a_secret_is_recorded_without_its_values() {
    let (client, dir) = audited().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hidden"},
    });
    assert_eq!(client.create(secrets, &secret).await.0, 201);
    let path = format!("{secrets}/s");
    let headers = [("content-type", "application/merge-patch+json")];
    for patch in [json!({"data": {"other": 5}}), json!({"kind": null, "apiVersion": "x"})] {
        let reply = client.reply("PATCH", &path, &headers, patch.to_string()).await;
        assert_eq!(reply.status(), 422);
        let answer = reply.into_body().collect().await.expect("a body").to_bytes();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("aGlkZGVu"), "kube-apiserver shows the object too: {answer}");
    }
    let all = events(&dir, &path, 4).await;
    let message = &all[1]["responseStatus"]["message"];
    assert!(message.as_str().is_some_and(|text| text.starts_with("patch: FieldValueInvalid")), "{message}");
    let text = std::fs::read_to_string(dir.path().join("audit.log")).expect("the log");
    assert!(!text.contains("aGlkZGVu"), "{text}");
}

#[tokio::test]
async fn refusals_are_recorded_with_their_reason() {
    let (client, dir) = audited().await;
    let stranger = client.as_user(User::new("eve", ["system:authenticated"]));
    assert_eq!(stranger.get("/api/v1/namespaces/default/secrets/s").await.0, 403);
    let refused = &events(&dir, "/api/v1/namespaces/default/secrets/s", 2).await[1];
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(
        (&refused["responseStatus"]["code"], &refused["responseStatus"]["reason"]),
        (&403.into(), &"Forbidden".into())
    );

    let quiet = client.as_user(User::new("system:serviceaccount:a:quiet", ["system:authenticated"]));
    assert_eq!(quiet.get("/api/v1/namespaces/other/secrets/s").await.0, 403);
    let reply = client.reply("GET", "/version", &[("audit-id", "mine")], String::new()).await;
    assert_eq!(reply.headers()["audit-id"], "mine");
    let version = events(&dir, "/version", 2).await;
    assert_eq!(version[1]["auditID"], "mine");
    assert_eq!(events(&dir, "/api/v1/namespaces/other", 0).await, Vec::<Value>::new());
}

#[tokio::test]
async fn whoever_acts_for_somebody_else_is_recorded_too() {
    let (client, dir) = audited().await;
    let path = "/api/v1/namespaces/default/secrets";
    let headers = [("impersonate-user", "eve")];
    assert_eq!(client.reply("GET", path, &headers, String::new()).await.status(), 403);
    let event = &events(&dir, path, 2).await[1];
    assert_eq!(
        (&event["user"]["username"], &event["impersonatedUser"]["username"]),
        (&"tester".into(), &"eve".into())
    );
}

#[tokio::test]
async fn a_watch_is_complete_when_it_has_ended() {
    let (client, dir) = audited().await;
    let path = "/api/v1/namespaces/default/configmaps?watch=true";
    let reply = client.reply("GET", path, &[], String::new()).await;
    assert_eq!(events(&dir, path, 1).await[0]["stage"], "ResponseStarted");
    drop(reply);
    let ended = &events(&dir, path, 2).await[1];
    assert_eq!((&ended["stage"], &ended["verb"]), (&json!("ResponseComplete"), &json!("watch")));
}
