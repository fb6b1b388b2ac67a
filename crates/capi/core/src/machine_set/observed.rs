//! What a decision about a MachineSet is based on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineDeployment, MachineSet};
use capstan_controller::ObjectRef;
use capstan_object::ObjectMeta;

use crate::contract::{External, Lookup};

/// A bootstrap config or infrastructure machine of the set.
#[derive(Debug, Clone)]
pub struct Part {
    pub reference: ObjectRef,
    pub metadata: ObjectMeta,
}

impl Part {
    pub(super) fn of(object: &External) -> Self {
        Self { reference: object.reference(), metadata: object.metadata.clone() }
    }
}

/// A machine that is marked for an update in place and does not have its new spec yet.
#[derive(Debug)]
pub struct Arrival {
    pub machine: Arc<Machine>,
    pub infrastructure: Templated,
    pub bootstrap: Templated,
}

/// An object with the template that it was made from.
#[derive(Debug, Default)]
pub struct Templated {
    pub object: Lookup,
    pub template: Lookup,
}

/// Observed state besides the MachineSet.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    /// The deployment it is part of.
    pub deployment: Option<Arc<MachineDeployment>>,
    /// Machines that match its selector and have no other controller.
    pub machines: Vec<Arc<Machine>>,
    pub control_plane: Lookup,
    pub infrastructure_template: Lookup,
    pub bootstrap_template: Lookup,
    /// Objects that its machines refer to.
    pub parts: Vec<Part>,
    /// Objects created for machines of the set, by label, whether or not the machine exists.
    pub made: Vec<Part>,
    /// The set that its machines move to, if they do.
    pub move_target: Option<Arc<MachineSet>>,
    /// Machines that moved here, or whose update in place has not begun for another reason.
    pub arrivals: Vec<Arrival>,
}

/// Deduplicated, by kind and name.
pub fn distinct(parts: &[Part]) -> BTreeMap<&ObjectRef, &ObjectMeta> {
    parts.iter().map(|part| (&part.reference, &part.metadata)).collect()
}
