//! Backups over the API.

use capstan_apiserver::auth::User;
use capstan_apiserver::backup::{Backup, PATH};
use serde_json::{Value, json};

use crate::client::Client;

#[tokio::test]
async fn a_backup_is_for_administrators_alone_whatever_paths_are_open_to_others() {
    let client = Client::start().await;
    client
        .create(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            &json!({"metadata": {"name": "all-paths"}, "rules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}]}),
        )
        .await;
    client
        .create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &json!({"metadata": {"name": "all-paths"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all-paths"},
                "subjects": [{"kind": "User", "name": "eve"}]}),
        )
        .await;
    let eve = client.clone().as_user(User::new("eve", ["system:authenticated"]));
    assert_eq!(eve.get("/metrics").await.0, 200, "the role works");
    let (code, status) = eve.get(PATH).await;
    assert_eq!((code, status["reason"].as_str()), (403, Some("Forbidden")), "{status}");
    let nobody = client.clone().as_user(User::anonymous());
    assert_eq!(nobody.get(PATH).await.0, 403);
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).expect("a version")
}

#[tokio::test]
async fn a_backup_shows_the_moment_it_was_asked_for() {
    let client = Client::start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let (_, before) = client.create(maps, &json!({"metadata": {"name": "before"}})).await;
    let stream = client.watch(PATH).await;
    let (_, after) = client.create(maps, &json!({"metadata": {"name": "after"}})).await;
    let bytes = stream.collect().await;
    let backup = Backup::read(&mut &bytes[..], None).expect("a whole backup");
    assert!((version(&before)..version(&after)).contains(&backup.revision()));
}
