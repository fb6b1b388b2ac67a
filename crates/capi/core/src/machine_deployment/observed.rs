//! What a decision about a MachineDeployment is based on.

use std::collections::BTreeSet;
use std::sync::Arc;

use capstan_capi_types::core::{Cluster, Machine, MachineSet, TEMPLATE_SUFFIX};

use crate::contract::Lookup;
use crate::in_place::Failure;

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
    pub in_place: InPlace,
}

/// What an extension said about changes from old sets to the current one.
#[derive(Debug, Default)]
pub struct InPlace {
    /// Old sets whose machines can be updated in place.
    pub sets: BTreeSet<String>,
    /// Why machines of other old sets are replaced.
    pub refused: Vec<String>,
    /// It could not be asked: nothing is rolled out before it answers.
    pub failed: Option<Failure>,
}

/// The kind of a referenced template that does not exist; references to other kinds are not followed.
pub fn missing(found: &Lookup, kind: &str) -> Option<String> {
    (found.is_missing() && kind.ends_with(TEMPLATE_SUFFIX)).then(|| kind.to_owned())
}
