//! Decides about a control plane.
//!
//! ```text
//! template, infrastructure ─▶ adoption ─▶ certificates ─▶ endpoint ─▶ kubeconfig ─▶ in-place propagation
//!   ─▶ health conditions ─▶ orphaned etcd members ─▶ machines at our hook ─▶ remediation
//!   ─▶ rollout and scaling (one machine) ─▶ add-ons
//! ```
//!
//! The first phase with effects ends the decision; the next reconcile observes everything again.

mod adoption;
mod deletion;
mod etcd_members;
mod health;
mod in_place;
mod initialization;
mod machine_deletion;
mod remediation;
mod scaling;
mod scope;
mod secrets;
mod status;
#[cfg(test)]
mod tests;
mod workload;

use std::time::Duration;

use capstan_capi_core::conditions::ConditionState;
use capstan_capi_core::contract::Lookup;
use capstan_capi_core::machines::set_conditions;
use capstan_capi_core::{owners, paused};
use capstan_capi_types::controlplane::kubeadm_control_plane::{FINALIZER, condition as own};
use capstan_capi_types::core::machine::condition as machine_condition;
use capstan_capi_types::core::{condition, reason};
use capstan_controller::{Decision, Wait};
use capstan_object::{ConditionStatus, Conditions};

use self::health::Health;
use self::scope::{Decided, Looked, ReconcileScope};
use self::status::StatusInputs;
use super::Settings;
use super::observed::{ControlPlaneState, Workload};
use super::rollout::up_to_date;

pub(super) use status::OWNED;

/// Requeue interval of an unhealthy control plane: static pods are polled, not watched.
const RECHECK_UNHEALTHY: Duration = Duration::from_secs(20);
/// Requeue interval of a healthy control plane.
const RECHECK_HEALTHY: Duration = Duration::from_secs(600);

pub fn decide(settings: &Settings, look: &Looked) -> Decided {
    let mut decision = Decision::rest(look);
    status::set_condition(&mut decision, look, condition::PAUSED, paused::condition(look.paused.as_deref()));
    if look.paused.is_some() {
        return decision;
    }
    let Some(cluster) = &look.seen.cluster else {
        decision.wait(Wait::on("WaitingForOwner", "the cluster that owns this control plane"));
        return decision;
    };
    let mut scope = ReconcileScope {
        settings,
        look,
        cluster,
        decision,
        obstacles: Vec::new(),
        matching: true,
        propagating: false,
        deleting: None,
    };
    if look.object.metadata.is_deleting() {
        deletion::delete(&mut scope);
    } else {
        scope.decision.add_finalizer(FINALIZER);
        scope.run();
    }
    scope.report();
    scope.decision
}

impl ReconcileScope<'_> {
    fn run(&mut self) {
        if let Some(claim) =
            self.look.seen.template.object().and_then(|found| owners::claim_template(found, self.cluster))
        {
            self.decision.then(claim);
        }
        if self.cluster.status.initialization.infrastructure_provisioned != Some(true) {
            self.set_health_unknown(
                "Waiting for Cluster status.initialization.infrastructureProvisioned to be true",
            );
            self.decision.wait(Wait::on("WaitingForInfrastructure", "the infrastructure of the cluster"));
            return;
        }
        scaling::record_names(self);
        if !adoption::adopt(self) || self.has_work() || initialization::becomes_initialized(self) {
            return;
        }
        let certificates = secrets::certificates(self.settings, self.look, self.cluster, &mut self.decision);
        if !certificates || self.has_work() {
            return;
        }
        if !self.cluster.spec.control_plane_endpoint.is_valid() {
            self.set_health_unknown("Waiting for Cluster spec.controlPlaneEndpoint to be set");
            self.decision.wait(Wait::on("WaitingForEndpoint", "the endpoint of the cluster"));
            return;
        }
        let kubeconfig = secrets::kubeconfig(self.settings, self.look, self.cluster, &mut self.decision);
        if !kubeconfig || self.has_work() {
            return;
        }
        in_place::propagate(self);
        if self.has_work() {
            self.propagating = true;
            return;
        }
        let plane = self.plane();
        self.set_health_conditions(&plane);
        if self.has_work() {
            return;
        }
        if let Workload::Unreachable(why) = &self.look.seen.workload
            && plane.is_initialized()
        {
            // Machines are not added or removed without reading the workload cluster.
            self.obstacles.push(why.clone());
            return self.wait("WorkloadUnreachable", why.clone());
        }
        for step in [
            etcd_members::remove_orphaned,
            machine_deletion::complete,
            remediation::update_records,
            remediation::report_held,
            scaling::step,
        ] {
            step(self, &plane);
            if self.has_work() {
                return;
            }
        }
        if self.obstacles.is_empty() {
            workload::add_ons(self, &plane);
            in_place::record_certificate_expiry(self);
        }
    }

    /// Sets the health conditions to Unknown.
    fn set_health_unknown(&mut self, message: &str) {
        for kind in [own::ETCD_CLUSTER_HEALTHY, own::CONTROL_PLANE_COMPONENTS_HEALTHY] {
            let state = ConditionState::new(ConditionStatus::Unknown, reason::INSPECTION_FAILED, message);
            status::set_condition(&mut self.decision, self.look, kind, state);
        }
    }

    /// Sets the health conditions of the machines and of the control plane.
    fn set_health_conditions(&mut self, plane: &ControlPlaneState) {
        let seen = &self.look.seen;
        let health = Health::of(plane, &seen.workload, &seen.health, self.settings.grace);
        self.matching = health.matching;
        for member in &plane.machines {
            let name = &member.machine.metadata.name;
            let current = up_to_date::condition(plane, member);
            let lines = health.machines.get(name).map(Vec::as_slice).unwrap_or_default();
            let relevant = lines.iter().map(|(kind, state)| (*kind, Some(state)));
            let relevant = relevant.chain([(machine_condition::UP_TO_DATE, Some(&current))]);
            if let Some(effect) = set_conditions(&member.machine, relevant, self.look.now) {
                self.decision.then(effect);
            }
        }
        for (kind, state) in [
            (own::ETCD_CLUSTER_HEALTHY, health.etcd),
            (own::CONTROL_PLANE_COMPONENTS_HEALTHY, health.components),
        ] {
            if let Some(state) = state {
                status::set_condition(&mut self.decision, self.look, kind, state);
            }
        }
    }

    fn report(&mut self) {
        let plane = self.plane();
        let template = &self.look.seen.template;
        let kind = self.look.object.spec.machine_template.spec.infrastructure_ref.kind.clone();
        let inputs = StatusInputs {
            plane: &plane,
            matching: self.matching,
            propagating: self.propagating,
            obstacles: &self.obstacles,
            missing_template: matches!(template, Lookup::Missing).then_some(kind.as_str()),
            deleting: self.deleting.clone(),
        };
        status::report(&mut self.decision, self.look, &inputs);
        if self.look.object.metadata.is_deleting() || plane.machines.is_empty() {
            return;
        }
        let conditions = &self.decision.object.status.conditions;
        let well = conditions.is_condition_true(own::CONTROL_PLANE_COMPONENTS_HEALTHY)
            && (!plane.manages_etcd() || conditions.is_condition_true(own::ETCD_CLUSTER_HEALTHY));
        self.decision.again_in(if well { RECHECK_HEALTHY } else { RECHECK_UNHEALTHY });
        if let Some(after) = self.look.object.spec.rollout.after
            && after.timestamp() > self.look.now
        {
            self.decision.again_at(self.look.now, after.timestamp());
        }
    }
}
