//! Roles and bindings that kubeadm creates.

use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";
const NODES: &str = "system:nodes";
const BOOTSTRAPPERS: &str = "system:bootstrappers:kubeadm:default-node-token";

/// Binds the group of `admin.conf` to cluster-admin.
pub(super) fn administrators() -> Vec<Value> {
    let name = "kubeadm:cluster-admins";
    vec![cluster_role_binding(name, "cluster-admin", json!([group(name)]))]
}

/// Permissions of bootstrap tokens.
pub(super) fn bootstrap_tokens() -> Vec<Value> {
    let tokens = || json!([group(BOOTSTRAPPERS)]);
    let csr = "system:certificates.k8s.io:certificatesigningrequests";
    vec![
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
            "metadata": {"name": "kubeadm:get-nodes"},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}],
        }),
        cluster_role_binding("kubeadm:get-nodes", "kubeadm:get-nodes", tokens()),
        cluster_role_binding("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", tokens()),
        cluster_role_binding("kubeadm:node-autoapprove-bootstrap", &format!("{csr}:nodeclient"), tokens()),
        cluster_role_binding(
            "kubeadm:node-autoapprove-certificate-rotation",
            &format!("{csr}:selfnodeclient"),
            json!([group(NODES)]),
        ),
    ]
}

/// A ConfigMap that nodes and joining nodes may read.
pub(super) fn readable_by_nodes(role: &str, config_map: &str) -> Vec<Value> {
    reading("kube-system", role, config_map, json!([group(BOOTSTRAPPERS), group(NODES)]))
}

/// A ConfigMap that joining nodes may read.
pub(super) fn readable_by_tokens(role: &str, config_map: &str) -> Vec<Value> {
    reading("kube-system", role, config_map, json!([group(BOOTSTRAPPERS)]))
}

/// A ConfigMap that anonymous users may read.
pub(super) fn readable_by_anybody(role: &str, config_map: &str) -> Vec<Value> {
    let anonymous = json!([{"kind": "User", "apiGroup": RBAC, "name": "system:anonymous"}]);
    reading("kube-public", role, config_map, anonymous)
}

fn reading(namespace: &str, role: &str, config_map: &str, subjects: Value) -> Vec<Value> {
    let metadata = json!({"name": role, "namespace": namespace});
    vec![
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [config_map], "verbs": ["get"],
            }],
        }),
        json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role}, "subjects": subjects,
        }),
    ]
}

/// Rights of a ServiceAccount in `kube-system`.
pub(super) fn service_account_binding(name: &str, role: &str, account: &str) -> Value {
    let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": "kube-system"});
    cluster_role_binding(name, role, json!([subject]))
}

fn cluster_role_binding(name: &str, role: &str, subjects: Value) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}, "subjects": subjects,
    })
}

fn group(name: &str) -> Value {
    json!({"kind": "Group", "apiGroup": RBAC, "name": name})
}
