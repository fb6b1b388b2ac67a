//! What a control plane does in its workload cluster and in etcd.

use std::sync::Arc;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_controller::{Call, Intent, ObserveError, Outcome, Patch, Resolution, View};
use capstan_object::Key;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::etcd::{self, Etcd};
use super::observe::{Passes, cluster_of, etcd_credentials};
use super::workload::{
    COREDNS, KUBE_PROXY, NAMESPACE, binding_kind, config_map_kind, deployment_kind, kube_proxy_kind, words,
};
use super::{code, upkeep};
use crate::certificates::Keys;

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
    fn target(self) -> (capstan_controller::KindName, &'static str) {
        match self {
            Self::KubeadmConfig => (config_map_kind(), "kubeadm-config"),
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

/// Makes a call.
pub(super) async fn make(
    call: &ControlPlaneCall,
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
) -> Outcome {
    let cluster = cluster_of(control_plane);
    let done = async {
        let cluster = cluster.ok_or_else(|| "the cluster is gone".to_owned())?;
        match call {
            ControlPlaneCall::RemoveMember { id, nodes, .. } => {
                reach(&cluster, control_plane, view, keys).await?.remove(*id, nodes).await
            }
            ControlPlaneCall::MoveLeader { from, to } => {
                reach(&cluster, control_plane, view, keys).await?.move_leader(from, to).await
            }
            ControlPlaneCall::Bind { name } => {
                let client = etcd::workloads(view)?.client(&cluster).await;
                let client = client.map_err(|error| error.to_string())?;
                match client.create(&binding_kind(), "", &upkeep::binding(name)).await {
                    Err(error) if !error.is_already_exists() => Err(words(error)),
                    _ => Ok(()),
                }
            }
            ControlPlaneCall::Change { what, change } => {
                let client = etcd::workloads(view)?.client(&cluster).await;
                let client = client.map_err(|error| error.to_string())?;
                let (kind, name) = what.target();
                let patch = Patch::Merge(change.clone());
                let changed = client.patch(&kind, &Key::new(NAMESPACE, name), None, &patch).await;
                changed.map(|_| ()).map_err(words)
            }
        }
    };
    let code = match call {
        ControlPlaneCall::RemoveMember { .. } | ControlPlaneCall::MoveLeader { .. } => code::ETCD,
        _ => code::WORKLOAD,
    };
    match done.await {
        Ok(()) => Outcome::done(),
        // Each of these may be repeated: a member's id is never given again, and the rest says what should be.
        Err(why) => Outcome::failed(code, why),
    }
}

/// What became of a call that nobody heard the end of. Where etcd cannot be asked it counts as not made: what is
/// repeated looks first.
pub(super) async fn resolve(
    intent: &Intent<ControlPlaneCall>,
    control_plane: &Arc<KubeadmControlPlane>,
    view: &View,
    keys: &dyn Keys,
) -> Result<Resolution, ObserveError> {
    let (ControlPlaneCall::RemoveMember { id, nodes, .. }, Some(cluster)) =
        (&intent.call, cluster_of(control_plane))
    else {
        return Ok(Resolution::DidNotHappen);
    };
    let there = async { reach(&cluster, control_plane, view, keys).await?.has(*id, nodes).await };
    Ok(match there.await {
        Ok(false) => Resolution::happened(),
        Ok(true) | Err(_) => Resolution::DidNotHappen,
    })
}

async fn reach<'a>(
    cluster: &'a Key,
    control_plane: &KubeadmControlPlane,
    view: &'a View,
    keys: &dyn Keys,
) -> Result<Etcd<'a>, String> {
    let meta = &control_plane.metadata;
    let seed = keys
        .seed(&format!("{}/{}/{}", meta.namespace, meta.name, meta.uid))
        .map_err(|error| error.to_string())?;
    let credentials = etcd_credentials(cluster, view, &seed, &Passes::default())
        .await
        .map_err(|error| error.to_string())??;
    Ok(Etcd { workloads: etcd::workloads(view)?, cluster, credentials })
}
