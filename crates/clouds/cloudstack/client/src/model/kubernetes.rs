//! Clusters in CloudStack's own list.

use serde::{Deserialize, Serialize};

use crate::id::{KubernetesClusterId, VirtualMachineId};

/// An entry of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesCluster {
    /// Its id.
    pub id: KubernetesClusterId,
    /// Its name: not unique.
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
    /// Its id.
    pub id: VirtualMachineId,
}
