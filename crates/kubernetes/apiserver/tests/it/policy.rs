//! Roles that the server maintains itself.

use capstan_apiserver::Config;
use capstan_apiserver::auth::User;
use serde_json::{Value, json};

use crate::client::Client;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

fn role(name: &str, labels: &Value, verb: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": [{"apiGroups": ["example.com"], "resources": ["foos"], "verbs": [verb]}],
    })
}

fn verbs(role: &Value) -> Vec<&str> {
    let rules = role["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    rules
        .iter()
        .filter(|r| r["apiGroups"][0] == "example.com")
        .filter_map(|r| r["verbs"][0].as_str())
        .collect()
}

#[tokio::test]
async fn an_aggregating_role_follows_the_roles_its_selectors_match() {
    let client = Client::start().await;
    let gathers = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "all-foos"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"foos": "yes"}}]},
    });
    assert_eq!(client.create(ROLES, &gathers).await.0, 201);
    client.create(ROLES, &role("b", &json!({"foos": "yes"}), "get")).await;
    client.create(ROLES, &role("a", &json!({"foos": "yes"}), "list")).await;
    client.create(ROLES, &role("c", &json!({"foos": "no"}), "delete")).await;
    let path = format!("{ROLES}/all-foos");
    let (_, gathered) = client.until(&path, |(_, role)| verbs(role) == ["list", "get"]).await;
    let managers = gathered["metadata"]["managedFields"].as_array().expect("owners").iter();
    let applied: Vec<&Value> = managers.filter(|m| m["operation"] == "Apply").collect();
    assert_eq!(applied[0]["manager"], "clusterrole-aggregation-controller");

    client.delete(&format!("{ROLES}/a")).await;
    client.until(&path, |(_, role)| verbs(role) == ["get"]).await;
    client.delete(&format!("{ROLES}/b")).await;
    client.until(&path, |(_, role)| verbs(role).is_empty()).await;
}

#[tokio::test]
async fn a_custom_role_labelled_for_viewers_reaches_those_who_edit_and_administer() {
    let client = Client::start().await;
    let labels = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    client.create(ROLES, &role("foo-viewer", &labels, "get")).await;
    for gathering in ["view", "edit", "admin"] {
        client.until(&format!("{ROLES}/{gathering}"), |(_, role)| verbs(role) == ["get"]).await;
    }
}

#[tokio::test]
async fn bootstrap_roles_get_their_rules_back_at_the_next_start_unless_they_opted_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let without_rules = json!({"rules": []});
    let opted_out = json!({
        "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}}, "rules": [],
    });
    let (lost, kept) = (format!("{ROLES}/cluster-admin"), format!("{ROLES}/system:discovery"));
    let before = {
        let client = Client::with(Config::on_disk(dir.path())).await;
        let (_, before) = client.get(&lost).await;
        for (path, patch) in [(&lost, &without_rules), (&kept, &opted_out)] {
            let (code, patched) = client.patch(path, "application/merge-patch+json", patch).await;
            assert_eq!(code, 200, "{patched}");
        }
        client.server().store().close().await;
        before
    };
    let client = Client::with(Config::on_disk(dir.path())).await;
    assert_eq!(client.get(&lost).await.1["rules"], before["rules"]);
    assert_eq!(client.get(&kept).await.1["rules"].as_array().map(Vec::len).unwrap_or(0), 0);
}

#[tokio::test]
async fn a_start_that_finds_everything_in_order_writes_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let settled = {
        let client = Client::with(Config::on_disk(dir.path())).await;
        for namespace in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let furnished = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
            client.until(&furnished, |(code, _)| *code == 200).await;
        }
        client.server().store().close().await;
        client
            .server()
            .store()
            .bucket_revision("rbac.authorization.k8s.io/clusterroles")
            .max(client.server().store().bucket_revision("rbac.authorization.k8s.io/clusterrolebindings"))
    };
    let client = Client::with(Config::on_disk(dir.path())).await;
    for bucket in ["clusterroles", "clusterrolebindings"] {
        let bucket = format!("rbac.authorization.k8s.io/{bucket}");
        assert!(client.server().store().bucket_revision(&bucket) <= settled, "{bucket}");
    }
}

#[tokio::test]
async fn permissions_not_held_cannot_be_granted_unless_everything_is_allowed() {
    let somebody = User::new("somebody", ["system:authenticated"]);
    let strict = Client::start().await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "writers"}, "subjects": [{"kind": "User", "name": "somebody"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"},
    });
    let writer = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "writer"},
        "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}],
    });
    strict.create(ROLES, &writer).await;
    strict.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let object = role("more", &json!({}), "get");
    let (code, status) = strict.as_user(somebody.clone()).create(ROLES, &object).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");

    let trusting = Client::with(Config::in_memory().trusting_everybody()).await;
    assert_eq!(trusting.as_user(somebody).create(ROLES, &object).await.0, 201);
}
