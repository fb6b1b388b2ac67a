//! Decides about a MachineDeployment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::core::machine_deployment::FINALIZER;
use capstan_capi_types::core::{Cluster, MachineSet, annotation, condition, label, reason};
use capstan_controller::{Decision, Effect, Look, Note, ObjectRef, Wait};
use capstan_object::OwnerReference;
use serde_json::{Map, Value, json};

use super::MachineDeployments;
use super::choose::{Choice, choose};
use super::desired::{self, Revision};
use super::observed::missing;
use super::rollout::{self, MachineState, Plan, Rollout, SetPlan, SetState, Strategy};
use super::unfinished::still_to_do;
use super::{proportional, status, strategy};
use crate::conditions::{self, ConditionState};
use crate::in_place::is_updating;
use crate::propagate::merge_difference;
use crate::{owners, paused};

/// Requeue interval for a missing template.
const MISSING_AGAIN: Duration = Duration::from_secs(15);

type Looked = Look<MachineDeployments>;
type Decided = Decision<MachineDeployments>;

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
    let deployment = &look.object;
    if !deployment.metadata.is_deleting() {
        decision.add_finalizer(FINALIZER);
        set_owner(&mut decision, cluster);
    }
    let orphans: Vec<_> = look.seen.sets.iter().filter(|set| set.metadata.controller().is_none()).collect();
    if !orphans.is_empty() {
        for set in orphans {
            let note = Note::normal(
                "SuccessfulAdopt",
                "Adopt",
                format!("Adopted MachineSet {:?}", set.metadata.name),
            );
            decision.best_effort_noting(owners::adopt(deployment.as_ref(), set.as_ref()), note);
        }
        return decision;
    }
    let strategy = strategy::strategy(deployment);
    if deployment.metadata.is_deleting() {
        delete(&mut decision, look);
    } else {
        keep(&mut decision, look, cluster, &strategy);
    }
    report_status(&mut decision, look, &strategy);
    if !deployment.metadata.is_deleting() {
        clean_up(&mut decision, look);
    }
    decision
}

fn report_condition(decision: &mut Decided, look: &Looked, kind: &'static str, state: ConditionState) {
    let condition = look.condition(kind, state.status, &state.reason, state.message);
    conditions::set(&mut decision.object.status.conditions, condition);
}

/// Sets the cluster label and owner.
fn set_owner(decision: &mut Decided, cluster: &Cluster) {
    let meta = &mut decision.object.metadata;
    meta.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    owners::belong_to(meta, cluster);
}

fn delete(decision: &mut Decided, look: &Looked) {
    if look.seen.sets.is_empty() {
        decision.remove_finalizer(FINALIZER);
        return;
    }
    for set in look.seen.sets.iter().filter(|set| !set.metadata.is_deleting()) {
        decision.then(Effect::delete(set.as_ref()));
    }
    let waits = look.seen.sets.iter().map(|set| set.metadata.name.as_str()).collect::<Vec<_>>().join(", ");
    decision.wait(Wait::on("WaitingForMachineSets", format!("MachineSets {waits} to go")));
}

fn keep(decision: &mut Decided, look: &Looked, cluster: &Cluster, strategy: &Strategy) {
    for template in [&look.seen.infrastructure_template, &look.seen.bootstrap_template] {
        if let Some(claim) = template.object().and_then(|template| owners::claim_template(template, cluster))
        {
            decision.best_effort(claim);
        }
    }
    let deployment = &look.object;
    if deployment.spec.replicas.is_none() {
        decision.wait(Wait::on("WaitingForReplicasSet", "spec.replicas to be set"));
        return;
    }
    let choice = choose(deployment, &look.seen.sets, look.now);
    if let Some(after) = deployment.spec.rollout.after.filter(|after| after.timestamp() > look.now) {
        decision.again_at(look.now, after.timestamp());
    }
    let revision = Revision::of_current(choice.current.as_deref(), &choice.old);
    let names = desired::names(deployment, &look.seen.sets);
    names.record(&mut decision.object.metadata);

    if deployment.spec.paused == Some(true) {
        let sizes = proportional::scale(deployment, strategy, &choice);
        let plans = choice.current.iter().chain(&choice.old).map(|set| {
            let replicas = sizes.get(&set.metadata.name).copied().or(set.spec.replicas).unwrap_or(0);
            (
                set.metadata.name.clone(),
                SetPlan { name: set.metadata.name.clone(), replicas, ..SetPlan::default() },
            )
        });
        let plans: BTreeMap<_, _> = plans.collect();
        if choice.current.is_some() {
            annotate(decision, &revision);
        }
        update(decision, look, strategy, &choice, &revision, &plans);
        return;
    }

    if let Some(failure) = &look.seen.in_place.failed {
        decision.wait(Wait::on("ExtensionFailed", failure.why.clone())).again_in(failure.again);
        return;
    }
    let Some(suffix) = names.upcoming().next() else { return };
    let new_name = desired::name(deployment, &suffix);
    let planned = plan(look, strategy, &choice, &new_name);
    let plans: BTreeMap<String, SetPlan> = std::iter::once(&planned.current)
        .chain(&planned.old)
        .map(|plan| (plan.name.clone(), plan.clone()))
        .collect();
    if choice.current.is_none() {
        if cluster.metadata.is_deleting() {
            decision.wait(Wait::on("ClusterDeleting", "nothing: a cluster that goes gets no new machines"));
            return;
        }
        if !can_create(look) {
            decision.wait(Wait::on("WaitingForTemplates", "the templates to exist"));
            decision.again_in(MISSING_AGAIN);
            return;
        }
        let set = desired::new_set(deployment, strategy, &suffix, &revision, &planned.current);
        for why in &look.seen.in_place.refused {
            decision.note(Note::normal("NoInPlaceUpdate", "Create", why.clone()));
        }
        let message =
            format!("Created MachineSet {} with {} replicas", set.metadata.key(), planned.current.replicas);
        decision.then_noting(Effect::create(&set), Note::normal("SuccessfulCreate", "Create", message));
    }
    annotate(decision, &revision);
    update(decision, look, strategy, &choice, &revision, &plans);
}

fn annotate(decision: &mut Decided, revision: &Revision) {
    decision.object.metadata.annotations.insert(annotation::REVISION.to_owned(), revision.number.clone());
}

fn can_create(look: &Looked) -> bool {
    let needs_bootstrap = !look.object.spec.template.spec.bootstrap.config_ref.kind.is_empty();
    look.seen.infrastructure_template.object().is_some()
        && (!needs_bootstrap || look.seen.bootstrap_template.object().is_some())
}

fn plan(look: &Looked, strategy: &Strategy, choice: &Choice, new_name: &str) -> Plan {
    let inputs = |set: &Arc<MachineSet>| SetState {
        name: set.metadata.name.clone(),
        created: set.metadata.creation_timestamp,
        wanted: set.spec.replicas.unwrap_or(0),
        replicas: set.status.replicas.unwrap_or(0),
        available: set.status.available_replicas.unwrap_or(0),
        up_to_date: set.status.up_to_date_replicas.unwrap_or(0),
        in_place: look.seen.in_place.sets.contains(&set.metadata.name),
        acknowledged: set
            .metadata
            .annotations
            .get(annotation::ACKNOWLEDGED_MOVE)
            .map(|names| names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
            .unwrap_or_default(),
    };
    let current = choice.current.as_ref().map_or_else(
        || SetState { name: new_name.to_owned(), created: Some(look.now.into()), ..SetState::default() },
        inputs,
    );
    let machines = look.seen.machines.iter().filter_map(|machine| {
        Some(MachineState {
            name: machine.metadata.name.clone(),
            set: machine.metadata.controller()?.name.clone(),
            pending_acknowledge: machine
                .metadata
                .annotations
                .contains_key(annotation::PENDING_ACKNOWLEDGE_MOVE),
            updating: is_updating(machine),
        })
    });
    rollout::plan(&Rollout {
        desired: look.object.spec.replicas.unwrap_or(0),
        strategy: strategy.clone(),
        current,
        old: choice.old.iter().map(inputs).collect(),
        machines: machines.collect(),
    })
}

/// Updates existing sets to the plan, the current one first.
fn update(
    decision: &mut Decided,
    look: &Looked,
    strategy: &Strategy,
    choice: &Choice,
    revision: &Revision,
    plans: &BTreeMap<String, SetPlan>,
) {
    let current = choice.current.iter().map(|set| (set, Some(revision)));
    for (set, revision) in current.chain(choice.old.iter().map(|set| (set, None))) {
        let Some(plan) = plans.get(&set.metadata.name) else { continue };
        let Some(unique) = set.metadata.labels.get(label::MACHINE_TEMPLATE_HASH) else { continue };
        let before = set.spec.replicas.unwrap_or(0);
        let mut change = Map::new();
        let propagated = desired::propagated(&look.object, strategy, unique, Some(set), revision, Some(plan));
        if let Some(metadata) = propagated.change(&set.metadata, desired::PLANNED) {
            change.insert("metadata".to_owned(), metadata);
        }
        let spec = desired::spec(&look.object, unique, Some(set), plan.replicas);
        if let Some(spec) = difference(&set.spec, &spec) {
            change.insert("spec".to_owned(), spec);
        }
        if change.is_empty() {
            continue;
        }
        let effect = Effect::merge_guarded(ObjectRef::to(set.as_ref()), &set.metadata, Value::Object(change));
        if plan.replicas == before {
            decision.then(effect);
            continue;
        }
        let direction = if plan.replicas > before { "up" } else { "down" };
        let why: Vec<_> = plan.reasons.iter().map(ToString::to_string).collect();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
        let name = &set.metadata.name;
        let message = format!("Scaled {direction} MachineSet {name}: {before} -> {}{why}", plan.replicas);
        decision.then_noting(effect, Note::normal("SuccessfulScale", "Scale", message));
    }
}

fn difference<T: serde::Serialize>(from: &T, to: &T) -> Option<Value> {
    // Plain data always serializes.
    let form = |value: &T| serde_json::to_value(value).unwrap_or_else(|_| json!({}));
    merge_difference(&form(from), &form(to))
}

fn report_status(decision: &mut Decided, look: &Looked, strategy: &Strategy) {
    let deployment = &look.object;
    let template = &deployment.spec.template.spec;
    let missing_templates: Vec<String> = [
        missing(&look.seen.bootstrap_template, &template.bootstrap.config_ref.kind),
        missing(&look.seen.infrastructure_template, &template.infrastructure_ref.kind),
    ]
    .into_iter()
    .flatten()
    .collect();
    let inputs = status::StatusInputs {
        deployment,
        strategy,
        sets: &look.seen.sets,
        machines: &look.seen.machines,
        missing_templates: &missing_templates,
        now: look.now,
    };
    status::counters(&inputs, &mut decision.object.status);
    let to_do = match decision.effects.is_empty() {
        true => still_to_do(&inputs, &choose(deployment, &look.seen.sets, look.now)),
        false => Some(conditions::unfinished(reason::ROLLING_OUT, "MachineSets are being changed")),
    };
    conditions::set_reconciling(look, &mut decision.object.status.conditions, to_do);
    for (kind, mut state) in status::conditions(&inputs, &decision.object.status) {
        if let (condition::ROLLING_OUT, Some(failure)) = (kind, &look.seen.in_place.failed) {
            state = status::blocked(state, &failure.why);
        }
        report_condition(decision, look, kind, state);
    }
    for machine in look.seen.machines.iter().filter(|machine| status::in_up_to_date_grace(machine, look.now))
    {
        if let Some(created) = machine.metadata.creation_timestamp {
            let spoken = created.timestamp() + status::UP_TO_DATE_GRACE + jiff::SignedDuration::from_secs(1);
            decision.again_at(look.now, spoken);
        }
    }
}

/// Deletes old sets without machines once the deployment is complete.
fn clean_up(decision: &mut Decided, look: &Looked) {
    let Some(desired) = look.object.spec.replicas else { return };
    let status = &decision.object.status;
    let counts = [status.replicas, status.up_to_date_replicas, status.available_replicas];
    let seen_generation = look.object.status.observed_generation >= look.object.metadata.generation;
    if !seen_generation || counts.iter().any(|count| count.unwrap_or(0) != desired) {
        return;
    }
    let choice = choose(&look.object, &look.seen.sets, look.now);
    let mut old = choice.old;
    old.sort_by_key(|set| (set.metadata.creation_timestamp, set.metadata.name.clone()));
    let is_empty = |set: &&Arc<MachineSet>| {
        !set.metadata.is_deleting()
            && set.status.replicas.unwrap_or(0) == 0
            && set.spec.replicas.unwrap_or(0) == 0
            && set.metadata.generation <= set.status.observed_generation
            && set.metadata.controller().map(|owner: &OwnerReference| owner.uid.as_str())
                == Some(look.object.metadata.uid.as_str())
    };
    for set in old.iter().filter(is_empty) {
        let note =
            Note::normal("SuccessfulDelete", "Delete", format!("Deleted MachineSet {:?}", set.metadata.name));
        decision.then_noting(Effect::delete(set.as_ref()), note);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
