//! What kubeadm installs in a workload cluster: names, kinds and role bindings.

use capstan_controller::KindName;
use capstan_object::Scope;
use serde_json::{Value, json};

use crate::config::kubernetes_version;
use capstan_capi_core::secret::ConfigMap;

/// Namespace of everything that kubeadm installs.
pub(super) const NAMESPACE: &str = "kube-system";
/// Label of control plane nodes, and key of their taint.
pub(super) const CONTROL_PLANE_ROLE: &str = "node-role.kubernetes.io/control-plane";
/// Name of the ConfigMap with kubeadm's configuration.
pub(super) const KUBEADM_CONFIG: &str = "kubeadm-config";
/// Name of CoreDNS's Deployment and of its ConfigMap.
pub(super) const COREDNS: &str = "coredns";
/// Name of kube-proxy's DaemonSet and of its container.
pub(super) const KUBE_PROXY: &str = "kube-proxy";

/// The components that kubeadm runs as static pods.
pub(super) const COMPONENTS: [&str; 4] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"];

/// Name of a component's static pod on a node.
pub(super) fn pod_name(component: &str, node: &str) -> String {
    format!("{component}-{node}")
}

pub(super) fn config_map_kind() -> KindName {
    KindName::of::<ConfigMap>()
}

pub(super) fn kube_proxy_kind() -> KindName {
    KindName::namespaced("apps", "v1", "DaemonSet", "daemonsets")
}

pub(super) fn deployment_kind() -> KindName {
    KindName::namespaced("apps", "v1", "Deployment", "deployments")
}

pub(super) fn binding_kind() -> KindName {
    let group = "rbac.authorization.k8s.io";
    KindName {
        scope: Scope::Cluster,
        ..KindName::namespaced(group, "v1", "ClusterRoleBinding", "clusterrolebindings")
    }
}

/// Group of kubeadm's admins, and name of its ClusterRoleBinding.
const CLUSTER_ADMINS: &str = "kubeadm:cluster-admins";
/// ClusterRoleBinding that lets API servers access kubelets.
const KUBELET_CLIENT: &str = "kubeadm:apiserver-kubelet-client";

/// ClusterRoleBindings that kubeadm of this version, or of the next ones, relies on and that older versions did not
/// create.
pub(super) fn bindings(version: &str) -> &'static [&'static str] {
    match kubernetes_version(version) {
        // By then every cluster has them.
        Ok(version) if (version.major, version.minor) >= (1, 38) => &[],
        _ => &[CLUSTER_ADMINS, KUBELET_CLIENT],
    }
}

/// A ClusterRoleBinding as kubeadm creates it.
pub(super) fn binding(name: &str) -> Value {
    let (role, kind, subject) = if name == KUBELET_CLIENT {
        ("system:kubelet-api-admin", "User", "kube-apiserver-kubelet-client")
    } else {
        ("cluster-admin", "Group", CLUSTER_ADMINS)
    };
    let group = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": kind, "name": subject}],
    })
}
