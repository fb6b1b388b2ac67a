//! MachineDeployment: rolls machines from one template to the next, one MachineSet per template.
//!
//! Owns: its MachineSets (creates, sizes and deletes them; updates fields that need no rollout). Reads: Machines, the
//! templates, the Cluster; an extension says which changes are made in place. Also writes: its own status, and the owner
//! of the templates. MachineSets manage the Machines.

mod choose;
mod decide;
mod desired;
mod in_place;
mod observe;
mod observed;
mod proportional;
pub mod rollout;
pub mod status;
mod strategy;
mod unfinished;

use std::sync::Arc;

use capstan_capi_types::core::{Cluster, MachineDeployment};
use capstan_capi_types::runtime::ExtensionConfig;
use capstan_controller::{Controller, Decision, GATHER, Look, NoCall, ObserveError, View, Watches};
use capstan_object::Key;

use crate::conditions::v1beta1;
use crate::in_place::Updater;

pub(crate) use observed::missing;
pub use observed::{InPlace, Observed};

#[derive(Default)]
pub struct MachineDeployments {
    updater: Option<Arc<dyn Updater>>,
}

impl MachineDeployments {
    /// Asks an extension which changes it makes in place. Without one, machines are replaced.
    #[must_use]
    pub fn updating(self, updater: Arc<dyn Updater>) -> Self {
        Self { updater: Some(updater) }
    }
}

impl Controller for MachineDeployments {
    const NAME: &'static str = "machinedeployment";
    type Kind = MachineDeployment;
    type Seen = Observed;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<MachineDeployment>) {
        observe::watches(watches);
        if let Some(updater) = self.updater.clone() {
            watches.related_within::<ExtensionConfig>(GATHER, move |_, _| updater.waiting());
        }
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
        let mut seen = observe::observe(deployment, view).await?;
        if let Some(updater) = &self.updater {
            seen.in_place = in_place::ask(deployment, &seen, updater.as_ref(), view).await?;
        }
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        let mut decision = decide::decide(look);
        let status = &mut decision.object.status;
        v1beta1::write(&status.conditions, &v1beta1::MACHINE_DEPLOYMENT, &mut status.deprecated, |old| {
            &mut old.conditions
        });
        decision
    }

    fn gone(&self, key: &Key) {
        if let Some(updater) = &self.updater {
            updater.forget(key);
        }
    }
}
