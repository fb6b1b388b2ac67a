//! Decisions about SimMachines.

use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::Look;
use capstan_guest::vm::{Phase, Vm};
use capstan_provider_kit::decisions::{self, Found, Instance, InstancePhase, MachineOrder};
use capstan_provider_kit::{Infrastructure, decide_machine};

use super::mark::is_ours;
use super::{FINALIZER, MachineCall, Order, SCHEME, SITE, SimMachines, id_of};
use crate::code;

type Decision = capstan_controller::Decision<SimMachines>;

pub(super) fn decide(look: &Look<SimMachines>) -> Decision {
    let owners = look.seen.machine.as_ref().zip(look.seen.cluster.as_ref());
    let keep = owners.map(|(machine, cluster)| {
        |look: &Look<_>, decision: &mut Decision| keep(look, machine, cluster, decision)
    });
    decide_machine(look, Infrastructure::conditions_mut, delete, keep)
}

fn keep(look: &Look<SimMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    decision.add_finalizer(FINALIZER);
    let annotations = &mut decision.object.metadata.annotations;
    match &look.seen.url {
        Some(url) => drop(annotations.insert(SITE.to_owned(), url.to_string())),
        None => drop(annotations.remove(SITE)),
    }
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    decisions::answers(decision);
    let found = match &look.seen.vm {
        Some(vm) if !is_ours(vm) => Found::Foreign { id: vm.id.clone() },
        Some(vm) => {
            let wanted = Some(&machine.spec.failure_domain).filter(|domain| !domain.is_empty());
            let domain = wanted.unwrap_or(&look.object.spec.failure_domain).clone();
            decision.object.status.failure_domain = domain;
            Found::Ours(instance(vm))
        }
        None => Found::Nothing,
    };
    let own = id_of(&look.object);
    let created = |call: &MachineCall| matches!(call, MachineCall::Create { id, .. } if *id == own);
    let was_there = look.object.provisioned() == Some(true) || decisions::was_created(look, created);
    let waits = decisions::waits_for(machine, cluster);
    decisions::keep_machine(look, decision, (found, was_there), waits, || order(look, machine));
}

fn order(look: &Look<SimMachines>, machine: &Machine) -> MachineOrder<MachineCall> {
    let id = id_of(&look.object);
    match &look.seen.boot_data {
        None => MachineOrder::Unobserved,
        Some(Err(error)) => MachineOrder::Impossible {
            reason: "BootDataUnreadable",
            code: code::BOOT_DATA,
            why: error.to_string(),
        },
        Some(Ok(boot_data)) => {
            let order = Box::new(Order::of(&id, &look.object, machine, boot_data));
            MachineOrder::Complete {
                call: MachineCall::Create { id: id.clone(), order: Some(order) },
                provider_id: format!("{SCHEME}{id}"),
                id,
            }
        }
    }
}

fn instance(vm: &Vm) -> Instance {
    let phase = match &vm.phase {
        Phase::Booting => InstancePhase::Booting,
        Phase::Booted => InstancePhase::Running,
        Phase::Off => InstancePhase::Off("PoweredOff", "the machine is switched off"),
        Phase::Failed(line) => InstancePhase::Failed(line.clone()),
    };
    let (name, address) = (vm.name.clone(), vm.address.to_string());
    Instance { provider_id: format!("{SCHEME}{}", vm.id), name, address, phase }
}

/// A machine without our mark is foreign and stays.
fn delete(look: &Look<SimMachines>, decision: &mut Decision) {
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    let ours = look.seen.vm.as_ref().filter(|vm| is_ours(vm));
    let destroy = ours.map(|vm| MachineCall::Destroy { id: vm.id.clone() });
    decisions::delete_object(look, decision, FINALIZER, destroy);
}
