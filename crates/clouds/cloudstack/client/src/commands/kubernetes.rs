//! Entries of clusters in CloudStack's own list. Only those of clusters that others manage.

use serde::Serialize;

use super::{Owner, Scope};
use crate::command::{calls, jobs, lists};
use crate::id::{KubernetesClusterId, NetworkId, NoId, VirtualMachineId, ZoneId};
use crate::model::{Done, KubernetesCluster};

/// Clusters.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListKubernetesClusters {
    /// The one with this id.
    pub id: Option<KubernetesClusterId>,
    /// Those whose name contains this.
    pub keyword: Option<String>,
    /// `ExternalManaged` or `CloudManaged`.
    pub clustertype: Option<String>,
    /// Owner of the Kubernetes clusters.
    #[serde(flatten)]
    pub scope: Scope,
}

/// Makes an entry. Names are not unique.
#[derive(Debug, Clone, Serialize)]
pub struct CreateKubernetesCluster {
    /// Name of the Kubernetes cluster.
    pub name: String,
    /// Description of the Kubernetes cluster.
    pub description: String,
    /// Where.
    pub zoneid: ZoneId,
    /// The network of its machines.
    pub networkid: Option<NetworkId>,
    /// `ExternalManaged`.
    pub clustertype: String,
    /// Where its API is reached.
    pub externalloadbalanceripaddress: Option<String>,
    /// For whom.
    #[serde(flatten)]
    pub owner: Owner,
}

/// Deletes an entry. Its machines stay.
#[derive(Debug, Clone, Serialize)]
pub struct DeleteKubernetesCluster {
    /// Id of the Kubernetes cluster.
    pub id: KubernetesClusterId,
}

/// Adds machines to an entry. Those that it has are added again without an error.
#[derive(Debug, Clone, Serialize)]
pub struct AddVirtualMachinesToKubernetesCluster {
    /// The entry.
    pub id: KubernetesClusterId,
    /// The machines.
    pub virtualmachineids: Vec<VirtualMachineId>,
    /// They are control planes.
    pub iscontrolnode: Option<bool>,
}

/// Takes machines out of an entry.
#[derive(Debug, Clone, Serialize)]
pub struct RemoveVirtualMachinesFromKubernetesCluster {
    /// The entry.
    pub id: KubernetesClusterId,
    /// The machines.
    pub virtualmachineids: Vec<VirtualMachineId>,
}

lists! { ListKubernetesClusters: "listKubernetesClusters" => "kubernetescluster" KubernetesCluster; }
calls! {
    AddVirtualMachinesToKubernetesCluster: "addVirtualMachinesToKubernetesCluster" => Done;
    RemoveVirtualMachinesFromKubernetesCluster: "removeVirtualMachinesFromKubernetesCluster" => Done;
}
jobs! {
    CreateKubernetesCluster: "createKubernetesCluster" [KubernetesClusterId] => "kubernetescluster" KubernetesCluster;
    DeleteKubernetesCluster: "deleteKubernetesCluster" [NoId] => Done;
}
