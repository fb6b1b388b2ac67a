//! `CloudStackMachineStateChecker`: CAPC's watch over one machine. CAPC makes one for each machine; they come here with
//! `clusterctl move`.
//!
//! Owns: the status of CloudStackMachineStateCheckers. Reads: the CloudStackMachine that owns it and the Machine of that.
//! Deletes the Machine of a machine that stopped, as CAPC does. None are made here: MachineHealthChecks do the same with
//! limits.

mod decide;

use std::sync::Arc;

use capstan_capi_core::{owners, paused};
use capstan_capi_types::core::{Cluster, Machine};
use capstan_cloudstack_types::v1beta3::{CloudStackMachine, CloudStackMachineStateChecker};
use capstan_controller::{Controller, Decision, Look, NoCall, ObserveError, View, Watches};
use capstan_object::Object;

use crate::failure_domain::cluster_of;

/// The controller of CloudStackMachineStateCheckers.
pub struct StateCheckers;

/// What was seen beside the CloudStackMachineStateChecker.
#[derive(Debug, Default)]
pub struct Seen {
    /// The machine that is watched.
    pub machine: Option<Arc<CloudStackMachine>>,
    pub owner: Option<Arc<Machine>>,
}

impl Controller for StateCheckers {
    const NAME: &'static str = "cloudstackmachinestatechecker";
    type Kind = CloudStackMachineStateChecker;
    type Seen = Seen;
    type Call = NoCall;

    fn watches(&self, watches: &mut Watches<CloudStackMachineStateChecker>) {
        watches.read::<Cluster>();
        watches.read::<Machine>();
        watches.related::<CloudStackMachine>(|change, caches| {
            let state = |machine: &Arc<CloudStackMachine>| machine.status.instance_state.clone();
            if change.old.as_ref().map(state) == change.new.as_ref().map(state) {
                return Vec::new();
            }
            let Some(machine) = change.latest() else { return Vec::new() };
            let checkers = caches
                .of::<CloudStackMachineStateChecker>()
                .and_then(|checkers| checkers.owned_by(&machine.metadata.uid));
            checkers.unwrap_or_default().iter().map(|checker| checker.key()).collect()
        });
    }

    fn paused(
        &self,
        object: &CloudStackMachineStateChecker,
        view: &View,
    ) -> Result<Option<String>, ObserveError> {
        let machine = owners::of::<CloudStackMachine>(&object.metadata, view)?;
        let cluster = match &machine {
            Some(machine) => cluster_of(&machine.metadata, view)?,
            None => None,
        };
        Ok(paused::why(cluster.as_deref(), &object.metadata, CloudStackMachineStateChecker::KIND.kind))
    }

    async fn observe(
        &self,
        object: &Arc<CloudStackMachineStateChecker>,
        view: &View,
    ) -> Result<Seen, ObserveError> {
        let machine = owners::of::<CloudStackMachine>(&object.metadata, view)?;
        let owner = match &machine {
            Some(machine) => owners::of::<Machine>(&machine.metadata, view)?,
            None => None,
        };
        Ok(Seen { machine, owner })
    }

    fn decide(&self, look: &Look<Self>) -> Decision<Self> {
        decide::decide(look)
    }
}
