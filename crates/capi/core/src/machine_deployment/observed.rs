//! What a decision about a MachineDeployment is based on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineSet, TEMPLATE_SUFFIX};

use crate::contract::Lookup;

/// Observed state besides the MachineDeployment.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    /// MachineSets it controls, or that match its selector and have no controller.
    pub sets: Vec<Arc<MachineSet>>,
    /// Machines it selects.
    pub machines: Vec<Arc<Machine>>,
    pub infrastructure_template: Lookup,
    pub bootstrap_template: Lookup,
}

/// The kind of a referenced template that does not exist; references to other kinds are not followed.
pub fn missing(found: &Lookup, kind: &str) -> Option<String> {
    (found.is_missing() && kind.ends_with(TEMPLATE_SUFFIX)).then(|| kind.to_owned())
}
