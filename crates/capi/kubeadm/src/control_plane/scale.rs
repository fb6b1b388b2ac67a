//! Machines that come, go and are replaced.

use std::collections::{BTreeMap, BTreeSet};

use capstan_capi_core::clone;
use capstan_capi_core::conditions::Verdict;
use capstan_capi_core::contract::Found;
use capstan_capi_core::machines::{condition_is, tell};
use capstan_capi_core::names::Names;
use capstan_capi_types::controlplane::kubeadm_control_plane::{annotation, reason};
use capstan_capi_types::core::Machine;
use capstan_capi_types::core::machine::condition::{HEALTH_CHECK_SUCCEEDED, OWNER_REMEDIATED};
use capstan_controller::{Effect, Note, ObjectRef};
use capstan_object::{ConditionStatus, ObjectMeta};

use super::decide::Turn;
use super::remediation::{Remediation, RemediationRecord, recorded};
use super::{Member, Plane, Step, desired, hooks, next_step, outdated_machines, upkeep};

/// The record of a replacement goes once there is the replacement, or once there is nothing to replace.
pub(super) fn keep_records(turn: &mut Turn<'_>, plane: &Plane) {
    let annotations = &plane.control_plane.metadata.annotations;
    if let Some(text) = annotations.get(annotation::REMEDIATION_IN_PROGRESS) {
        let record = serde_json::from_str::<RemediationRecord>(text).ok();
        let replaced = plane.machines.iter().any(|member| {
            let meta = &member.machine.metadata;
            let later = |record: &RemediationRecord| {
                meta.creation_timestamp.is_some_and(|made| made > record.timestamp)
            };
            meta.annotations.get(annotation::REMEDIATION_FOR) == Some(text)
                || record.as_ref().is_none_or(later)
        });
        // It was about to be deleted, and has recovered before it was.
        let recovered = recorded(plane).is_some_and(|member| {
            !member.machine.metadata.is_deleting()
                && !capstan_capi_core::machines::is_to_be_remediated(&member.machine)
        });
        if replaced || recovered {
            turn.decision.object.metadata.annotations.remove(annotation::REMEDIATION_IN_PROGRESS);
        }
    }
    for member in plane.machines.iter().filter(|member| !member.machine.metadata.is_deleting()) {
        let machine = &member.machine;
        if condition_is(machine, HEALTH_CHECK_SUCCEEDED, ConditionStatus::True)
            && condition_is(machine, OWNER_REMEDIATED, ConditionStatus::False)
            && let Some(effect) = tell(machine, OWNER_REMEDIATED, None, turn.look.now)
        {
            turn.decision.then(effect);
        }
    }
}

/// Says of a broken machine what holds up its replacement.
pub(super) fn remediate(turn: &mut Turn<'_>, _: &Plane) {
    let plane = turn.plane();
    let Remediation::Held { machine, reason, message } = super::remediate(&plane) else { return };
    let verdict = Verdict::new(ConditionStatus::False, reason, message.clone());
    if let Some(member) = by_name(&plane, &machine)
        && let Some(effect) = tell(&member.machine, OWNER_REMEDIATED, Some(&verdict), turn.look.now)
    {
        turn.decision.then(effect);
    }
    turn.wait("RemediationHeld", format!("machine {machine} is not replaced: {message}"));
}

fn by_name<'a>(plane: &'a Plane, name: &str) -> Option<&'a Member> {
    plane.machines.iter().find(|member| member.machine.metadata.name == name)
}

/// Takes the next step.
pub(super) fn step(turn: &mut Turn<'_>, _: &Plane) {
    let plane = turn.plane();
    if !outdated_machines(&plane).is_empty() {
        upkeep::before_roll_out(turn, &plane);
        if !turn.decision.effects.is_empty() {
            return;
        }
    }
    match next_step(&plane) {
        Step::Rest => leftovers(turn, None),
        Step::Initialize { failure_domain } => create(turn, &plane, &failure_domain, false),
        Step::ScaleUp { failure_domain } => create(turn, &plane, &failure_domain, true),
        Step::ScaleDown { machine } => {
            let note = Note::normal("ScaledDown", "Delete", format!("Deleted Machine {machine:?}"));
            remove(turn, &plane, &machine, note);
        }
        Step::Remediate(Remediation::Delete { machine, record }) => replace(turn, &plane, &machine, &record),
        Step::Remediate(_) => {}
        Step::Wait(blocked) => {
            turn.wait("PreflightFailed", blocked.reasons.join("; "));
            turn.obstacles = blocked.reasons;
            leftovers(turn, None);
        }
    }
}

/// Deletes a broken machine. The record is written before: a crash in between loses no count.
fn replace(turn: &mut Turn<'_>, plane: &Plane, machine: &str, record: &RemediationRecord) {
    let Some(member) = by_name(plane, machine) else { return };
    // A struct of plain data always has a JSON form.
    let text = serde_json::to_string(record).unwrap_or_default();
    let annotations = &mut turn.decision.object.metadata.annotations;
    annotations.insert(annotation::REMEDIATION_IN_PROGRESS.to_owned(), text);
    let verdict = Verdict::new(ConditionStatus::False, reason::MACHINE_DELETING, "Machine is deleting");
    if let Some(effect) = tell(&member.machine, OWNER_REMEDIATED, Some(&verdict), turn.look.now) {
        turn.decision.then(effect);
    }
    let note = Note::normal("Remediating", "Remediate", format!("Deleted unhealthy Machine {machine:?}"));
    remove(turn, plane, machine, note);
}

/// Deletes a machine; leadership of etcd is moved away from it first.
fn remove(turn: &mut Turn<'_>, plane: &Plane, name: &str, note: Note) {
    let Some(member) = by_name(plane, name) else { return };
    match hooks::move_leader(turn, plane, member) {
        Ok(call) => {
            if let Some(call) = call {
                turn.decision.call(call);
            }
            turn.decision.then_noting(Effect::delete(member.machine.as_ref()), note);
        }
        Err(why) => {
            turn.obstacles.push(why.clone());
            turn.wait("EtcdLeader", why);
        }
    }
}

/// Names that are taken: a machine has them, or what was made for one is going.
fn names(turn: &Turn<'_>) -> Names {
    let control_plane = &turn.look.object;
    let cluster = &turn.cluster.metadata.name;
    Names::of(&control_plane.metadata, |suffix| {
        let name = desired::name(control_plane, cluster, suffix);
        turn.look.seen.machines.iter().any(|seen| seen.machine.metadata.name == name)
            || turn.look.seen.made.iter().any(|(_, meta)| meta.name == name && meta.is_deleting())
    })
}

/// Remembers which names were given out, before the machines that have them go.
pub(super) fn record_names(turn: &mut Turn<'_>) {
    names(turn).record(&mut turn.decision.object.metadata);
}

/// Creates a machine, with what it is made of before it.
fn create(turn: &mut Turn<'_>, plane: &Plane, failure_domain: &str, joins: bool) {
    let look = turn.look;
    let template = match &look.seen.template {
        Found::Object(template) => template,
        Found::Unusable(why) => {
            turn.obstacles.push(why.clone());
            return turn.wait("TemplateUnusable", why.clone());
        }
        Found::Missing | Found::NotReferenced => {
            return turn.wait("TemplateMissing", "the template of infrastructure machines");
        }
    };
    let Some(suffix) = names(turn).upcoming().next() else { return };
    let cluster = &turn.cluster.metadata.name;
    let control_plane = &plane.control_plane;
    let name = desired::name(control_plane, cluster, &suffix);
    leftovers(turn, Some(&name));
    let made = |kind: &str| {
        look.seen.made.iter().any(|(made, _)| made.key.name == name && made.kind.kind.as_ref() == kind)
    };
    if !made(&clone::kind_of(template).kind) {
        let part = desired::part(control_plane, cluster, &name);
        turn.decision.then(clone::create(template, &part));
    }
    if !made("KubeadmConfig") {
        turn.decision.then(Effect::create(&desired::config(control_plane, cluster, &name, joins)));
    }
    let machine: Machine = desired::machine(control_plane, cluster, &name, failure_domain, template);
    let note = Note::normal("SuccessfulCreate", "Create", format!("Created Machine {name:?}"));
    turn.decision.then_noting(Effect::create(&machine), note);
}

/// Deletes what was made for machines that never came, but for the one that is about to come.
fn leftovers(turn: &mut Turn<'_>, coming: Option<&str>) {
    let seen = &turn.look.seen;
    let used: BTreeSet<&str> = seen
        .machines
        .iter()
        .flat_map(|seen| {
            let spec = &seen.machine.spec;
            [spec.infrastructure_ref.name.as_str(), spec.bootstrap.config_ref.name.as_str()]
        })
        .chain(coming)
        .collect();
    let made: BTreeMap<&ObjectRef, &ObjectMeta> = seen.made.iter().map(|(made, meta)| (made, meta)).collect();
    for (reference, meta) in made {
        // What a machine owns by now is the machine's.
        let ours = meta.is_owned_by(&turn.look.object.metadata.uid)
            && !meta.owner_references.iter().any(|owner| owner.kind == "Machine");
        if ours && !meta.is_deleting() && !used.contains(meta.name.as_str()) {
            turn.decision.then(Effect::delete_seen(reference.clone(), meta));
        }
    }
}
