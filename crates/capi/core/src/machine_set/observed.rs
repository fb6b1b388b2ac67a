//! What a decision about a MachineSet depends on.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineDeployment};
use capstan_controller::ObjectRef;
use capstan_object::ObjectMeta;

use crate::contract::{External, Found};

/// An object that was made for a machine of the set.
#[derive(Debug, Clone)]
pub struct Part {
    /// Which.
    pub reference: ObjectRef,
    /// Its metadata.
    pub metadata: ObjectMeta,
}

impl Part {
    pub(super) fn of(object: &External) -> Self {
        Self { reference: object.reference(), metadata: object.metadata.clone() }
    }
}

/// Everything beside the set.
#[derive(Debug, Default)]
pub struct Seen {
    /// Its cluster.
    pub cluster: Option<Arc<Cluster>>,
    /// The deployment it is part of.
    pub deployment: Option<Arc<MachineDeployment>>,
    /// Machines it selects and nobody else controls.
    pub machines: Vec<Arc<Machine>>,
    /// The cluster's control plane.
    pub control_plane: Found,
    /// The template of infrastructure machines.
    pub infrastructure_template: Found,
    /// The template of bootstrap configurations.
    pub bootstrap_template: Found,
    /// What its machines are made of.
    pub parts: Vec<Part>,
    /// What was made for machines of the set, by the set's label, whether or not there is such a machine.
    pub made: Vec<Part>,
}

/// Parts by kind and name, each once.
pub fn distinct(parts: &[Part]) -> BTreeMap<&ObjectRef, &ObjectMeta> {
    parts.iter().map(|part| (&part.reference, &part.metadata)).collect()
}
