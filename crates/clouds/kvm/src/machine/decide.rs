//! Decisions about KVMMachines.

use std::time::Duration;

use capstan_capi_types::core::{Cluster, Machine};
use capstan_controller::Look;
use capstan_object::ConditionStatus::False;
use capstan_provider_kit::decisions::{self, Found, InstancePhase, MachineOrder};
use capstan_provider_kit::{Infrastructure, decide_machine};

use super::{FINALIZER, KVMMachines, MachineCall, Order, SCHEME, id_of, prerequisites};
use crate::backend::{Id, Instance, Phase};
use crate::code;

type Decision = capstan_controller::Decision<KVMMachines>;

/// Polling interval of a booting and of a running machine: there are no events.
const BOOTING: Duration = Duration::from_millis(500);
const RUNNING: Duration = Duration::from_secs(5);

pub(super) fn decide(look: &Look<KVMMachines>) -> Decision {
    let owners = look.seen.machine.as_ref().zip(look.seen.cluster.as_ref());
    let keep = owners.map(|(machine, cluster)| {
        |look: &Look<_>, decision: &mut Decision| keep(look, machine, cluster, decision)
    });
    decide_machine(look, Infrastructure::conditions_mut, delete, keep)
}

fn keep(look: &Look<KVMMachines>, machine: &Machine, cluster: &Cluster, decision: &mut Decision) {
    let id = match id_of(&look.object) {
        Ok(id) => id,
        Err(error) => {
            let message = format!("spec.providerID: {error}");
            return decisions::ready(look, decision, False, "NoIdentity", message);
        }
    };
    decision.add_finalizer(FINALIZER);
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    decisions::answers(decision);
    let created = |call: &MachineCall| matches!(call, MachineCall::Create { id: made, .. } if *made == id);
    // A move or a restore may drop the status. The Machine has a provider id once its infrastructure was provisioned; the
    // object's own is written before the machine is created and proves nothing.
    let was_there = look.object.provisioned() == Some(true)
        || !machine.spec.provider_id.is_empty()
        || look.seen.instance.as_ref().is_some_and(|instance| instance.has_booted)
        || decisions::was_created(look, created);
    let found = match &look.seen.instance {
        Some(instance) if was_there || instance.phase != Phase::Stopped => {
            decision.object.status.console = instance.console.display().to_string();
            match instance.phase {
                Phase::Booting => drop(decision.again_in(BOOTING)),
                Phase::Booted | Phase::Failed(_) => drop(decision.again_in(RUNNING)),
                Phase::Stopped => {}
            }
            Found::Ours(instance_state(instance))
        }
        // It does not exist, or was created and never ran.
        _ => Found::Nothing,
    };
    let waits = prerequisites::waits(&look.seen, machine, cluster);
    decisions::keep_machine(look, decision, (found, was_there), waits, || order(look, &id, machine));
}

fn order(look: &Look<KVMMachines>, id: &Id, machine: &Machine) -> MachineOrder<MachineCall> {
    let (Some(network), Some(boot_data)) = (&look.seen.network, &look.seen.boot_data) else {
        return MachineOrder::Unobserved;
    };
    let order = boot_data.as_ref().map_err(ToString::to_string);
    match order.and_then(|boot_data| Order::of(&look.object, machine, network, boot_data)) {
        Ok(order) => MachineOrder::Complete {
            call: MachineCall::Create { id: id.clone(), order: Some(Box::new(order)) },
            id: id.to_string(),
            provider_id: format!("{SCHEME}{id}"),
        },
        Err(why) => MachineOrder::Impossible { reason: "CannotOrder", code: code::BOOT_DATA, why },
    }
}

fn instance_state(instance: &Instance) -> decisions::Instance {
    let phase = match &instance.phase {
        Phase::Booting => InstancePhase::Booting,
        Phase::Booted => InstancePhase::Running,
        Phase::Stopped => {
            InstancePhase::Off("Stopped", "the machine does not run any more; it is not started again")
        }
        Phase::Failed(line) => InstancePhase::Failed(line.clone()),
    };
    decisions::Instance {
        provider_id: format!("{SCHEME}{}", instance.id),
        name: instance.name.clone(),
        address: instance.address.to_string(),
        phase,
    }
}

fn delete(look: &Look<KVMMachines>, decision: &mut Decision) {
    if let Some(silence) = &look.seen.silence {
        return decisions::silent(look, decision, silence);
    }
    let there = look.seen.instance.as_ref();
    let destroy = there.map(|instance| MachineCall::Destroy { id: instance.id.clone() });
    decisions::delete_object(look, decision, FINALIZER, destroy);
}
