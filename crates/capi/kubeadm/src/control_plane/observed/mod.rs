//! What a decision about a control plane depends on: plain data, read by [`observe`](super::observe) and used by
//! [`decide`](super::decide()). No I/O here.

mod control_plane;
mod etcd;
mod static_pod;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::{Found, InfrastructureMachine};
use capstan_capi_core::workload::Node;
use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, annotation};
use capstan_controller::{Health, ObjectRef};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};

use crate::certificates::{Purpose, Seed};
use crate::secret::Secret;

pub use control_plane::{Member, Origin, Plane};
pub use etcd::{EtcdMember, EtcdSeen};
pub use static_pod::{PodStatus, StaticPod};
pub use workload::{Inside, Workload};

/// A machine with what it is made of.
#[derive(Debug, Clone)]
pub struct MachineSeen {
    /// The machine.
    pub machine: Arc<Machine>,
    /// What it boots from.
    pub config: Option<Arc<KubeadmConfig>>,
    /// What provides it.
    pub infrastructure: Found,
}

impl MachineSeen {
    /// As decisions about control planes see it, where these are its cluster's nodes.
    pub(crate) fn member(&self, nodes: &BTreeMap<String, Arc<Node>>) -> Member {
        let origin = self.infrastructure.object().and_then(|object| {
            let said = |key: &str| object.metadata.annotations.get(key).cloned();
            Some(Origin {
                name: said(annotation::CLONED_FROM_NAME)?,
                group_kind: said(annotation::CLONED_FROM_GROUP_KIND)?,
            })
        });
        let config = self.config.as_ref().map(|config| config.spec.clone());
        Member { machine: self.machine.clone(), config, origin, node: self.node(nodes) }
    }

    /// The node a machine has become. Its etcd may have joined before the Machine says so, and who takes the machine
    /// away then would leave that member behind.
    fn node(&self, nodes: &BTreeMap<String, Arc<Node>>) -> String {
        let said = &self.machine.status.node_ref.name;
        if !said.is_empty() {
            return said.clone();
        }
        let provided = || {
            let object = self.infrastructure.object()?;
            InfrastructureMachine(object).provider_id().ok().flatten()
        };
        let id = Some(self.machine.spec.provider_id.clone()).filter(|id| !id.is_empty()).or_else(provided);
        let Some(id) = id.filter(|id| !id.is_empty()) else { return String::new() };
        let mut found = nodes.values().filter(|node| node.spec.provider_id == id);
        match (found.next(), found.next()) {
            (Some(node), None) => node.metadata.name.clone(),
            _ => String::new(),
        }
    }
}

/// What was seen beside the KubeadmControlPlane.
#[derive(Debug)]
pub struct Seen {
    /// Its cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The template of infrastructure machines.
    pub template: Found,
    /// Machines of the cluster's control plane, whoever owns them, in order of their names.
    pub machines: Vec<MachineSeen>,
    /// Names of all other machines of the cluster.
    pub workers: Vec<String>,
    /// What was made for machines of this control plane, by its label, whether or not there is such a machine.
    pub made: Vec<(ObjectRef, ObjectMeta)>,
    /// The cluster's certificates, as far as they exist.
    pub certificates: BTreeMap<Purpose, Secret>,
    /// The kubeconfig of the administrator.
    pub kubeconfig: Option<Secret>,
    /// The workload cluster.
    pub workload: Workload,
    /// How the workload cluster answered lately.
    pub health: Health,
    /// Randomness for what is made.
    pub seed: Seed,
}

/// The cluster that owns a control plane, which core has written there.
pub(crate) fn cluster_of(control_plane: &KubeadmControlPlane) -> Option<Key> {
    let is_cluster =
        |owner: &&OwnerReference| owner.kind == Cluster::KIND.kind && owner.group() == Cluster::KIND.group;
    let owner = control_plane.metadata.owner_references.iter().find(is_cluster)?;
    Some(Key::new(control_plane.metadata.namespace.as_str(), owner.name.as_str()))
}
