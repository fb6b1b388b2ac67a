//! What a decision about a Machine is based on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, MachineDeployment, MachineSet};
use capstan_controller::Health;

use super::drain::Plan;
use super::volumes::Attached;
use crate::contract::Lookup;
use crate::in_place::{Failure, Progress};
use crate::workload::Node;

/// Observed state besides the Machine.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    pub set: Option<Arc<MachineSet>>,
    /// The MachineDeployment that set belongs to.
    pub deployment: Option<Arc<MachineDeployment>>,
    pub bootstrap: Lookup,
    pub infrastructure: Lookup,
    /// Health of the connection to the workload cluster.
    pub health: Health,
    pub node: ObservedNode,
    /// Read only while the machine is being deleted.
    pub control_plane: Lookup,
    /// Control plane machines that are not being deleted; counted only while this machine is being deleted.
    pub control_plane_machines: usize,
    /// Drain plan of its Node; read only while draining.
    pub pods: Option<Result<Plan, String>>,
    /// Volumes attached to its Node; read only after draining.
    pub volumes: Option<Result<Attached, String>>,
    pub update: Update,
}

/// How far the update of a machine in place is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Update {
    /// There is none, or something else comes first.
    #[default]
    NotDue,
    Asked(Progress),
    Failed(Failure),
    /// Its infrastructure machine does not exist.
    Impossible,
}

/// A machine's Node.
#[derive(Debug, Clone, Default)]
pub enum ObservedNode {
    /// The machine has no providerID yet.
    #[default]
    NotAsked,
    Found(Arc<Node>),
    Missing,
    /// The workload cluster is unreachable.
    NotConnected(String),
    /// Reading failed.
    Unusable(String),
}

impl ObservedNode {
    pub fn node(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Found(node) => Some(node),
            _ => None,
        }
    }
}
