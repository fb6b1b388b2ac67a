//! Quotas: usage is reported, and limits are enforced.

use serde_json::{Value, json};

use crate::client::Client;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn quota(hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]},
    })
}

async fn until_used(client: &Client, used: &Value) {
    client.until(&format!("{QUOTAS}/q"), |(_, quota)| quota["status"]["used"] == *used).await;
}

#[tokio::test]
async fn a_quota_reports_usage_and_rejects_what_exceeds_it() {
    let client = Client::start().await;
    let hard = json!({"secrets": "1", "count/configmaps": "5", "resourcequotas": "1", "count/nothings.example.com": "1"});
    client.create(QUOTAS, &quota(&hard)).await;
    client.until("/api/v1/namespaces/default/configmaps/kube-root-ca.crt", |(code, _)| *code == 200).await;
    until_used(&client, &json!({"secrets": "0", "count/configmaps": "1", "resourcequotas": "1"})).await;
    let (_, stored) = client.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(stored["status"]["hard"], hard);

    assert_eq!(client.create(SECRETS, &secret("a")).await.0, 201);
    let (code, status) = client.create(SECRETS, &secret("b")).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "secrets \"b\" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1"
    );
    until_used(&client, &json!({"secrets": "1", "count/configmaps": "1", "resourcequotas": "1"})).await;
    // A request that does not increase usage passes.
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(client.patch(&format!("{SECRETS}/a"), "application/merge-patch+json", &labelled).await.0, 200);

    client.delete(&format!("{SECRETS}/a")).await;
    until_used(&client, &json!({"secrets": "0", "count/configmaps": "1", "resourcequotas": "1"})).await;
    assert_eq!(client.create(SECRETS, &secret("b")).await.0, 201);
}

#[tokio::test]
async fn of_many_who_want_the_last_one_only_one_gets_it() {
    let client = Client::start().await;
    client.create(QUOTAS, &quota(&json!({"secrets": "1"}))).await;
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    let creations = names.iter().map(|name| {
        let client = client.clone();
        async move { client.create(SECRETS, &secret(name)).await.0 }
    });
    let codes = futures::future::join_all(creations).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 1, "{codes:?}");
}

#[tokio::test]
async fn a_generated_name_does_not_wait_for_itself() {
    let client = Client::start().await;
    client.create(QUOTAS, &quota(&json!({"secrets": "2"}))).await;
    let generated = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}});
    for code in [201, 201, 403] {
        assert_eq!(client.create(SECRETS, &generated).await.0, code);
    }
}

#[tokio::test]
async fn pods_are_charged_for_what_they_request() {
    let client = Client::start().await;
    client.create(QUOTAS, &quota(&json!({"requests.cpu": "1", "memory": "4Gi", "pods": "5"}))).await;
    assert_eq!(client.create(PODS, &pod("a", "600m")).await.0, 201);
    let (code, status) = client.create(PODS, &pod("b", "500m")).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, \
         limited: requests.cpu=1"
    );
    let mut bare = pod("c", "1m");
    bare["spec"]["containers"][0]["resources"] = json!({});
    let (_, status) = client.create(PODS, &bare).await;
    assert_eq!(
        status["message"],
        "pods \"c\" is forbidden: failed quota: q: must specify memory for: c; requests.cpu for: c"
    );
    until_used(&client, &json!({"requests.cpu": "600m", "memory": "1Gi", "pods": "1"})).await;
}

#[tokio::test]
async fn a_scoped_quota_counts_only_the_pods_in_its_scope() {
    let client = Client::start().await;
    let mut scoped = quota(&json!({"pods": "1"}));
    scoped["spec"]["scopes"] = json!(["Terminating"]);
    client.create(QUOTAS, &scoped).await;
    for name in ["a", "b"] {
        assert_eq!(client.create(PODS, &pod(name, "1")).await.0, 201);
    }
    let ending = |name: &str| {
        let mut pod = pod(name, "1");
        pod["spec"]["activeDeadlineSeconds"] = 60.into();
        pod
    };
    assert_eq!(client.create(PODS, &ending("c")).await.0, 201);
    assert_eq!(client.create(PODS, &ending("d")).await.0, 403);
    until_used(&client, &json!({"pods": "1"})).await;
}

#[tokio::test]
async fn custom_resources_are_counted_from_the_moment_they_are_served() {
    let client = Client::start().await;
    client.create(QUOTAS, &quota(&json!({"count/foos.example.com": "1"}))).await;
    // Nothing that it limits is known yet, so nothing is counted.
    let uncounted = |quota: &Value| quota["hard"].is_object() && quota["used"].is_null();
    client.until(&format!("{QUOTAS}/q"), |(_, quota)| uncounted(&quota["status"])).await;
    client.create(crate::crds::CRDS, &crate::crds::definition()).await;
    until_used(&client, &json!({"count/foos.example.com": "0"})).await;
    client.until(crate::crds::FOOS, |(code, _)| *code == 200).await;
    let foo = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}, "spec": {}});
    assert_eq!(client.create(crate::crds::FOOS, &foo("a")).await.0, 201);
    assert_eq!(client.create(crate::crds::FOOS, &foo("b")).await.0, 403);
    until_used(&client, &json!({"count/foos.example.com": "1"})).await;
}
