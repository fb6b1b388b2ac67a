//! MachineHealthCheck: finds machines that need to be replaced, and asks their owner, or somebody else, to.
//!
//! Reads: the Cluster, its Machines, and the Nodes in the workload cluster. Writes: on machines the conditions
//! that say how the check went and that a replacement is asked for; requests made from a remediation template;
//! its own status. It never deletes a machine.

mod check;
mod decide;
mod limits;
mod observe;

use std::sync::{Arc, OnceLock};

use capstan_capi_types::core::machine_health_check::condition::REMEDIATION_ALLOWED;
use capstan_capi_types::core::{Cluster, MachineHealthCheck, condition};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Wake, Watches};
use capstan_object::Key;

pub use check::{Node, NodeCondition, Target};
pub use observe::Seen;

/// The controller of MachineHealthChecks.
#[derive(Default)]
pub struct MachineHealthChecks {
    /// Wakes a check when nodes of its cluster change; known once the controller watches.
    wake: OnceLock<Wake>,
}

impl Controller for MachineHealthChecks {
    const NAME: &'static str = "machinehealthcheck";
    type Kind = MachineHealthCheck;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<MachineHealthCheck>) {
        // A second call would find the same queue.
        let _ = self.wake.set(watches.wake());
        observe::watches(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::PAUSED, REMEDIATION_ALLOWED]
    }

    fn paused(&self, check: &MachineHealthCheck, view: &View) -> Result<Option<String>, ObserveError> {
        let meta = &check.metadata;
        let cluster =
            view.get::<Cluster>(&Key::new(meta.namespace.as_str(), check.spec.cluster_name.as_str()))?;
        Ok(crate::paused::why(cluster.as_deref(), meta, "MachineHealthCheck"))
    }

    async fn observe(&self, check: &Arc<MachineHealthCheck>, view: &View) -> Result<Seen, ObserveError> {
        observe::observe(check, view, self.wake.get()).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}
