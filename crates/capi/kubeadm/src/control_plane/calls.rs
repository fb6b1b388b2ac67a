//! Calls to the workload cluster and to its etcd.

use capstan_controller::{Call, KindName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::installed::{
    COREDNS, KUBE_PROXY, KUBEADM_CONFIG, config_map_kind, deployment_kind, kube_proxy_kind,
};

/// A call to the workload cluster or to its etcd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ControlPlaneCall {
    /// Removes a member from etcd.
    RemoveMember {
        id: u64,
        /// For messages only; the id decides.
        member: String,
        /// Nodes whose members may execute the removal.
        nodes: Vec<String>,
    },
    /// Moves etcd's leadership from one node to another.
    MoveLeader { from: String, to: String },
    /// Creates a ClusterRoleBinding that newer kubeadm versions create.
    Bind { name: String },
    /// Patches an object that kubeadm installed.
    Change {
        what: InstalledObject,
        /// Merge patch, guarded by the observed resourceVersion.
        change: Value,
    },
}

/// An object that kubeadm installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InstalledObject {
    KubeadmConfig,
    KubeProxy,
    CoreDns,
    CoreDnsConfig,
}

impl InstalledObject {
    pub(super) fn target(self) -> (KindName, &'static str) {
        match self {
            Self::KubeadmConfig => (config_map_kind(), KUBEADM_CONFIG),
            Self::KubeProxy => (kube_proxy_kind(), KUBE_PROXY),
            Self::CoreDns => (deployment_kind(), COREDNS),
            Self::CoreDnsConfig => (config_map_kind(), COREDNS),
        }
    }
}

impl Call for ControlPlaneCall {
    fn idempotency_key(&self) -> String {
        match self {
            Self::RemoveMember { id, .. } => format!("etcd-member/{id:x}"),
            Self::MoveLeader { from, .. } => format!("etcd-leader/{from}"),
            Self::Bind { name } => format!("clusterrolebinding/{name}"),
            Self::Change { what, .. } => format!("{}/{}", what.target().0.kind, what.target().1),
        }
    }

    /// Patches declare the desired state and bindings have fixed names, so only removals need a journal entry.
    fn journalled(&self) -> bool {
        matches!(self, Self::RemoveMember { .. })
    }

    fn summary(&self) -> String {
        match self {
            Self::RemoveMember { member, .. } if member.is_empty() => {
                "remove an etcd member without name".to_owned()
            }
            Self::RemoveMember { member, .. } => format!("remove etcd member {member}"),
            Self::MoveLeader { from, to } => format!("move etcd's leadership from {from} to {to}"),
            Self::Bind { name } => format!("bind {name} in the workload cluster"),
            Self::Change { what, .. } => {
                format!("change {} {} in the workload cluster", what.target().0.kind, what.target().1)
            }
        }
    }
}
