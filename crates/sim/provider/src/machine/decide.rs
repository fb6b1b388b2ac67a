//! What is done about a SimMachine.

use capstan_capi_core::conditions::{Verdict, state};
use capstan_capi_core::infrastructure::{console, decide_machine, waits_for};
use capstan_capi_types::core::{Cluster, Machine, MachineAddress, MachineAddressType, condition, reason};
use capstan_controller::{Effect, Look, Note, Wait};
use capstan_guest::vm::{Phase, Vm};
use capstan_object::ConditionStatus::{self, False, True};

use super::observe::is_ours;
use super::{FINALIZER, MachineCall, SCHEME, SimMachines, id_of};

type Decision = capstan_controller::Decision<SimMachines>;

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
    let call = MachineCall::Create { id: id_of(&look.object) };
    let was_there =
        look.object.status.initialization.provisioned == Some(true) || look.result_of(&call).is_some();
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
            None => create(look, call, decision),
        },
    }
}

fn create(look: &Look<SimMachines>, call: MachineCall, decision: &mut Decision) {
    let MachineCall::Create { id } = &call else { return };
    decision.object.spec.provider_id = format!("{SCHEME}{id}");
    let message = match look.failure_of(&call) {
        Some(failure) => failure.error.to_string(),
        None => String::new(),
    };
    ready(look, decision, False, "Creating", message);
    let note = Note::normal("MachineCreated", "Create", format!("machine {id} is created"));
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
