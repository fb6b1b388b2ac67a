//! MachineSet: maintains a number of identical machines.
//!
//! Owns: its Machines, and their bootstrap and infrastructure objects until the Machines own them, or while they change
//! to its template in place. Reads: the Cluster
//! and its control plane, its deployment, the templates. Also writes: its own status, and on its machines the
//! condition with the progress of their remediation.

mod decide;
mod deletion_order;
mod desired;
mod in_place;
#[cfg(test)]
mod move_tests;
mod observe;
mod observed;
mod preflight;
mod remediation;
mod status;

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, MachineSet};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::Key;

use crate::conditions::v1beta1;

pub use observed::{Arrival, Observed, Part, Templated};

#[derive(Debug, Clone, Copy, Default)]
pub struct MachineSets;

impl Controller for MachineSets {
    const NAME: &'static str = "machineset";
    type Kind = MachineSet;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<MachineSet>) {
        observe::watches(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        status::CONDITIONS
    }

    fn paused(&self, set: &MachineSet, view: &View) -> Result<Option<String>, ObserveError> {
        let meta = &set.metadata;
        let cluster =
            view.get::<Cluster>(&Key::new(meta.namespace.as_str(), set.spec.cluster_name.as_str()))?;
        Ok(crate::paused::why(cluster.as_deref(), meta, "MachineSet"))
    }

    async fn observe(&self, set: &Arc<MachineSet>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(set, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::MACHINE_SET, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }
}
