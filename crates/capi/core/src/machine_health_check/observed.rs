//! What a decision about a MachineHealthCheck is based on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine};

use crate::contract::{External, Lookup};
use crate::workload::NodeCondition;

/// Observed state besides the MachineHealthCheck.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    /// The machines it checks, with their nodes.
    pub targets: Vec<Target>,
    /// Why an initialized cluster cannot be reached.
    pub lost_contact: Option<String>,
    /// The template of external remediation requests.
    pub remediation_template: Lookup,
    /// Existing remediation requests by machine.
    pub requests: BTreeMap<String, External>,
}

/// A machine's node.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// The machine has none yet, or the cluster is not reachable yet.
    NotYet,
    Gone,
    There(Vec<NodeCondition>),
}

/// A machine that the check selects.
#[derive(Debug, Clone)]
pub struct Target {
    pub machine: Arc<Machine>,
    pub node: Node,
}
