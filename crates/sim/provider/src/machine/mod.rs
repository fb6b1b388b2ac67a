//! `SimMachine`: a machine in a site.
//!
//! Owns: SimMachines, their finalizer, provider id and status; the machine of that id in the site. Reads: the Machine
//! that owns it, the MachinePool of that, its Cluster, the Secret with its boot data, the site.
//!
//! The id is written to the spec together with the intent to create, before the call: it survives `clusterctl move`,
//! which drops status and changes uids, and the machine is looked up by it from then on. A machine that has vanished
//! is reported, never recreated: the owner of the Machine replaces it.

mod call;
mod decide;
mod follow;
mod mark;
mod observe;
mod order;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::{MachinePool, condition};
use capstan_controller::{
    Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::{Key, Object};
use capstan_provider_kit::decisions::CLOUD_REACHABLE;
use capstan_provider_kit::{cluster_of_machine, watch_machine};
use capstan_sim_site::SiteHandle;

use crate::site;
use crate::types::SimMachine;
use follow::Follower;

pub use call::MachineCall;
pub use mark::MACHINE_TAG;
pub use observe::Seen;
pub use order::Order;
pub(crate) use order::{CPUS, MEMORY_MIB};

/// Keeps a SimMachine until its machine is destroyed.
pub const FINALIZER: &str = "simmachine.infrastructure.cluster.x-k8s.io";

/// Scheme of provider ids.
pub(crate) const SCHEME: &str = "sim://";

/// Annotation of machines in a site of another process: its address, for `capstan console`.
pub(crate) const SITE: &str = "infrastructure.cluster.x-k8s.io/sim-site";

pub struct SimMachines {
    site: SiteHandle,
    url: Option<Arc<str>>,
    follower: Follower,
}

impl SimMachines {
    pub fn new(site: impl Into<SiteHandle>) -> Self {
        let site = site.into();
        let follower = Follower::new(site.clone());
        Self { site, url: None, follower }
    }

    /// With the address of the site, if it is in another process.
    #[must_use]
    pub fn at(self, url: Option<String>) -> Self {
        Self { url: url.map(Into::into), ..self }
    }
}

/// The id that a machine has or will get.
pub(crate) fn id_of(object: &SimMachine) -> String {
    let meta = &object.metadata;
    match object.spec.provider_id.strip_prefix(SCHEME) {
        Some(id) => id.to_owned(),
        None => format!("{}/{}/{}", meta.namespace, meta.name, meta.uid),
    }
}

impl Controller for SimMachines {
    const NAME: &'static str = "simmachine";
    type Kind = SimMachine;
    type Seen = Seen;
    type Call = MachineCall;

    fn watches(&self, watches: &mut Watches<SimMachine>) {
        watch_machine(watches);
        watches.read::<MachinePool>();
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, CLOUD_REACHABLE]
    }

    fn paused(&self, object: &SimMachine, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = cluster_of_machine(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, SimMachine::KIND.kind))
    }

    async fn observe(&self, object: &Arc<SimMachine>, view: &View) -> Result<Seen, ObserveError> {
        self.follower.follow(&id_of(object), &object.key(), || view.wake());
        let seen = observe::observe(object, view, &self.site).await?;
        Ok(Seen { url: self.url.clone(), ..seen })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &MachineCall, object: &Arc<SimMachine>, view: &View) -> Outcome {
        call::make(call, object, view, &self.site).await
    }

    async fn resolve(
        &self,
        intent: &Intent<MachineCall>,
        _: &Arc<SimMachine>,
        _: &View,
    ) -> Result<Resolution, ObserveError> {
        call::resolve(&intent.call, &self.site).await.map_err(site::observe_error)
    }

    fn gone(&self, key: &Key) {
        self.follower.forget(key);
    }
}
