//! What a decision about a MachinePool is based on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine};

use crate::contract::{External, Lookup};
use crate::workload::Node;

/// Observed state besides the MachinePool.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    pub bootstrap: Lookup,
    /// The provider's pool.
    pub infrastructure: Lookup,
    /// The kind of the provider's pool is installed.
    pub infrastructure_kind_exists: bool,
    /// The machines of the provider's pool; `None` if the provider reports no kind for them.
    pub infrastructure_machines: Option<Vec<External>>,
    /// The pool's Machines, sorted by name.
    pub machines: Vec<Arc<Machine>>,
    pub nodes: ObservedNodes,
}

/// The Nodes of a pool.
#[derive(Debug, Default)]
pub enum ObservedNodes {
    /// There is nothing to look up, or the control plane is not initialized.
    #[default]
    NotAsked,
    /// The workload cluster is unreachable, or a providerID is ambiguous.
    NotConnected(String),
    Known {
        /// Nodes by providerID, of the ids that the provider reports.
        by_id: BTreeMap<String, Arc<Node>>,
        /// Existing Nodes that `status.nodeRefs` names.
        referenced: Vec<Arc<Node>>,
    },
}
