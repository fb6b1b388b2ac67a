//! MachineDeployment: rolls machines from one template to the next, one MachineSet per template.
//!
//! Owns: its MachineSets (creates, sizes and deletes them; updates fields that need no rollout). Reads: Machines, the
//! templates, the Cluster. Also writes: its own status, and the owner of the templates. MachineSets manage the
//! Machines.

mod choose;
mod decide;
mod desired;
mod observe;
mod observed;
mod proportional;
pub mod rollout;
pub mod status;

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::Key;

use crate::conditions::v1beta1;

pub use observed::Observed;
pub(crate) use observed::missing;

#[derive(Debug, Clone, Copy, Default)]
pub struct MachineDeployments;

impl Controller for MachineDeployments {
    const NAME: &'static str = "machinedeployment";
    type Kind = MachineDeployment;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<MachineDeployment>) {
        observe::watches(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        status::CONDITIONS
    }

    fn paused(&self, deployment: &MachineDeployment, view: &View) -> Result<Option<String>, ObserveError> {
        let meta = &deployment.metadata;
        let cluster =
            view.get::<Cluster>(&Key::new(meta.namespace.as_str(), deployment.spec.cluster_name.as_str()))?;
        Ok(crate::paused::why(cluster.as_deref(), meta, "MachineDeployment"))
    }

    async fn observe(
        &self,
        deployment: &Arc<MachineDeployment>,
        view: &View,
    ) -> Result<Observed, ObserveError> {
        observe::observe(deployment, view).await
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::MACHINE_DEPLOYMENT, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }
}
