//! What a decision about a topology is based on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use capstan_capi_core::contract::External;
use capstan_capi_runtime::HookAnswer;
use capstan_controller::ObjectRef;

use super::former_kinds::TemplateKind;
use crate::current::Current;
use crate::desired::Desired;

/// Observed state beside the Cluster.
#[derive(Debug, Default)]
pub enum Observed {
    /// The cluster has no topology.
    #[default]
    NotManaged,
    /// There is no such class.
    NoClass(String),
    /// The class changed and its controller has not seen it yet. While there is patience, that is no news.
    ClassNotReconciled {
        patience: Option<Duration>,
    },
    /// What is desired cannot be said, or what is there cannot be read.
    Failed(String),
    /// An extension did not answer, and is asked again after a time.
    ExtensionFailed {
        why: String,
        again: Duration,
    },
    /// A hook does not let the creation begin.
    CreationBlocked(HookAnswer),
    Deleting(DeletionHook),
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
    /// Workers that should be created and whose names other objects have, which are not the topology's.
    pub taken: BTreeSet<ObjectRef>,
    /// Extensions patch or validate the templates.
    pub extended: bool,
    /// Kinds of which there may be templates of the cluster that the class does not name any more.
    pub former_kinds: BTreeSet<TemplateKind>,
}

/// What hooks say about the deletion of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletionHook {
    Passed,
    Blocks(HookAnswer),
}

/// Changes that an apply would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Labels, annotations or owners.
    Metadata,
    Spec,
}
