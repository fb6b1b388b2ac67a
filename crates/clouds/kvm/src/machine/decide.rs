//! What is done about a KVMMachine.

use std::time::Duration;

use capstan_capi_core::conditions::{Verdict, state};
use capstan_capi_core::infrastructure::{console, decide_machine, waits_for};
use capstan_capi_types::core::{Cluster, Machine, MachineAddress, MachineAddressType, condition, reason};
use capstan_controller::{Call, Effect, Look, Note, Wait};
use capstan_object::ConditionStatus::{self, False, True};

use super::{FINALIZER, KVMMachines, MachineCall, Order, SCHEME, Seen, id_of};
use crate::backend::{Id, Instance, Phase};
use crate::code;

type Decision = capstan_controller::Decision<KVMMachines>;

/// How often a machine that boots is looked at, and one that runs: nobody tells when it stops.
const BOOTING: Duration = Duration::from_millis(500);
const RUNNING: Duration = Duration::from_secs(5);
/// How soon a machine that cannot be ordered is looked at again.
const UNORDERED: Duration = Duration::from_secs(10);

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<KVMMachines>) -> Decision {
    let owners = look.seen.machine.as_ref().zip(look.seen.cluster.as_ref());
    let keep = owners.map(|(machine, cluster)| {
        |look: &Look<_>, decision: &mut Decision| keep(look, machine, cluster, decision)
    });
    decide_machine(look, |object| &mut object.status.conditions, delete, keep)
}

fn ready(
    look: &Look<KVMMachines>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    let verdict = Verdict::new(status, reason, message);
    state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn keep(look: &Look<KVMMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    let id = match id_of(&look.object) {
        Ok(id) => id,
        Err(error) => {
            ready(look, decision, False, "NoIdentity", format!("spec.providerID: {error}"));
            return;
        }
    };
    decision.add_finalizer(FINALIZER);
    let was_there = look.object.status.initialization.provisioned == Some(true) || was_created(look, &id);
    match &look.seen.instance {
        Some(instance) if was_there || instance.phase != Phase::Stopped => tell(look, instance, decision),
        None if was_there => {
            decision.object.status.initialization.provisioned = Some(true);
            ready(look, decision, False, "Gone", "the machine was there and is gone; it is not made again");
        }
        // Nothing there, or one that was begun and never ran.
        _ => match waits(&look.seen, machine, cluster) {
            Some((reason, what)) => {
                decision.wait(Wait::on(reason, what));
                ready(look, decision, False, reason, format!("Waiting for {what}"));
            }
            None => create(look, id, machine, decision),
        },
    }
}

/// A call that created the machine has come to its end.
fn was_created(look: &Look<KVMMachines>, id: &Id) -> bool {
    look.concluded.iter().any(|known| {
        matches!(&known.call, MachineCall::Create { id: made, .. } if made == id) && known.result.is_some()
    })
}

/// What must be there before a machine is ordered.
pub(super) fn waits(
    seen: &Seen,
    machine: &Machine,
    cluster: &Cluster,
) -> Option<(&'static str, &'static str)> {
    let network = || seen.network.is_none().then_some(("WaitingForNetwork", "the KVMCluster of the cluster"));
    waits_for(machine, cluster).or_else(network)
}

fn create(look: &Look<KVMMachines>, id: Id, machine: &Machine, decision: &mut Decision) {
    let (Some(network), Some(boot_data)) = (&look.seen.network, &look.seen.boot_data) else {
        return ready(look, decision, False, "Creating", "");
    };
    let order = boot_data.as_ref().map_err(ToString::to_string);
    let order = match order.and_then(|boot_data| Order::of(&look.object, machine, network, boot_data)) {
        Ok(order) => order,
        Err(why) => {
            decision.wait(Wait::on("CannotOrder", why.as_str()).code(code::BOOT_DATA));
            decision.again_in(UNORDERED);
            return ready(look, decision, False, "Creating", format!("{}: {why}", code::BOOT_DATA));
        }
    };
    decision.object.spec.provider_id = format!("{SCHEME}{id}");
    let note = Note::normal("MachineCreated", "Create", format!("machine {id} is created"));
    let call = MachineCall::Create { id, order: Some(Box::new(order)) };
    // The order may differ from that of the try before: it is the same effect.
    let failure = look.failures.iter().find(|failure| failure.effect == call.summary());
    let message = failure.map(|failure| failure.error.to_string()).unwrap_or_default();
    ready(look, decision, False, "Creating", message);
    decision.then_noting(Effect::Call(call), note);
}

/// The machine is there: what it is like.
fn tell(look: &Look<KVMMachines>, instance: &Instance, decision: &mut Decision) {
    let address = |kind, address: String| MachineAddress { kind: Some(kind), address };
    let object = &mut decision.object;
    object.spec.provider_id = format!("{SCHEME}{}", instance.id);
    object.status.addresses = vec![
        address(MachineAddressType::Hostname, instance.name.clone()),
        address(MachineAddressType::InternalIP, instance.address.to_string()),
    ];
    object.status.console = instance.console.display().to_string();
    object.status.initialization.provisioned = Some(true);
    match &instance.phase {
        Phase::Booting => {
            ready(look, decision, False, "Booting", "the machine executes its user data");
            decision.again_in(BOOTING);
        }
        Phase::Booted => {
            ready(look, decision, True, "Running", "");
            decision.again_in(RUNNING);
        }
        Phase::Stopped => {
            ready(
                look,
                decision,
                False,
                "Stopped",
                "the machine does not run any more; it is not started again",
            );
        }
        Phase::Failed(line) => {
            let message = format!("the user data failed; the console ends with: {}", console::shown(line));
            ready(look, decision, False, "BootFailed", message);
            decision.again_in(RUNNING);
        }
    }
}

fn delete(look: &Look<KVMMachines>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    match &look.seen.instance {
        Some(Instance { id, .. }) => destroy(look, id, decision),
        None => {
            decision.remove_finalizer(FINALIZER);
        }
    }
}

fn destroy(look: &Look<KVMMachines>, id: &Id, decision: &mut Decision) {
    let call = MachineCall::Destroy { id: id.clone() };
    let message = look.failure_of(&call).map(|failure| failure.error.to_string()).unwrap_or_default();
    ready(look, decision, False, reason::DELETING, message);
    decision.call(call);
}
