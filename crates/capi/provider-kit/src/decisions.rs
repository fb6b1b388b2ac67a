//! Decisions about clusters and machines that all providers have in common.

use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state, shortened};
use capstan_capi_types::core::{
    APIEndpoint, Cluster, Machine, MachineAddress, MachineAddressType, condition, label, reason,
};
use capstan_controller::{
    Call as _, Code, Controller, Decision, Effect, Look, Note, ObserveError, Wait, has_open_intents,
};
use capstan_object::ConditionStatus::{self, False, True};
use capstan_object::{Condition, Object as _, ObjectMeta};

use crate::{Infrastructure, InfrastructureCluster, InfrastructureMachine, console};

/// Maximum number of machines in a message.
const SHOWN: usize = 3;
/// Requeue interval of a machine that cannot be ordered.
const IMPOSSIBLE: Duration = Duration::from_secs(10);

/// Sets the `Ready` condition.
pub fn ready<C: Controller<Kind: Infrastructure>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    let state = ConditionState::new(status, reason, message);
    set_state(look, decision.object.conditions_mut(), condition::READY, state, None);
}

/// Condition of an object whose cloud does not answer. Everything else of it is as it was last seen: a cloud that is down
/// is no cluster that is down.
pub const CLOUD_REACHABLE: &str = "CloudReachable";

/// Sets [`CLOUD_REACHABLE`] to false; it is absent while the cloud answers.
pub fn cloud_is_silent<C: Controller>(
    look: &Look<C>,
    conditions: &mut Vec<Condition>,
    reason: &str,
    message: &str,
) {
    let message = format!("{message}; the rest of the status is as last observed");
    set_state(look, conditions, CLOUD_REACHABLE, ConditionState::new(False, reason, message), None);
}

/// Requeue interval while a cloud does not answer: there is no event when it does.
const SILENT: Duration = Duration::from_secs(5);

/// A cloud that does not answer, as an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    pub code: Code,
    /// What was asked and what came back, without secrets.
    pub why: String,
}

impl Silence {
    /// A failed request as an observation. While the outcome of a call is not known it remains an error: the evidence of
    /// the call must not be dropped before its result was seen.
    pub fn observed(self, meta: &ObjectMeta) -> Result<Self, ObserveError> {
        if has_open_intents(meta) { Err(self.error()) } else { Ok(self) }
    }

    pub fn error(self) -> ObserveError {
        ObserveError::outside(self.code, self.why)
    }
}

/// Reports a cloud that does not answer. What was provisioned is as it was last seen; what is being made or deleted waits.
pub fn silent<C: Controller<Kind: Infrastructure>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    silence: &Silence,
) {
    const REASON: &str = "Unreachable";
    let message = format!("{}: {}", silence.code, silence.why);
    decision.wait(Wait::on(REASON, message.as_str()).code(silence.code)).again_in(SILENT);
    if look.object.provisioned() == Some(true) && !look.object.metadata().is_deleting() {
        return cloud_is_silent(look, decision.object.conditions_mut(), REASON, &message);
    }
    ready(look, decision, False, REASON, message);
}

/// The cloud answered.
pub fn answers<C: Controller<Kind: Infrastructure>>(decision: &mut Decision<C>) {
    decision.object.conditions_mut().retain(|condition| condition.kind != CLOUD_REACHABLE);
}

/// What must exist before a machine is created: a reason and a message.
pub fn waits_for(machine: &Machine, cluster: &Cluster) -> Option<(&'static str, &'static str)> {
    let done = &cluster.status.initialization;
    let named = machine.spec.bootstrap.data_secret_name.as_ref().is_some_and(|name| !name.is_empty());
    if done.infrastructure_provisioned != Some(true) {
        return Some((reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY, "the infrastructure of the cluster"));
    }
    if named {
        return None;
    }
    let worker = !machine.metadata.labels.contains_key(label::CONTROL_PLANE);
    if worker && done.control_plane_initialized != Some(true) {
        return Some((
            reason::WAITING_FOR_CONTROL_PLANE_INITIALIZED,
            "the first machine of the control plane",
        ));
    }
    Some((reason::WAITING_FOR_BOOTSTRAP_DATA, "the boot data of the machine"))
}

/// The actual machine in its cloud or on its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The provider id that its Node reports.
    pub provider_id: String,
    /// Host name.
    pub name: String,
    /// Address in the cluster's network.
    pub address: String,
    pub phase: InstancePhase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstancePhase {
    /// Executing its user data.
    Booting,
    /// User data has finished.
    Running,
    /// Powered off: a reason and a message.
    Off(&'static str, &'static str),
    /// Its user data failed; contains the last line of its console.
    Failed(String),
}

/// The result of looking up a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It does not exist, or its creation has not finished and can continue.
    Nothing,
    /// It exists without our ownership mark.
    Foreign { id: String },
    /// It exists and is ours.
    Ours(Instance),
}

/// The order of a machine, once all dependencies exist.
pub enum MachineOrder<K> {
    /// Its inputs were not observed: the next reconcile observes them.
    Unobserved,
    /// It cannot be ordered. Retried after a while: there is no event when it can.
    Impossible {
        /// Reason of the wait.
        reason: &'static str,
        /// Error code of the condition.
        code: Code,
        why: String,
    },
    /// The call contains everything it needs.
    Complete {
        call: K,
        /// Id of the machine in events.
        id: String,
        /// Written to the spec with the intent, so that it survives `clusterctl move`.
        provider_id: String,
    },
}

/// Whether a call that creates the machine has completed: evidence that survives a move, which drops status.
pub fn was_created<C: Controller>(look: &Look<C>, creates: impl Fn(&C::Call) -> bool) -> bool {
    look.concluded.iter().any(|known| known.result.is_some() && creates(&known.call))
}

/// Creates a machine once its dependencies exist, and reports its state. A machine that existed and is gone is never
/// created again.
pub fn keep_machine<C: Controller<Kind: InfrastructureMachine>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    (found, was_there): (Found, bool),
    waits: Option<(&'static str, &'static str)>,
    order: impl FnOnce() -> MachineOrder<C::Call>,
) {
    match (found, waits) {
        (Found::Foreign { id }, _) => {
            let message = format!("machine {id} exists and does not carry our mark");
            ready(look, decision, False, "NotOurs", message);
        }
        (Found::Ours(instance), _) => report(look, decision, instance),
        (Found::Nothing, _) if was_there => {
            *decision.object.provisioned_mut() = Some(true);
            ready(
                look,
                decision,
                False,
                "Gone",
                "the machine was there and is gone; it is not created again",
            );
        }
        (Found::Nothing, Some((reason, what))) => {
            decision.wait(Wait::on(reason, what));
            ready(look, decision, False, reason, format!("Waiting for {what}"));
        }
        (Found::Nothing, None) => create(look, decision, order()),
    }
}

fn create<C: Controller<Kind: InfrastructureMachine>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    order: MachineOrder<C::Call>,
) {
    match order {
        MachineOrder::Unobserved => ready(look, decision, False, "Creating", ""),
        MachineOrder::Impossible { reason, code, why } => {
            decision.wait(Wait::on(reason, why.as_str()).code(code));
            decision.again_in(IMPOSSIBLE);
            ready(look, decision, False, "Creating", format!("{code}: {why}"));
        }
        MachineOrder::Complete { call, id, provider_id } => {
            *decision.object.provider_id_mut() = provider_id;
            // The order may differ from the previous attempt: it is the same effect.
            let failure = look.failures.iter().find(|failure| failure.effect == call.summary());
            let message = failure.map(|failure| failure.error.to_string()).unwrap_or_default();
            ready(look, decision, False, "Creating", message);
            let note = Note::normal("MachineCreated", "Create", format!("machine {id} is created"));
            decision.then_noting(Effect::Call(call), note);
        }
    }
}

/// Reports the state of an existing machine.
fn report<C: Controller<Kind: InfrastructureMachine>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    instance: Instance,
) {
    let address = |kind, address: String| MachineAddress { kind: Some(kind), address };
    let object = &mut decision.object;
    *object.provider_id_mut() = instance.provider_id;
    *object.addresses_mut() = vec![
        address(MachineAddressType::Hostname, instance.name),
        address(MachineAddressType::InternalIP, instance.address),
    ];
    *object.provisioned_mut() = Some(true);
    match instance.phase {
        InstancePhase::Booting => {
            ready(look, decision, False, "Booting", "the machine executes its user data");
        }
        InstancePhase::Running => ready(look, decision, True, "Running", ""),
        InstancePhase::Off(reason, message) => ready(look, decision, False, reason, message),
        InstancePhase::Failed(line) => {
            let message = format!("the user data failed; the console ends with: {}", console::shown(&line));
            ready(look, decision, False, "BootFailed", message);
        }
    }
}

/// Deletes an object: `destroy` returns the calls that remove what is left, `None` once nothing is.
pub fn delete_object<C: Controller<Kind: Infrastructure>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    finalizer: &str,
    destroy: Option<C::Call>,
) {
    if !look.object.metadata().finalizers.iter().any(|name| name == finalizer) {
        return;
    }
    match destroy {
        Some(call) => {
            ready(look, decision, False, reason::DELETING, failure(look, &call));
            decision.call(call);
        }
        None => {
            decision.remove_finalizer(finalizer);
        }
    }
}

/// Like [`delete_object`] for the infrastructure of a cluster, where `what` stays until the machines are gone.
pub fn delete_cluster<C: Controller<Kind: InfrastructureCluster>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    finalizer: &str,
    (what, machines): (&str, &[String]),
    destroy: Option<C::Call>,
) {
    let held = look.object.metadata().finalizers.iter().any(|name| name == finalizer);
    if machines.is_empty() || !held {
        return delete_object(look, decision, finalizer, destroy);
    }
    let message = format!("{what} is kept until these machines are deleted: {}", shortened(machines, SHOWN));
    decision.wait(Wait::on("WaitingForMachines", message.as_str()));
    ready(look, decision, False, reason::DELETING, message);
}

/// Sets the endpoint of `holder` if the spec has none. Reports a different one and returns false.
pub fn set_endpoint<C: Controller<Kind: InfrastructureCluster>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    holder: &str,
    endpoint: &APIEndpoint,
) -> bool {
    let wanted = decision.object.endpoint_mut();
    if *wanted == APIEndpoint::default() {
        *wanted = endpoint.clone();
    } else if wanted != endpoint {
        let message = format!(
            "spec.controlPlaneEndpoint is {}:{}, but {holder} has {}:{}; leave the field empty",
            wanted.host, wanted.port, endpoint.host, endpoint.port
        );
        ready(look, decision, False, "EndpointElsewhere", message);
        return false;
    }
    true
}

/// Reports that the infrastructure of a cluster is provisioned.
pub fn provisioned<C: Controller<Kind: InfrastructureCluster>>(look: &Look<C>, decision: &mut Decision<C>) {
    *decision.object.provisioned_mut() = Some(true);
    ready(look, decision, True, reason::PROVISIONED, "");
}

/// The last failure of a call.
pub fn failure<C: Controller>(look: &Look<C>, call: &C::Call) -> String {
    look.failure_of(call).map(|failure| failure.error.to_string()).unwrap_or_default()
}
