//! What every provider decides in the same way about its clusters and machines.

use std::time::Duration;

use capstan_capi_core::conditions::{ConditionState, set_state, shortened};
use capstan_capi_types::core::{
    APIEndpoint, Cluster, Machine, MachineAddress, MachineAddressType, condition, label, reason,
};
use capstan_controller::{Call as _, Code, Controller, Decision, Effect, Look, Note, Wait};
use capstan_object::ConditionStatus::{self, False, True};
use capstan_object::Object as _;

use crate::{Infrastructure, InfrastructureCluster, InfrastructureMachine, console};

/// Names shown of machines that are waited for.
const SHOWN: usize = 3;
/// How soon a machine that cannot be ordered is looked at again.
const IMPOSSIBLE: Duration = Duration::from_secs(10);

/// Sets the condition Ready.
pub fn ready<C: Controller<Kind: Infrastructure>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    let verdict = ConditionState::new(status, reason, message);
    set_state(look, decision.object.conditions_mut(), condition::READY, verdict, None);
}

/// What must be there before a machine is made: a reason and words for it.
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

/// A machine as its cloud or host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The identity that its Node reports.
    pub provider_id: String,
    /// Host name.
    pub name: String,
    /// Address inside the cluster's network.
    pub address: String,
    /// What it does.
    pub phase: InstancePhase,
}

/// What a machine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstancePhase {
    /// It executes its user data.
    Booting,
    /// It has done so.
    Running,
    /// It is off: a reason, and a sentence.
    Off(&'static str, &'static str),
    /// Its user data failed; the last line of its console.
    Failed(String),
}

/// What was found of a machine that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or something that was begun and can be made on.
    Nothing,
    /// Something of the id that does not carry our ownership mark.
    Foreign {
        /// Its id.
        id: String,
    },
    /// Our machine.
    Ours(Instance),
}

/// How a machine is ordered, once nothing is waited for.
pub enum MachineOrder<K> {
    /// What it takes was not observed: the next look has it.
    Unobserved,
    /// It cannot be ordered. Looked at again after a while: nobody tells when it can.
    Impossible {
        /// Why, in one word for the wait.
        reason: &'static str,
        /// The code of the condition.
        code: Code,
        /// Why.
        why: String,
    },
    /// Everything that the call takes is in it.
    Complete {
        /// The call.
        call: K,
        /// Names the machine in events.
        id: String,
        /// Written into the specification with the intent, so that it survives `clusterctl move`.
        provider_id: String,
    },
}

/// Whether a call that created the machine has come to its end: evidence that survives a move, which drops status.
pub fn was_created<C: Controller>(look: &Look<C>, creates: impl Fn(&C::Call) -> bool) -> bool {
    look.concluded.iter().any(|known| known.result.is_some() && creates(&known.call))
}

/// Decides about a machine that is wanted: makes it once what it waits for is there, and reports what it does. One that was
/// there and is gone is never made a second time.
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
            ready(look, decision, False, "Gone", "the machine was there and is gone; it is not made again");
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
            // The order may differ from that of the try before: it is the same effect.
            let failure = look.failures.iter().find(|failure| failure.effect == call.summary());
            let message = failure.map(|failure| failure.error.to_string()).unwrap_or_default();
            ready(look, decision, False, "Creating", message);
            let note = Note::normal("MachineCreated", "Create", format!("machine {id} is created"));
            decision.then_noting(Effect::Call(call), note);
        }
    }
}

/// The machine is there: what it is like.
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

/// Decides about an object that goes: `destroy` removes what is left of ours, `None` once nothing is.
pub fn let_go<C: Controller<Kind: Infrastructure>>(
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

/// The same for the infrastructure of a cluster, where `what` stays until the machines are gone.
pub fn let_cluster_go<C: Controller<Kind: InfrastructureCluster>>(
    look: &Look<C>,
    decision: &mut Decision<C>,
    finalizer: &str,
    (what, machines): (&str, &[String]),
    destroy: Option<C::Call>,
) {
    let held = look.object.metadata().finalizers.iter().any(|name| name == finalizer);
    if machines.is_empty() || !held {
        return let_go(look, decision, finalizer, destroy);
    }
    let message = format!("{what} stays until these machines are gone: {}", shortened(machines, SHOWN));
    decision.wait(Wait::on("WaitingForMachines", message.as_str()));
    ready(look, decision, False, reason::DELETING, message);
}

/// Writes the endpoint that `holder` has into a specification without one. One that names another is reported, and the
/// answer is no.
pub fn place_endpoint<C: Controller<Kind: InfrastructureCluster>>(
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

/// The infrastructure of a cluster is there.
pub fn provisioned<C: Controller<Kind: InfrastructureCluster>>(look: &Look<C>, decision: &mut Decision<C>) {
    *decision.object.provisioned_mut() = Some(true);
    ready(look, decision, True, reason::PROVISIONED, "");
}

/// Why a call failed last, if it did.
pub fn failure<C: Controller>(look: &Look<C>, call: &C::Call) -> String {
    look.failure_of(call).map(|failure| failure.error.to_string()).unwrap_or_default()
}
