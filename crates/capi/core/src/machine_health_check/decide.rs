//! Decides about a MachineHealthCheck.

use std::time::Duration;

use capstan_capi_types::core::machine::{condition as machine_condition, reason as machine_reason};
use capstan_capi_types::core::machine_health_check::condition::REMEDIATION_ALLOWED;
use capstan_capi_types::core::machine_health_check::reason;
use capstan_capi_types::core::{Cluster, Machine, condition, label};
use capstan_controller::{Decision, Effect, Look, NoCall, Note, ObjectRef, Wait};
use capstan_object::{Condition, ConditionStatus, Conditions, ObjectMeta, OwnerReference};
use serde_json::json;

use super::MachineHealthChecks;
use super::check::{Health, health};
use super::limits::{Limit, limit};
use super::observed::Target;
use crate::conditions::{self, ConditionState};
use crate::contract::Lookup;
use crate::{clone, owners, paused};

/// Requeue interval for an unreachable cluster.
const CONTACT_AGAIN: Duration = Duration::from_secs(30);

type Looked = Look<MachineHealthChecks>;
type Decided = Decision<MachineHealthChecks>;

pub fn decide(look: &Looked) -> Decided {
    let mut decision = Decision::rest(look);
    report_condition(&mut decision, look, condition::PAUSED, paused::condition(look.paused.as_deref()));
    if look.paused.is_some() || look.object.metadata.is_deleting() {
        return decision;
    }
    let Some(cluster) = &look.seen.cluster else {
        decision.wait(Wait::on("WaitingForCluster", format!("cluster {}", look.object.spec.cluster_name)));
        return decision;
    };
    set_owner(&mut decision, cluster);
    if let Some(why) = &look.seen.lost_contact {
        // An unreachable cluster does not make its machines unhealthy. Earlier results stay.
        decision.wait(Wait::on("ConnectionDown", why.clone()));
        decision.again_in(CONTACT_AGAIN);
        return decision;
    }
    let checked: Vec<(&Target, Health)> = look
        .seen
        .targets
        .iter()
        .map(|target| (target, health(target, cluster, &look.object.spec.checks, look.now)))
        .collect();
    let healthy = checked.iter().filter(|(_, health)| *health == Health::Healthy).count();
    let failed = checked.iter().filter(|(_, health)| matches!(health, Health::Unhealthy(_))).count();
    let expected = i32::try_from(checked.len()).unwrap_or(i32::MAX);
    let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    let limit = limit(&look.object.spec.remediation.trigger_if, expected, healthy, failed);

    let status = &mut decision.object.status;
    status.observed_generation = look.object.metadata.generation;
    status.expected_machines = Some(expected);
    status.current_healthy = Some(healthy);
    status.targets = look.seen.targets.iter().map(|target| target.machine.metadata.name.clone()).collect();
    status.targets.sort();
    let allowed = match &limit {
        Limit::Allowed(more) => {
            status.remediations_allowed = Some(*more);
            report_condition(
                &mut decision,
                look,
                REMEDIATION_ALLOWED,
                ConditionState::new(ConditionStatus::True, reason::REMEDIATION_ALLOWED, ""),
            );
            true
        }
        Limit::Restricted(why) => {
            status.remediations_allowed = Some(0);
            report_condition(
                &mut decision,
                look,
                REMEDIATION_ALLOWED,
                ConditionState::new(ConditionStatus::False, reason::TOO_MANY_UNHEALTHY, why),
            );
            if failed > 0 {
                decision.note(Note::warning("RemediationRestricted", "Check", why));
            }
            false
        }
        Limit::Invalid(why) => {
            decision.wait(Wait::on("InvalidLimit", why.clone()));
            false
        }
    };
    for (target, health) in &checked {
        match health {
            Health::Healthy => recovered(&mut decision, look, target, allowed),
            Health::Unhealthy(state) => mark(&mut decision, look, target, state, allowed),
            Health::Undecided(again) => {
                if let Some(again) = again {
                    decision.again_in(*again);
                }
            }
        }
    }
    decision
}

fn report_condition(decision: &mut Decided, look: &Looked, kind: &'static str, state: ConditionState) {
    let condition = look.condition(kind, state.status, &state.reason, state.message);
    conditions::set(&mut decision.object.status.conditions, condition);
}

fn set_owner(decision: &mut Decided, cluster: &Cluster) {
    let meta = &mut decision.object.metadata;
    meta.labels.insert(label::CLUSTER_NAME.to_owned(), cluster.metadata.name.clone());
    owners::belong_to(meta, cluster);
}

/// Marks a machine healthy and deletes its remediation request.
fn recovered(decision: &mut Decided, look: &Looked, target: &Target, allowed: bool) {
    if let Some(request) = look.seen.requests.get(&target.machine.metadata.name)
        && allowed
        && !request.metadata.is_deleting()
    {
        decision.best_effort(Effect::delete_seen(request.reference(), &request.metadata));
    }
    let state = ConditionState::new(ConditionStatus::True, machine_reason::HEALTH_CHECK_SUCCEEDED, "");
    let reported =
        MachineConditions::new(&target.machine).with(machine_condition::HEALTH_CHECK_SUCCEEDED, state, look);
    if let Some(effect) = reported.effect() {
        decision.best_effort(effect);
    }
}

/// Marks a machine unhealthy and, within the limits, requests remediation from its owner or an external remediator.
fn mark(decision: &mut Decided, look: &Looked, target: &Target, state: &ConditionState, allowed: bool) {
    let machine = &target.machine;
    let mut reported =
        MachineConditions::new(machine).with(machine_condition::HEALTH_CHECK_SUCCEEDED, state.clone(), look);
    if allowed {
        if look.object.spec.remediation.template_ref.kind.is_empty() {
            reported = request_owner(reported, look, machine);
        } else {
            reported = request_external(decision, reported, look, machine);
        }
    }
    if let Some(effect) = reported.effect() {
        let message = format!(
            "Machine {} has been marked as unhealthy by {}",
            machine.metadata.key(),
            look.object.metadata.key()
        );
        let mut note = Note::normal("MachineMarkedUnhealthy", "Check", message);
        note.related = Some(ObjectRef::to(machine.as_ref()));
        decision.best_effort_noting(effect, note);
    }
}

/// Sets `OwnerRemediated` once; then the owner updates it.
fn request_owner<'a>(
    reported: MachineConditions<'a>,
    look: &Looked,
    machine: &Machine,
) -> MachineConditions<'a> {
    let asked = machine.status.conditions.condition(machine_condition::OWNER_REMEDIATED);
    if machine.metadata.is_deleting() || asked.is_some_and(|asked| !asked.is_true()) {
        return reported;
    }
    let waiting = ConditionState::new(
        ConditionStatus::False,
        machine_reason::WAITING_FOR_REMEDIATION,
        "Waiting for remediation",
    );
    reported.with(machine_condition::OWNER_REMEDIATED, waiting, look)
}

/// Creates a remediation request named like the machine; an existing one is left alone.
fn request_external<'a>(
    decision: &mut Decided,
    reported: MachineConditions<'a>,
    look: &Looked,
    machine: &Machine,
) -> MachineConditions<'a> {
    let name = &machine.metadata.name;
    let waiting = ConditionState::new(ConditionStatus::False, machine_reason::WAITING_FOR_REMEDIATION, "");
    if look.seen.requests.contains_key(name) {
        // The remediator owns the condition from here on, except if creating its request had failed before.
        let before = machine.status.conditions.condition(machine_condition::EXTERNALLY_REMEDIATED);
        return match before {
            Some(before) if before.reason == machine_reason::REMEDIATION_REQUEST_CREATION_FAILED => {
                reported.with(machine_condition::EXTERNALLY_REMEDIATED, waiting, look)
            }
            _ => reported,
        };
    }
    let reference = &look.object.spec.remediation.template_ref;
    let Lookup::Object(template) = &look.seen.remediation_template else {
        decision.again_in(CONTACT_AGAIN);
        let namespace = &look.object.metadata.namespace;
        let message = format!(
            "Error retrieving remediation template {} {namespace}/{}",
            reference.kind, reference.name
        );
        let state = ConditionState::new(
            ConditionStatus::False,
            machine_reason::REMEDIATION_TEMPLATE_NOT_FOUND,
            message,
        );
        return reported.with(machine_condition::EXTERNALLY_REMEDIATED, state, look);
    };
    let mut meta = ObjectMeta::named(machine.metadata.namespace.as_str(), name.as_str());
    meta.labels.insert(label::CLUSTER_NAME.to_owned(), machine.spec.cluster_name.clone());
    meta.owner_references = vec![OwnerReference::to(machine)];
    let create = clone::create(template, &meta);
    let failed = look.failures.iter().find(|failure| failure.effect == create.summary());
    let state = match failed {
        Some(failure) => ConditionState::new(
            ConditionStatus::False,
            machine_reason::REMEDIATION_REQUEST_CREATION_FAILED,
            failure.error.to_string(),
        ),
        None => waiting,
    };
    decision.best_effort(create);
    reported.with(machine_condition::EXTERNALLY_REMEDIATED, state, look)
}

/// Conditions of a machine, written in one patch.
struct MachineConditions<'a> {
    machine: &'a Machine,
    conditions: Vec<Condition>,
}

impl<'a> MachineConditions<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self { machine, conditions: machine.status.conditions.clone() }
    }

    fn with(mut self, kind: &str, state: ConditionState, look: &Looked) -> Self {
        let generation = self.machine.metadata.generation;
        let condition = Condition {
            kind: kind.to_owned(),
            status: state.status,
            observed_generation: Some(generation).filter(|generation| *generation != 0),
            last_transition_time: look.now.into(),
            reason: state.reason,
            message: state.message,
        };
        conditions::set(&mut self.conditions, condition);
        self
    }

    /// The patch, if anything changed; guarded by resourceVersion, since the list is replaced as a whole.
    fn effect(self) -> Option<Effect<NoCall>> {
        if self.conditions == self.machine.status.conditions {
            return None;
        }
        let status = json!({"conditions": self.conditions});
        Some(Effect::merge_status_guarded(ObjectRef::to(self.machine), &self.machine.metadata, &status))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
