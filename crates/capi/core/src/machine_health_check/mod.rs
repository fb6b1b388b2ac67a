//! MachineHealthCheck: finds unhealthy machines and requests their remediation.
//!
//! Reads: the Cluster, its Machines, and the Nodes in the workload cluster. Writes: on machines the conditions
//! with the result of the check and the request for remediation; requests created from a remediation template;
//! its own status. It never deletes a machine.

mod check;
mod decide;
mod limits;
mod observe;
mod observed;

use std::sync::Arc;

use capstan_capi_types::core::machine_health_check::condition::REMEDIATION_ALLOWED;
use capstan_capi_types::core::{Cluster, MachineHealthCheck, condition};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::Key;

pub use observed::{Node, Observed, Target};

use crate::workload::Nodes;

pub struct MachineHealthChecks {
    nodes: Arc<Nodes>,
}

impl MachineHealthChecks {
    /// Shares `nodes` with other controllers.
    pub fn new(nodes: Arc<Nodes>) -> Self {
        Self { nodes }
    }
}

impl Controller for MachineHealthChecks {
    const NAME: &'static str = "machinehealthcheck";
    type Kind = MachineHealthCheck;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<MachineHealthCheck>) {
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

    async fn observe(&self, check: &Arc<MachineHealthCheck>, view: &View) -> Result<Observed, ObserveError> {
        observe::observe(check, view, &self.nodes).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    fn gone(&self, key: &Key) {
        self.nodes.forget::<MachineHealthCheck>(key);
    }
}
