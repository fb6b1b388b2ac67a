//! What a control plane may do in its workload cluster and in etcd.

use capstan_controller::{Call, KindName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::installed::{
    COREDNS, KUBE_PROXY, KUBEADM_CONFIG, config_map_kind, deployment_kind, kube_proxy_kind,
};

/// Something done in a workload cluster or in its etcd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ControlPlaneCall {
    /// Takes a member out of etcd.
    RemoveMember {
        /// Its id.
        id: u64,
        /// Its name, for people.
        member: String,
        /// Nodes whose members are asked to.
        nodes: Vec<String>,
    },
    /// Has a member that leads etcd make another one the leader.
    MoveLeader {
        /// The node that leads.
        from: String,
        /// The node that shall.
        to: String,
    },
    /// Makes a binding that newer versions of kubeadm make.
    Bind {
        /// Its name.
        name: String,
    },
    /// Changes what kubeadm installed.
    Change {
        /// What.
        what: Installed,
        /// The change, in the form of a merge patch; guarded by the version that was seen.
        change: Value,
    },
}

/// Something that kubeadm installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Installed {
    /// kubeadm's own configuration.
    KubeadmConfig,
    /// kube-proxy's DaemonSet.
    KubeProxy,
    /// CoreDNS's Deployment.
    CoreDns,
    /// CoreDNS's configuration.
    CoreDnsConfig,
}

impl Installed {
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

    /// What changes a thing that stays says what should be; what makes one has a fixed name.
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
