//! Clusters in CloudStack's own list.

use serde::{Deserialize, Serialize};

use crate::id::{KubernetesClusterId, VirtualMachineId};

/// An entry of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesCluster {
    /// Id of the Kubernetes cluster.
    pub id: KubernetesClusterId,
    /// Name of the Kubernetes cluster, not unique.
    pub name: Option<String>,
    /// `ExternalManaged` or `CloudManaged`.
    pub clustertype: Option<String>,
    /// Its machines, those that were destroyed as well.
    #[serde(default)]
    pub virtualmachines: Vec<ClusterMember>,
}

/// A machine of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterMember {
    /// Id of the cluster member.
    pub id: VirtualMachineId,
}
