//! What a decision about a MachineDeployment depends on.

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineSet, TEMPLATE_SUFFIX};

use crate::contract::Lookup;

/// State beside the MachineDeployment itself.
#[derive(Debug, Default)]
pub struct Observed {
    pub cluster: Option<Arc<Cluster>>,
    /// MachineSets it controls, or whose labels it selects and that nobody controls.
    pub sets: Vec<Arc<MachineSet>>,
    /// Machines it selects.
    pub machines: Vec<Arc<Machine>>,
    pub infrastructure_template: Lookup,
    pub bootstrap_template: Lookup,
}

/// The kind of a template that a reference names and that does not exist; references to anything that is not a
/// template are not followed.
pub fn missing(found: &Lookup, kind: &str) -> Option<String> {
    (found.is_missing() && kind.ends_with(TEMPLATE_SUFFIX)).then(|| kind.to_owned())
}
