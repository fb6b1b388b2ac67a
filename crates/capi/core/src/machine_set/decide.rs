//! Decides about a MachineSet.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_capi_types::core::machine_set::FINALIZER;
use capstan_capi_types::core::{Cluster, annotation, condition, label, reason};
use capstan_controller::{Decision, Effect, Look, Note, ObjectRef, Wait};
use serde_json::{Map, Value, json};

use super::deletion_order::in_order;
use super::desired::{self, is_pending_acknowledge};
use super::observed::distinct;
use super::preflight::{self, Preflight};
use super::remediation::{remediation, replacing};
use super::{MachineSets, in_place, status};
use crate::conditions::{self, ConditionState};
use crate::contract::{External, Lookup};
use crate::machine_deployment::{missing, status::UP_TO_DATE_GRACE, status::in_up_to_date_grace};
use crate::machines::{self, set_condition};
use crate::names::{LOOK_AHEAD, Names};
use crate::propagate::merge_difference;
use crate::{clone, owners, paused};

/// Requeue interval while creating or moving machines is blocked.
pub(super) const BLOCKED_AGAIN: Duration = Duration::from_secs(15);

pub(super) type Looked = Look<MachineSets>;
pub(super) type Decided = Decision<MachineSets>;

/// The first step with effects ends the decision; the next reconcile observes everything again.
pub fn decide(look: &Looked) -> Decided {
    let mut decision = Decision::rest(look);
    report_condition(&mut decision, look, condition::PAUSED, paused::condition(look.paused.as_deref()));
    if look.paused.is_some() {
        return decision;
    }
    let Some(cluster) = &look.seen.cluster else {
        decision.wait(Wait::on("WaitingForCluster", format!("cluster {}", look.object.spec.cluster_name)));
        return decision;
    };
    if !look.object.metadata.is_deleting() {
        decision.add_finalizer(FINALIZER);
        set_owner(&mut decision, cluster);
        claim_templates(&mut decision, look, cluster);
    }
    adopt(&mut decision, look);
    let mut obstacles = Vec::new();
    if decision.effects.is_empty() && look.object.metadata.is_deleting() {
        delete(&mut decision, look);
    } else {
        for step in [remediate, follow, begin_updates_and_scale] {
            if decision.effects.is_empty() {
                obstacles = step(&mut decision, look, cluster);
            }
        }
    }
    report(&mut decision, look, &obstacles);
    decision
}

fn report_condition(decision: &mut Decided, look: &Looked, kind: &'static str, state: ConditionState) {
    let condition = look.condition(kind, state.status, &state.reason, state.message);
    conditions::set(&mut decision.object.status.conditions, condition);
}

/// Sets labels and owner. A set of a deployment is owned by it alone; while the deployment has not adopted it (such
/// as after a restore), the cluster must not own it either.
fn set_owner(decision: &mut Decided, cluster: &Cluster) {
    let name = cluster.metadata.name.clone();
    let object = &mut decision.object;
    for labels in [
        &mut object.metadata.labels,
        &mut object.spec.selector.match_labels,
        &mut object.spec.template.metadata.labels,
    ] {
        labels.insert(label::CLUSTER_NAME.to_owned(), name.clone());
    }
    let is_part = object.metadata.labels.contains_key(label::DEPLOYMENT_NAME);
    let is_owned = object.metadata.owner_references.iter().any(|owner| owner.kind == "MachineDeployment");
    if !is_part && !is_owned {
        owners::belong_to(&mut object.metadata, cluster);
    }
}

fn claim_templates(decision: &mut Decided, look: &Looked, cluster: &Cluster) {
    for template in [&look.seen.infrastructure_template, &look.seen.bootstrap_template] {
        if let Some(claim) = template.object().and_then(|template| owners::claim_template(template, cluster))
        {
            decision.best_effort(claim);
        }
    }
}

fn adopt(decision: &mut Decided, look: &Looked) {
    for machine in look.seen.machines.iter().filter(|machine| machine.metadata.controller().is_none()) {
        let note =
            Note::normal("SuccessfulAdopt", "Adopt", format!("Adopted Machine {:?}", machine.metadata.name));
        decision.best_effort_noting(owners::adopt(look.object.as_ref(), machine.as_ref()), note);
    }
}

fn delete(decision: &mut Decided, look: &Looked) {
    if look.seen.machines.is_empty() {
        decision.remove_finalizer(FINALIZER);
        return;
    }
    for machine in look.seen.machines.iter().filter(|machine| !machine.metadata.is_deleting()) {
        decision.best_effort(Effect::delete(machine.as_ref()));
    }
    let names: Vec<_> = look.seen.machines.iter().map(|machine| machine.metadata.name.as_str()).collect();
    let what = format!("Machines {} to go", conditions::shortened(&names, 5));
    decision.wait(Wait::on("WaitingForMachines", what));
}

fn remediate(decision: &mut Decided, look: &Looked, cluster: &Cluster) -> Vec<String> {
    let mut decided = remediation(&look.object, look.seen.deployment.as_deref(), &look.seen.machines);
    if decided.wants_to_replace() {
        let failures = preflight_failures(look, cluster);
        if !failures.is_empty() {
            decided = decided.held_back(&failures);
            decision.again_in(BLOCKED_AGAIN);
        }
    }
    let kind = machines::OWNER_REMEDIATED;
    let recovered =
        decided.recovered.iter().filter_map(|machine| set_condition(machine, kind, None, look.now));
    let deferred = decided
        .deferred
        .iter()
        .filter_map(|(machine, state)| set_condition(machine, kind, Some(state), look.now));
    for effect in recovered.chain(deferred) {
        decision.best_effort(effect);
    }
    for machine in &decided.replaced {
        // Reported first: a machine that is being deleted is not evaluated again.
        if let Some(effect) = set_condition(machine, kind, Some(&replacing()), look.now) {
            decision.then(effect);
        }
        let message = format!("Deleted unhealthy Machine {:?}", machine.metadata.name);
        decision.then_noting(
            Effect::delete(machine.as_ref()),
            Note::normal("SuccessfulDelete", "Remediate", message),
        );
    }
    Vec::new()
}

/// Propagates metadata and spec fields to machines, their bootstrap configs and infrastructure machines.
fn follow(decision: &mut Decided, look: &Looked, _: &Cluster) -> Vec<String> {
    let propagated = desired::propagated(&look.object);
    for machine in &look.seen.machines {
        let mut change = Map::new();
        // Of a machine that is being deleted only fields that affect the deletion are updated.
        if !machine.metadata.is_deleting()
            && let Some(metadata) = propagated.change(&machine.metadata, &[])
        {
            change.insert("metadata".to_owned(), metadata);
        }
        let followed = desired::followed(&look.object, &machine.spec);
        // Plain data always serializes.
        let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
        if let Some(spec) = merge_difference(&form(&machine.spec), &form(&followed)) {
            change.insert("spec".to_owned(), spec);
        }
        if !change.is_empty() {
            let target = ObjectRef::to(machine.as_ref());
            decision.best_effort(Effect::merge_guarded(target, &machine.metadata, Value::Object(change)));
        }
    }
    for (reference, metadata) in distinct(&look.seen.parts) {
        if let Some(change) = propagated.change(metadata, &[]) {
            let change = json!({"metadata": change});
            decision.best_effort(Effect::merge_guarded(reference.clone(), metadata, change));
        }
    }
    Vec::new()
}

/// Machines that cannot begin their update do not keep others from being created, moved or deleted.
fn begin_updates_and_scale(decision: &mut Decided, look: &Looked, cluster: &Cluster) -> Vec<String> {
    in_place::begin_updates(decision, look);
    scale(decision, look, cluster)
}

/// Creates missing machines, and deletes or moves surplus ones. Returns what blocks creation.
fn scale(decision: &mut Decided, look: &Looked, cluster: &Cluster) -> Vec<String> {
    let Some(wanted) = look.object.spec.replicas.and_then(|replicas| usize::try_from(replicas).ok()) else {
        decision.wait(Wait::on("WaitingForReplicasSet", "spec.replicas to be set"));
        return Vec::new();
    };
    let machines = &look.seen.machines;
    let annotations = &look.object.metadata.annotations;
    let may_create = annotations.get(annotation::DISABLE_MACHINE_CREATE).is_none_or(|value| value != "true");
    let missing = if may_create { wanted.saturating_sub(machines.len()) } else { 0 };
    let obstacles = if missing > 0 { obstacles(look, cluster) } else { Vec::new() };
    let creating = if obstacles.is_empty() { missing } else { 0 };
    create(decision, look, creating);
    if !obstacles.is_empty() {
        decision.wait(Wait::on("MachinesHeldUp", obstacles.join("; ")));
        decision.again_in(BLOCKED_AGAIN);
        return obstacles;
    }
    // Machines that moved from another set and are not acknowledged yet are no surplus.
    let receives =
        annotations.get(annotation::RECEIVE_MACHINES_FROM).is_some_and(|sources| !sources.is_empty());
    let counted = machines.iter().filter(|machine| !receives || !is_pending_acknowledge(machine)).count();
    let surplus = counted.saturating_sub(wanted);
    if annotations.get(annotation::MOVE_MACHINES_TO).is_some_and(|target| !target.is_empty()) {
        in_place::move_machines(decision, look, surplus);
        return Vec::new();
    }
    for machine in in_order(machines, look.object.spec.deletion.order).iter().take(surplus) {
        if machine.metadata.is_deleting() {
            decision.wait(Wait::on("WaitingForMachines", format!("Machine {} to go", machine.metadata.name)));
            continue;
        }
        let message = format!("Deleted Machine {:?}", machine.metadata.name);
        decision.best_effort_noting(
            Effect::delete(machine.as_ref()),
            Note::normal("SuccessfulDelete", "Delete", message),
        );
    }
    Vec::new()
}

/// Why no machine can be created.
fn obstacles(look: &Looked, cluster: &Cluster) -> Vec<String> {
    if cluster.metadata.is_deleting() {
        return vec![format!("Cluster {} is deleting", cluster.metadata.name)];
    }
    let mut obstacles = preflight_failures(look, cluster);
    for template in [&look.seen.infrastructure_template, &look.seen.bootstrap_template] {
        match template {
            Lookup::Unusable(why) => obstacles.push(why.clone()),
            Lookup::Missing | Lookup::NotReferenced | Lookup::Object(_) => {}
        }
    }
    obstacles
}

fn preflight_failures(look: &Looked, cluster: &Cluster) -> Vec<String> {
    let reference = &cluster.spec.control_plane_ref;
    let control_plane = match &look.seen.control_plane {
        Lookup::NotReferenced => return Vec::new(),
        Lookup::Object(control_plane) => control_plane,
        Lookup::Missing => return vec![format!("{} {} does not exist", reference.kind, reference.name)],
        Lookup::Unusable(why) => return vec![why.clone()],
    };
    let skipped_by = |annotations: &std::collections::BTreeMap<String, String>| {
        annotations.get(annotation::SKIP_PREFLIGHT_CHECKS).filter(|skipped| !skipped.is_empty()).cloned()
    };
    let template = look.seen.bootstrap_template.object();
    let skipped = skipped_by(&look.object.metadata.annotations)
        .or_else(|| template.and_then(|template| skipped_by(&template.metadata.annotations)));
    let template = &look.object.spec.template.spec;
    let preflight = Preflight {
        cluster,
        control_plane,
        version: &template.version,
        bootstrap: &template.bootstrap.config_ref,
        skipped: &skipped.unwrap_or_default(),
    };
    preflight::failures(&preflight).unwrap_or_else(|error| vec![error])
}

/// Creates machines, each after its bootstrap config and infrastructure machine, and deletes objects of machines that
/// were never created.
fn create(decision: &mut Decided, look: &Looked, count: usize) {
    let set = &look.object;
    let made = distinct(&look.seen.made);
    // A name is in use if a machine has it, or if an object of that name is being deleted.
    let names = Names::of(&set.metadata, |suffix| {
        let name = desired::name(set, suffix);
        look.seen.machines.iter().any(|machine| machine.metadata.name == name)
            || made.values().any(|meta| meta.name == name && meta.is_deleting())
    });
    names.record(&mut decision.object.metadata);
    let infrastructure = look.seen.infrastructure_template.object();
    let bootstrap = look.seen.bootstrap_template.object();
    let needs_bootstrap = !set.spec.template.spec.bootstrap.config_ref.kind.is_empty();
    let complete = infrastructure.is_some() && (!needs_bootstrap || bootstrap.is_some());
    let count = if complete { count.min(usize::try_from(LOOK_AHEAD).unwrap_or(usize::MAX)) } else { 0 };
    let new: Vec<String> = names.upcoming().take(count).map(|suffix| desired::name(set, &suffix)).collect();

    let used: BTreeSet<&str> = look
        .seen
        .machines
        .iter()
        .flat_map(|machine| [&machine.spec.infrastructure_ref.name, &machine.spec.bootstrap.config_ref.name])
        .map(String::as_str)
        .chain(new.iter().map(String::as_str))
        .collect();
    for (reference, meta) in &made {
        // Objects that a Machine owns are deleted with it.
        let is_ours = meta.is_owned_by(&set.metadata.uid)
            && !meta.owner_references.iter().any(|owner| owner.kind == "Machine");
        if is_ours && !meta.is_deleting() && !used.contains(meta.name.as_str()) {
            decision.best_effort(Effect::delete_seen((*reference).clone(), meta));
        }
    }
    let Some(infrastructure) = infrastructure else { return };
    for name in &new {
        let part = desired::part(set, name);
        let parts: [Option<&External>; 2] = [bootstrap.filter(|_| needs_bootstrap), Some(infrastructure)];
        for template in parts.into_iter().flatten() {
            let kind = clone::kind_of(template);
            let exists = made.keys().any(|made| {
                made.key.name == *name && made.kind.kind == kind.kind && made.kind.group == kind.group
            });
            if !exists {
                decision.then(clone::create(template, &part));
            }
        }
        let machine = desired::machine(set, name, infrastructure, bootstrap.filter(|_| needs_bootstrap));
        let note = Note::normal("SuccessfulCreate", "Create", format!("Created Machine {name:?}"));
        decision.then_noting(Effect::create(&machine), note);
    }
}

fn report(decision: &mut Decided, look: &Looked, obstacles: &[String]) {
    let template = &look.object.spec.template.spec;
    let missing_templates: Vec<String> = [
        missing(&look.seen.bootstrap_template, &template.bootstrap.config_ref.kind),
        missing(&look.seen.infrastructure_template, &template.infrastructure_ref.kind),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !missing_templates.is_empty() {
        decision.again_in(BLOCKED_AGAIN);
    }
    let set = decision.object.clone();
    let inputs = status::StatusInputs {
        set: &set,
        machines: &look.seen.machines,
        missing_templates: &missing_templates,
        obstacles,
        now: look.now,
    };
    status::counters(&inputs, &mut decision.object.status);
    let to_do = match decision.effects.is_empty() {
        true => status::still_to_do(&inputs, &decision.object.status),
        false => Some(conditions::unfinished(reason::ROLLING_OUT, "Machines are being changed")),
    };
    conditions::set_reconciling(look, &mut decision.object.status.conditions, to_do);
    for (kind, state) in status::conditions(&inputs) {
        report_condition(decision, look, kind, state);
    }
    for machine in look.seen.machines.iter().filter(|machine| in_up_to_date_grace(machine, look.now)) {
        if let Some(created) = machine.metadata.creation_timestamp {
            let spoken = created.timestamp() + UP_TO_DATE_GRACE + jiff::SignedDuration::from_secs(1);
            decision.again_at(look.now, spoken);
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
