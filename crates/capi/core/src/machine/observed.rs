//! What a decision about a Machine depends on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, MachineDeployment, MachineSet};
use capstan_controller::Health;

use super::drain::Plan;
use super::volumes::Attached;
use crate::contract::Found;
use crate::workload::Node;

/// What was seen beside the Machine.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The MachineSet it belongs to.
    pub set: Option<Arc<MachineSet>>,
    /// The MachineDeployment that set belongs to.
    pub deployment: Option<Arc<MachineDeployment>>,
    /// What makes its boot data.
    pub bootstrap: Found,
    /// What provides it.
    pub infrastructure: Found,
    /// How its workload cluster answers.
    pub health: Health,
    /// Its Node.
    pub node: NodeSeen,
    /// Its cluster's control plane; looked at only when the machine goes.
    pub control_plane: Found,
    /// Machines of the control plane that stay; counted only when the machine goes.
    pub control_plane_machines: usize,
    /// Pods on its Node; looked at only when the Node is to be drained.
    pub pods: Option<Result<Plan, String>>,
    /// Volumes its Node still has; looked at only when it has been drained.
    pub volumes: Option<Result<Attached, String>>,
}

/// What is known of a machine's Node.
#[derive(Debug, Clone, Default)]
pub enum NodeSeen {
    /// The machine has no identity yet to find it by.
    #[default]
    NotAsked,
    /// The Node.
    Found(Arc<Node>),
    /// There is none.
    Missing,
    /// The workload cluster does not answer.
    NotConnected(String),
    /// It cannot be told.
    Unusable(String),
}

impl NodeSeen {
    /// The Node, if it was found.
    pub fn node(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Found(node) => Some(node),
            _ => None,
        }
    }
}
