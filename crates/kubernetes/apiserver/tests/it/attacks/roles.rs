//! Small roles that stand for millions of permissions.

use capstan_apiserver::auth::User;
use serde_json::{Value, json};

use super::confined;
use crate::client::Client;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const ROLE_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const RBAC: &str = "rbac.authorization.k8s.io";

/// An administrator of one namespace.
async fn namespace_admin(client: &Client) -> Client {
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "admins"}, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "mallory"}]});
    let (code, answer) = client.create(ROLE_BINDINGS, &binding).await;
    assert_eq!(code, 201, "{answer}");
    client.as_user(User::new("mallory", ["system:authenticated"]))
}

fn list(prefix: &str, length: usize) -> Vec<String> {
    (0..length).map(|n| format!("{prefix}{n}")).collect()
}

fn role(name: &str, rule: &Value) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": [rule]})
}

#[test]
fn a_role_of_many_combinations() {
    confined(module_path!(), "a_role_of_many_combinations", |client| async move {
        let admin = namespace_admin(&client).await;
        let rule = json!({"apiGroups": list("", 300), "resources": list("", 300), "verbs": list("", 300),
            "resourceNames": list("", 300)});
        let attack = role("large", &rule);
        assert!(attack.to_string().len() < 8_000);
        let (code, answer) = admin.create(ROLES, &attack).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert_eq!(code, 403, "{message}");
        assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{message}");
        assert!(message.ends_with("more permissions"), "{message}");
        assert!(message.len() < 128 * 1024, "{}", message.len());

        // Held permissions can be granted, however many combinations they have.
        let names = json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "update"],
            "resourceNames": list("name", 9_000)});
        let (code, answer) = admin.create(ROLES, &role("names", &names)).await;
        assert_eq!(code, 201, "{answer}");
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": list("", 10_001)});
        let (code, answer) = admin.create(ROLES, &role("long", &rule)).await;
        assert_eq!(code, 422, "{answer}");
        assert_eq!(answer["details"]["causes"][0]["field"], "rules[0].verbs");
    });
}

#[test]
fn a_binding_to_a_role_of_many_combinations() {
    confined(module_path!(), "a_binding_to_a_role_of_many_combinations", |client| async move {
        let admin = namespace_admin(&client).await;
        let rule = json!({"apiGroups": list("", 300), "resources": list("", 300), "verbs": list("", 300),
            "resourceNames": list("", 300)});
        let (code, answer) = client.create(ROLES, &role("large", &rule)).await;
        assert_eq!(code, 201, "{answer}");
        let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "mine"}, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "large"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "mallory"}]});
        let (code, _) = admin.create(ROLE_BINDINGS, &binding).await;
        assert_eq!(code, 403);
    });
}
