//! A decision under construction.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Decision, Look, Wait};

use crate::control_plane::observed::ControlPlaneState;
use crate::control_plane::{ControlPlaneController, Settings};

pub(super) type Looked = Look<ControlPlaneController>;
pub(super) type Decided = Decision<ControlPlaneController>;

/// Requeue interval while blocked, if no event triggers a reconcile earlier.
pub(super) const RETRY: Duration = Duration::from_secs(15);

/// A decision under construction.
pub(super) struct ReconcileScope<'a> {
    pub settings: &'a Settings,
    pub look: &'a Looked,
    pub cluster: &'a Arc<Cluster>,
    pub decision: Decided,
    /// What blocks scaling.
    pub obstacles: Vec<String>,
    /// etcd members match the machines.
    pub matching: bool,
    /// Fields of machines are being changed in place.
    pub propagating: bool,
    /// `Deleting`, while the control plane is being deleted.
    pub deleting: Option<ConditionState>,
}

impl ReconcileScope<'_> {
    /// The observed state, with the changes that this decision already made to the object.
    pub fn plane(&self) -> ControlPlaneState {
        let control_plane = Arc::new(self.decision.object.clone());
        self.look.seen.plane(control_plane, self.cluster.clone(), self.look.now)
    }

    /// There are effects: later phases wait for the next reconcile.
    pub(super) fn has_work(&self) -> bool {
        !self.decision.effects.is_empty()
    }

    pub fn wait(&mut self, reason: &str, what: impl Into<String>) {
        self.decision.wait(Wait::on(reason, what)).again_in(RETRY);
    }
}
