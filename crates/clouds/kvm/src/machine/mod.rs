//! `KVMMachine`: a machine on this host.
//!
//! Owns: KVMMachines, their finalizer, provider id and status; the machine of that id on this host. Reads: the
//! Machine that owns it, its Cluster and KVMCluster, the Secret with its boot data, the host.
//!
//! The id is written to the spec together with the intent to create, before the call: it survives `clusterctl move`,
//! which drops status and changes uids, and the machine is looked up by it from then on. A machine that has vanished
//! is reported, never recreated: the owner of the Machine replaces it.

mod call;
mod decide;
mod observe;
mod order;
mod prerequisites;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use capstan_capi_core::paused;
use capstan_capi_types::core::condition;
use capstan_controller::{
    Controller, Decision, Intent, Look, ObserveError, Outcome, Resolution, View, Watches,
};
use capstan_object::Object;
use capstan_provider_kit::decisions::{CLOUD_REACHABLE, Silence};
use capstan_provider_kit::{cluster_of_machine, watch_machine};

use crate::backend::{Backend, BackendError, Id, Instance};
use crate::code;
use crate::types::{KVMCluster, KVMMachine};

pub use call::MachineCall;
pub use observe::Seen;
pub use order::Order;

/// Keeps a KVMMachine until its machine is destroyed.
pub const FINALIZER: &str = "kvmmachine.infrastructure.cluster.x-k8s.io";

/// Scheme of provider ids.
pub(crate) const SCHEME: &str = "kvm:///";

pub struct KVMMachines {
    backend: Arc<dyn Backend>,
}

impl KVMMachines {
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    async fn look_up(&self, id: &Id) -> Result<Option<Instance>, Silence> {
        let (backend, id) = (self.backend.clone(), id.clone());
        let found = tokio::task::spawn_blocking(move || backend.machine(&id)).await;
        let unread = |why: String| Silence { code: code::HOST, why };
        found.map_err(|error| unread(error.to_string()))?.map_err(|error| unread(error.to_string()))
    }
}

/// The id that a machine has or will get.
pub(crate) fn id_of(object: &KVMMachine) -> Result<Id, BackendError> {
    let id = object.spec.provider_id.strip_prefix(SCHEME).unwrap_or(&object.metadata.uid);
    id.to_owned().try_into()
}

impl Controller for KVMMachines {
    const NAME: &'static str = "kvmmachine";
    type Kind = KVMMachine;
    type Seen = Seen;
    type Call = MachineCall;

    fn watches(&self, watches: &mut Watches<KVMMachine>) {
        watches.read::<KVMCluster>();
        watch_machine(watches);
    }

    fn conditions(&self) -> &[&'static str] {
        &[condition::READY, condition::PAUSED, CLOUD_REACHABLE]
    }

    fn paused(&self, object: &KVMMachine, view: &View) -> Result<Option<String>, ObserveError> {
        let cluster = cluster_of_machine(&object.metadata, view)?;
        Ok(paused::why(cluster.as_deref(), &object.metadata, KVMMachine::KIND.kind))
    }

    async fn observe(&self, object: &Arc<KVMMachine>, view: &View) -> Result<Seen, ObserveError> {
        let mut seen = observe::observe(object, view)?;
        if let Ok(id) = id_of(object) {
            match self.look_up(&id).await {
                Ok(instance) => seen.instance = instance,
                Err(silence) => seen.silence = Some(silence.observed(&object.metadata)?),
            }
        }
        observe::boot_data(object, &mut seen, view).await;
        Ok(seen)
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }

    async fn call(&self, call: &MachineCall, object: &Arc<KVMMachine>, view: &View) -> Outcome {
        call::make(call, object, view, self.backend.clone()).await
    }

    async fn resolve(
        &self,
        intent: &Intent<MachineCall>,
        _: &Arc<KVMMachine>,
        _: &View,
    ) -> Result<Resolution, ObserveError> {
        let there = self.look_up(intent.call.id()).await.map_err(Silence::error)?;
        let happened = match &intent.call {
            // A record without a process is an unfinished machine: its creation continues.
            MachineCall::Create { .. } => {
                there.is_some_and(|it| it.has_booted || it.phase != crate::backend::Phase::Stopped)
            }
            MachineCall::Destroy { .. } => there.is_none(),
        };
        Ok(if happened { Resolution::happened() } else { Resolution::DidNotHappen })
    }
}
