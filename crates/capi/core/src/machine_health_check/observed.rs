//! What a decision about a MachineHealthCheck depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine};

use crate::contract::{External, Found};
use crate::workload::NodeCondition;

/// Everything beside the health check.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The machines it checks, with their nodes.
    pub targets: Vec<Target>,
    /// Why the cluster cannot be asked about its nodes, if it should be possible.
    pub lost_contact: Option<String>,
    /// The template of requests to somebody else who repairs machines.
    pub remediation_template: Found,
    /// Requests that exist, by the name of their machine.
    pub requests: BTreeMap<String, External>,
}

/// What is known of a machine's node.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// The machine has none yet, or the cluster cannot be asked yet.
    NotYet,
    /// The machine had one and it is gone.
    Gone,
    /// It is there.
    There(Vec<NodeCondition>),
}

/// A machine under the check.
#[derive(Debug, Clone)]
pub struct Target {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Its node.
    pub node: Node,
}
