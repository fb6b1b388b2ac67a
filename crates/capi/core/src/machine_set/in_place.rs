//! Machines that move from the set of one template to that of the next, and are updated in place there.
//!
//! ```text
//! old set   ── owner and label of the new set, marks ──▶ machine
//! new set   ── once its deployment counts the machine: objects, then the Machine, get the spec of the new templates ──▶
//!              pending hook: the Machine's controller goes on
//! ```

use std::collections::BTreeSet;

use capstan_capi_types::core::{Machine, MachineSpec, annotation, label};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::{PENDING_HOOKS, PendingHooks};
use capstan_controller::{Effect, Note, ObjectRef, Wait};
use capstan_object::OwnerReference;
use serde_json::{Value, json};

use super::decide::{BLOCKED_AGAIN, Decided, Looked};
use super::deletion_order::in_order;
use super::desired::is_pending_acknowledge;
use super::observed::{Arrival, Templated};
use crate::contract::Lookup;
use crate::in_place::{is_updating, to_template};
use crate::machines::is_to_be_remediated;
use crate::propagate::merge_difference;

fn names(annotation: Option<&String>) -> BTreeSet<&str> {
    annotation.map_or("", String::as_str).split(',').filter(|name| !name.is_empty()).collect()
}

/// Moves surplus machines to the set that receives them. Of those that cannot move, unhealthy ones are deleted; the
/// others stay until they can: machines that are being updated, or have no node yet.
pub(super) fn move_machines(decision: &mut Decided, look: &Looked, surplus: usize) {
    if surplus == 0 {
        return;
    }
    let set = &look.object;
    let target = look.seen.move_target.as_ref().filter(|target| {
        names(target.metadata.annotations.get(annotation::RECEIVE_MACHINES_FROM))
            .contains(set.metadata.name.as_str())
    });
    let target =
        target.and_then(|target| Some((target, target.metadata.labels.get(label::MACHINE_TEMPLATE_HASH)?)));
    let Some((target, unique)) = target else {
        let name = set.metadata.annotations.get(annotation::MOVE_MACHINES_TO).map_or("", String::as_str);
        let what = format!("MachineSet {name} to accept machines of {}", set.metadata.name);
        decision.wait(Wait::on("WaitingForMoveTarget", what)).again_in(BLOCKED_AGAIN);
        return;
    };
    let mut left = surplus;
    for machine in in_order(&look.seen.machines, set.spec.deletion.order) {
        if left == 0 {
            break;
        }
        let name = &machine.metadata.name;
        if machine.metadata.is_deleting() {
            decision.wait(Wait::on("WaitingForMachines", format!("Machine {name} to go")));
            left -= 1;
            continue;
        }
        // An old set does not replace machines: the current one will.
        if is_to_be_remediated(&machine) {
            let note = Note::normal("SuccessfulDelete", "Delete", format!("Deleted Machine {name:?}"));
            decision.best_effort_noting(Effect::delete(machine.as_ref()), note);
            left -= 1;
            continue;
        }
        if is_updating(&machine) || machine.status.node_ref.name.is_empty() {
            continue;
        }
        let mut owners = machine.metadata.owner_references.clone();
        owners.retain(|owner| owner.uid != set.metadata.uid);
        owners.push(OwnerReference::controlled_by(target.as_ref()));
        let change = json!({"metadata": {
            "ownerReferences": owners,
            "labels": {label::MACHINE_TEMPLATE_HASH: unique},
            "annotations": {annotation::UPDATE_IN_PROGRESS: "", annotation::PENDING_ACKNOWLEDGE_MOVE: ""},
        }});
        let message = format!(
            "Moved Machine {name:?} to MachineSet {:?}, to be updated in place",
            target.metadata.name
        );
        let effect = Effect::merge_guarded(ObjectRef::to(machine.as_ref()), &machine.metadata, change);
        decision.best_effort_noting(effect, Note::normal("SuccessfulMove", "Move", message));
        left -= 1;
    }
}

/// Gives machines that arrived the templates of the set: first their objects, then themselves.
pub(super) fn begin_updates(decision: &mut Decided, look: &Looked) {
    let set = &look.object;
    let annotations = &set.metadata.annotations;
    let receives = !names(annotations.get(annotation::RECEIVE_MACHINES_FROM)).is_empty();
    let acknowledged = names(annotations.get(annotation::ACKNOWLEDGED_MOVE));
    for arrival in &look.seen.arrivals {
        let machine = &arrival.machine;
        let name = machine.metadata.name.as_str();
        if is_pending_acknowledge(machine) && receives && !acknowledged.contains(name) {
            decision.wait(Wait::on("WaitingForAcknowledgement", format!("Machine {name} to be counted")));
            continue;
        }
        match changes_of_objects(arrival, look) {
            Err(why) => {
                decision.wait(Wait::on("InPlaceUpdateBlocked", why)).again_in(BLOCKED_AGAIN);
            }
            Ok(changes) if changes.is_empty() => begin_update(decision, machine, look),
            Ok(changes) => {
                // Each machine by itself: one whose provider refuses the change holds up no other.
                for change in changes {
                    decision.best_effort(change);
                }
            }
        }
    }
}

/// What is left to change in the objects of a machine.
fn changes_of_objects(
    arrival: &Arrival,
    look: &Looked,
) -> Result<Vec<Effect<capstan_controller::NoCall>>, String> {
    let name = &arrival.machine.metadata.name;
    let mut changes = Vec::new();
    let parts: [(&Templated, &Lookup); 2] = [
        (&arrival.infrastructure, &look.seen.infrastructure_template),
        (&arrival.bootstrap, &look.seen.bootstrap_template),
    ];
    for (part, template) in parts {
        let (object, template) = match (&part.object, template) {
            (Lookup::NotReferenced, Lookup::NotReferenced) => continue,
            (Lookup::Object(object), Lookup::Object(template)) => (object, template),
            (Lookup::Unusable(why), _) | (_, Lookup::Unusable(why)) => return Err(why.clone()),
            _ => return Err(format!("an object of Machine {name} or a template of the set does not exist")),
        };
        if let Some(change) = to_template(object, part.template.object(), template) {
            changes.push(Effect::merge_guarded(object.reference(), &object.metadata, change));
        }
    }
    Ok(changes)
}

/// Gives a machine the version and failure domain of the set, and leaves it to the Machine's controller.
fn begin_update(decision: &mut Decided, machine: &Machine, look: &Looked) {
    let template = &look.object.spec.template.spec;
    let mut wanted = MachineSpec { version: template.version.clone(), ..machine.spec.clone() };
    // Without one in the template, the machine keeps that of its infrastructure.
    if !template.failure_domain.is_empty() {
        wanted.failure_domain.clone_from(&template.failure_domain);
    }
    let mut annotations = machine.metadata.annotations.clone();
    let mut pending = PendingHooks::of(&annotations);
    pending.add(Hook::UpdateMachine);
    pending.write(&mut annotations);
    let mut change = json!({"metadata": {"annotations": {
        PENDING_HOOKS: annotations.get(PENDING_HOOKS),
        annotation::PENDING_ACKNOWLEDGE_MOVE: Value::Null,
    }}});
    // Plain data always serializes.
    let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
    if let Some(spec) = merge_difference(&form(&machine.spec), &form(&wanted)) {
        change["spec"] = spec;
    }
    let message = format!("Machine {:?} starting in-place update", machine.metadata.name);
    let note = Note::normal("SuccessfulStartInPlaceUpdate", "Update", message);
    let effect = Effect::merge_guarded(ObjectRef::to(machine), &machine.metadata, change);
    decision.best_effort_noting(effect, note);
}
