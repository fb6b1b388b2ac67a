//! What is done about a SimMachine.

use std::time::Duration;

use capstan_capi_core::conditions::{Verdict, state};
use capstan_capi_core::infrastructure::{console, decide_machine, waits_for};
use capstan_capi_types::core::{Cluster, Machine, MachineAddress, MachineAddressType, condition, reason};
use capstan_controller::{Call, Effect, Look, Note, Wait};
use capstan_guest::vm::{Phase, Vm};
use capstan_object::ConditionStatus::{self, False, True};

use super::observe::is_ours;
use super::{FINALIZER, MachineCall, Order, SCHEME, SimMachines, id_of};
use crate::code;

type Decision = capstan_controller::Decision<SimMachines>;

/// How soon boot data that cannot be read is looked at again: nobody tells when it can.
const UNREADABLE: Duration = Duration::from_secs(10);

/// What is to be done. Depends on nothing but what was seen.
pub(super) fn decide(look: &Look<SimMachines>) -> Decision {
    let owners = look.seen.machine.as_ref().zip(look.seen.cluster.as_ref());
    let keep = owners.map(|(machine, cluster)| {
        |look: &Look<_>, decision: &mut Decision| keep(look, machine, cluster, decision)
    });
    decide_machine(look, |object| &mut object.status.conditions, delete, keep)
}

fn ready(
    look: &Look<SimMachines>,
    decision: &mut Decision,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) {
    let verdict = Verdict::new(status, reason, message);
    state(look, &mut decision.object.status.conditions, condition::READY, verdict, None);
}

fn keep(look: &Look<SimMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let was_there = look.object.status.initialization.provisioned == Some(true) || was_created(look);
    match &look.seen.vm {
        Some(vm) if !is_ours(vm) => {
            let message = format!("machine {} exists and does not carry our mark", vm.id);
            ready(look, decision, False, "NotOurs", message);
        }
        Some(vm) => tell(look, machine, vm, decision),
        None if was_there => {
            decision.object.status.initialization.provisioned = Some(true);
            ready(look, decision, False, "Gone", "the machine was there and is gone; it is not made again");
        }
        None => match waits_for(machine, cluster) {
            Some((reason, what)) => {
                decision.wait(Wait::on(reason, what));
                ready(look, decision, False, reason, format!("Waiting for {what}"));
            }
            None => create(look, machine, decision),
        },
    }
}

/// A call that created the machine has come to its end.
fn was_created(look: &Look<SimMachines>) -> bool {
    let own = id_of(&look.object);
    look.concluded.iter().any(|known| {
        matches!(&known.call, MachineCall::Create { id, .. } if *id == own) && known.result.is_some()
    })
}

fn create(look: &Look<SimMachines>, machine: &Machine, decision: &mut Decision) {
    let id = id_of(&look.object);
    let order = match &look.seen.boot_data {
        Some(Ok(boot_data)) => Order::of(&id, &look.object, machine, boot_data),
        Some(Err(error)) => {
            decision.wait(Wait::on("BootDataUnreadable", error.to_string()).code(code::BOOT_DATA));
            decision.again_in(UNREADABLE);
            let message = format!("{}: {error}", code::BOOT_DATA);
            return ready(look, decision, False, "Creating", message);
        }
        None => return ready(look, decision, False, "Creating", ""),
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
fn tell(look: &Look<SimMachines>, machine: &Machine, vm: &Vm, decision: &mut Decision) {
    let address = |kind, address: String| MachineAddress { kind: Some(kind), address };
    let object = &mut decision.object;
    object.spec.provider_id = format!("{SCHEME}{}", vm.id);
    object.status.addresses = vec![
        address(MachineAddressType::Hostname, vm.name.clone()),
        address(MachineAddressType::InternalIP, vm.address.to_string()),
    ];
    let wanted = Some(&machine.spec.failure_domain).filter(|domain| !domain.is_empty());
    object.status.failure_domain = wanted.unwrap_or(&look.object.spec.failure_domain).clone();
    object.status.initialization.provisioned = Some(true);
    match &vm.phase {
        Phase::Booting => ready(look, decision, False, "Booting", "the machine executes its user data"),
        Phase::Booted => ready(look, decision, True, "Running", ""),
        Phase::Off => ready(look, decision, False, "PoweredOff", "the machine is switched off"),
        Phase::Failed(line) => {
            let message = format!("the user data failed; the console ends with: {}", console::shown(line));
            ready(look, decision, False, "BootFailed", message);
        }
    }
}

fn delete(look: &Look<SimMachines>, decision: &mut Decision) {
    if !look.object.metadata.finalizers.iter().any(|name| name == FINALIZER) {
        return;
    }
    match &look.seen.vm {
        Some(vm) if is_ours(vm) => {
            let call = MachineCall::Destroy { id: vm.id.clone() };
            let message = look.failure_of(&call).map(|failure| failure.error.to_string()).unwrap_or_default();
            ready(look, decision, False, reason::DELETING, message);
            decision.call(call);
        }
        // Nothing of ours is left: a machine without our mark is somebody else's.
        _ => {
            decision.remove_finalizer(FINALIZER);
        }
    }
}
