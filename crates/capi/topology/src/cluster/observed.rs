//! What a decision about a topology is based on.

use std::collections::BTreeMap;

use capstan_capi_core::contract::External;
use capstan_controller::ObjectRef;

use crate::current::Current;
use crate::desired::Desired;

/// Observed state beside the Cluster.
#[derive(Debug, Default)]
pub enum Observed {
    /// The cluster has no topology, or is being deleted.
    #[default]
    NotManaged,
    /// There is no such class.
    NoClass(String),
    /// The class changed and its controller has not seen it yet.
    ClassNotReconciled,
    /// What is desired cannot be said, or what is there cannot be read.
    Failed(String),
    Topology(Box<Topology>),
}

/// What there is, what there should be, and where they differ.
#[derive(Debug)]
pub struct Topology {
    pub current: Current,
    pub desired: Desired,
    /// By object; what is not listed is as it should be.
    pub differences: BTreeMap<ObjectRef, Difference>,
    /// Templates of the cluster that nothing uses.
    pub orphans: Vec<External>,
}

/// What applying would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Labels, annotations or owners.
    Metadata,
    Spec,
}
