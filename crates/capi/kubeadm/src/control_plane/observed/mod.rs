//! What a decision about a control plane is based on: plain data, read by [`observe`](super::observe) and used by
//! [`decide`](super::decide()). No I/O here.

mod control_plane;
mod etcd;
mod static_pod;
mod workload;

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_core::contract::{External, InfrastructureMachine, Lookup};
use capstan_capi_core::in_place::Failure;
use capstan_capi_core::workload::Node;
use capstan_capi_types::bootstrap::KubeadmConfig;
use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine, annotation};
use capstan_controller::{Health, ObjectRef};
use capstan_object::{Key, Object, ObjectMeta, OwnerReference};
use jiff::Timestamp;

use crate::certificates::{Purpose, Seed};
use capstan_capi_core::secret::Secret;

pub use control_plane::{ControlPlaneMachine, ControlPlaneState, TemplateOrigin};
pub use etcd::{EtcdMember, EtcdState};
pub use static_pod::{PodStatus, StaticPod};
pub use workload::{Workload, WorkloadState};

/// A machine with its KubeadmConfig and infrastructure machine.
#[derive(Debug, Clone)]
pub struct ObservedMachine {
    pub machine: Arc<Machine>,
    pub config: Option<Arc<KubeadmConfig>>,
    pub infrastructure: Lookup,
}

impl ObservedMachine {
    /// Resolves the node and template origin of the machine.
    pub(crate) fn resolve(&self, nodes: &BTreeMap<String, Arc<Node>>) -> ControlPlaneMachine {
        let origin = self.infrastructure.object().and_then(|object| {
            let annotation_of = |key: &str| object.metadata.annotations.get(key).cloned();
            Some(TemplateOrigin {
                name: annotation_of(annotation::CLONED_FROM_NAME)?,
                group_kind: annotation_of(annotation::CLONED_FROM_GROUP_KIND)?,
            })
        });
        let config = self.config.as_ref().map(|config| config.spec.clone());
        ControlPlaneMachine { machine: self.machine.clone(), config, origin, node: self.node(nodes) }
    }

    /// The node of a machine. Its etcd member may have joined before `status.nodeRef` is set; deleting the machine by
    /// nodeRef alone would leave that member behind.
    fn node(&self, nodes: &BTreeMap<String, Arc<Node>>) -> String {
        let node = &self.machine.status.node_ref.name;
        if !node.is_empty() {
            return node.clone();
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

/// Observed state besides the KubeadmControlPlane.
#[derive(Debug)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    pub template: Lookup,
    /// Control plane machines of the cluster, with any owner, sorted by name.
    pub machines: Vec<ObservedMachine>,
    /// Names of all other machines.
    pub workers: Vec<String>,
    /// Objects created for machines of this control plane, by label, whether or not the machine exists.
    pub made: Vec<(ObjectRef, ObjectMeta)>,
    /// Existing certificate Secrets of the cluster.
    pub certificates: BTreeMap<Purpose, Secret>,
    pub kubeconfig: Option<Secret>,
    pub workload: Workload,
    /// Health of the connection to the workload cluster.
    pub health: Health,
    /// Randomness for generated keys and tokens.
    pub seed: Seed,
    /// Templates of infrastructure machines that change to another one in place, by machine.
    pub former_templates: BTreeMap<String, External>,
    pub in_place: InPlace,
}

/// What an extension said about the machine that the rollout would delete next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InPlace {
    /// No machine is due, or no server has the hook.
    #[default]
    NotAsked,
    Possible {
        machine: String,
    },
    /// It is replaced.
    Refused {
        machine: String,
        why: String,
    },
    /// It could not be asked: nothing is rolled out before it answers.
    Failed(Failure),
}

impl Observed {
    /// The state of a control plane, with its own machines.
    pub(crate) fn plane(
        &self,
        control_plane: Arc<KubeadmControlPlane>,
        cluster: Arc<Cluster>,
        now: Timestamp,
    ) -> ControlPlaneState {
        let uid = &control_plane.metadata.uid;
        let owned = self
            .machines
            .iter()
            .filter(|seen| seen.machine.metadata.controller().is_some_and(|owner| owner.uid == *uid));
        let reached = self.workload.reached();
        let (none, unseen) = (BTreeMap::new(), &[][..]);
        let (nodes, etcd) =
            reached.map_or((&none, unseen), |reached| (&reached.nodes, reached.etcd.members()));
        let machines = owned.map(|machine| machine.resolve(nodes)).collect();
        ControlPlaneState { machines, etcd: etcd.to_vec(), control_plane, cluster, now }
    }
}

/// The cluster that owns a control plane, by owner reference.
pub(crate) fn cluster_of(control_plane: &KubeadmControlPlane) -> Option<Key> {
    let is_cluster =
        |owner: &&OwnerReference| owner.kind == Cluster::KIND.kind && owner.group() == Cluster::KIND.group;
    let owner = control_plane.metadata.owner_references.iter().find(is_cluster)?;
    Some(Key::new(control_plane.metadata.namespace.as_str(), owner.name.as_str()))
}
