//! Kinds that a cluster works with.

use std::borrow::Cow;

use capstan_controller::KindName;
use capstan_object::Scope::{self, Cluster, Namespaced};

const RBAC: &str = "rbac.authorization.k8s.io";

/// Group, version, kind, plural and scope.
type Row = (&'static str, &'static str, &'static str, &'static str, Scope);

const KINDS: [Row; 21] = [
    ("", "v1", "ConfigMap", "configmaps", Namespaced),
    ("", "v1", "Node", "nodes", Cluster),
    ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", Namespaced),
    ("", "v1", "Pod", "pods", Namespaced),
    ("", "v1", "Secret", "secrets", Namespaced),
    ("", "v1", "Service", "services", Namespaced),
    ("", "v1", "ServiceAccount", "serviceaccounts", Namespaced),
    ("apps", "v1", "DaemonSet", "daemonsets", Namespaced),
    ("apps", "v1", "Deployment", "deployments", Namespaced),
    ("apps", "v1", "ReplicaSet", "replicasets", Namespaced),
    ("apps", "v1", "StatefulSet", "statefulsets", Namespaced),
    ("batch", "v1", "Job", "jobs", Namespaced),
    ("coordination.k8s.io", "v1", "Lease", "leases", Namespaced),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", Namespaced),
    ("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", Cluster),
    ("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", Cluster),
    ("", "v1", "PersistentVolume", "persistentvolumes", Cluster),
    (RBAC, "v1", "ClusterRole", "clusterroles", Cluster),
    (RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", Cluster),
    (RBAC, "v1", "Role", "roles", Namespaced),
    (RBAC, "v1", "RoleBinding", "rolebindings", Namespaced),
];

pub(super) fn named(kind: &str) -> Option<KindName> {
    let (group, version, kind, plural, scope) = *KINDS.iter().find(|row| row.2 == kind)?;
    Some(KindName {
        group: Cow::Borrowed(group),
        version: Cow::Borrowed(version),
        kind: Cow::Borrowed(kind),
        plural: Cow::Borrowed(plural),
        scope,
    })
}
