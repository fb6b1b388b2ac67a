//! One decision while it is made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::conditions::Verdict;
use capstan_capi_types::core::Cluster;
use capstan_controller::{Decision, Look, Wait};

use crate::control_plane::observed::Plane;
use crate::control_plane::{ControlPlaneController, Settings};

pub(super) type Looked = Look<ControlPlaneController>;
pub(super) type Decided = Decision<ControlPlaneController>;

/// What is in the way is looked at again after this time, should nothing wake us.
pub(super) const RETRY: Duration = Duration::from_secs(15);

/// One decision while it is made.
pub(super) struct Turn<'a> {
    pub settings: &'a Settings,
    pub look: &'a Looked,
    pub cluster: &'a Arc<Cluster>,
    pub decision: Decided,
    /// What keeps machines from coming or going.
    pub obstacles: Vec<String>,
    /// Members of etcd and machines match.
    pub matching: bool,
    /// What is waited for while the control plane goes.
    pub deleting: Option<Verdict>,
}

impl Turn<'_> {
    /// The control plane as it is now: with what this decision has already said about it.
    pub fn plane(&self) -> Plane {
        let uid = &self.look.object.metadata.uid;
        let seen = &self.look.seen;
        let owned = seen
            .machines
            .iter()
            .filter(|seen| seen.machine.metadata.controller().is_some_and(|owner| owner.uid == *uid));
        let inside = seen.workload.inside();
        let (none, unseen) = (BTreeMap::new(), &[][..]);
        let (nodes, etcd) = inside.map_or((&none, unseen), |inside| (&inside.nodes, inside.etcd.members()));
        Plane {
            control_plane: Arc::new(self.decision.object.clone()),
            cluster: self.cluster.clone(),
            machines: owned.map(|machine| machine.member(nodes)).collect(),
            etcd: etcd.to_vec(),
            now: self.look.now,
        }
    }

    /// Something is to be carried out before anything else is decided.
    pub(super) fn has_work(&self) -> bool {
        !self.decision.effects.is_empty()
    }

    pub fn wait(&mut self, reason: &str, what: impl Into<String>) {
        self.decision.wait(Wait::on(reason, what)).again_in(RETRY);
    }
}
