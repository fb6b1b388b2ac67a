//! What is to be done about a control plane.
//!
//! ```text
//! template, infrastructure ─▶ adoption ─▶ certificates ─▶ endpoint ─▶ kubeconfig ─▶ what machines follow in place
//!   ─▶ health of machines ─▶ etcd members nobody runs ─▶ machines that wait to end ─▶ broken machines
//!   ─▶ roll-out and scale (one machine) ─▶ what kubeadm installed
//! ```
//!
//! The first of these that has something to do is carried out, and everything is looked at again before the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_core::conditions::Verdict;
use capstan_capi_core::contract::Found;
use capstan_capi_core::machines::{is_updating_in_place, tell_all};
use capstan_capi_core::propagate::merge_difference;
use capstan_capi_core::{owners, paused};
use capstan_capi_types::controlplane::kubeadm_control_plane::{FINALIZER, condition as own};
use capstan_capi_types::core::machine::{condition as machine_condition, reason as machine_reason};
use capstan_capi_types::core::{Cluster, Machine, annotation, condition, reason};
use capstan_controller::{Decision, Effect, Look, ObjectRef, Wait};
use capstan_object::{ConditionStatus, Conditions, ObjectMeta, Time};
use serde_json::{Map, Value, json};

use super::health::Health;
use super::status::{self, Facts};
use super::workload::Workload;
use super::{
    ControlPlaneController, Member, Plane, Settings, adoption, deletion, desired, hooks, reasons_to_replace,
    scale, secrets, upkeep,
};

pub(super) type Looked = Look<ControlPlaneController>;
pub(super) type Decided = Decision<ControlPlaneController>;

/// What is in the way is looked at again after this time, should nothing wake us.
pub(super) const RETRY: Duration = Duration::from_secs(15);
/// A control plane that is not whole is looked at again after this time: nothing tells when a static pod changes.
const UNWELL: Duration = Duration::from_secs(20);
/// One that is whole, after this time.
const WELL: Duration = Duration::from_secs(600);

/// What is to be done. Depends on nothing but what was seen.
pub fn decide(settings: &Settings, look: &Looked) -> Decided {
    let mut decision = Decision::rest(look);
    status::say(&mut decision, look, condition::PAUSED, paused::verdict(look.paused.as_deref()));
    if look.paused.is_some() {
        return decision;
    }
    let Some(cluster) = &look.seen.cluster else {
        decision.wait(Wait::on("WaitingForOwner", "the cluster that owns this control plane"));
        return decision;
    };
    let mut turn =
        Turn { settings, look, cluster, decision, obstacles: Vec::new(), matching: true, deleting: None };
    if look.object.metadata.is_deleting() {
        deletion::delete(&mut turn);
    } else {
        turn.decision.add_finalizer(FINALIZER);
        turn.run();
    }
    turn.report();
    turn.decision
}

/// One decision while it is made.
pub(super) struct Turn<'a> {
    pub settings: &'a Settings,
    pub look: &'a Looked,
    pub cluster: &'a Arc<Cluster>,
    pub decision: Decided,
    /// What keeps machines from coming or going.
    pub obstacles: Vec<String>,
    /// Members of etcd and machines match.
    pub matching: bool,
    /// What is waited for while the control plane goes.
    pub deleting: Option<Verdict>,
}

impl Turn<'_> {
    /// The control plane as it is now: with what this decision has already said about it.
    pub fn plane(&self) -> Plane {
        let uid = &self.look.object.metadata.uid;
        let seen = &self.look.seen;
        let owned = seen
            .machines
            .iter()
            .filter(|seen| seen.machine.metadata.controller().is_some_and(|owner| owner.uid == *uid));
        let inside = seen.workload.inside();
        let (none, unseen) = (BTreeMap::new(), &[][..]);
        let (nodes, etcd) = inside.map_or((&none, unseen), |inside| (&inside.nodes, inside.etcd.members()));
        Plane {
            control_plane: Arc::new(self.decision.object.clone()),
            cluster: self.cluster.clone(),
            machines: owned.map(|machine| machine.member(nodes)).collect(),
            etcd: etcd.to_vec(),
            now: self.look.now,
        }
    }

    /// Something is to be carried out before anything else is decided.
    fn has_work(&self) -> bool {
        !self.decision.effects.is_empty()
    }

    pub fn wait(&mut self, reason: &str, what: impl Into<String>) {
        self.decision.wait(Wait::on(reason, what)).again_in(RETRY);
    }

    fn run(&mut self) {
        if let Some(claim) =
            self.look.seen.template.object().and_then(|found| owners::claim_template(found, self.cluster))
        {
            self.decision.then(claim);
        }
        if self.cluster.status.initialization.infrastructure_provisioned != Some(true) {
            self.unknown("Waiting for Cluster status.initialization.infrastructureProvisioned to be true");
            self.decision.wait(Wait::on("WaitingForInfrastructure", "the infrastructure of the cluster"));
            return;
        }
        scale::record_names(self);
        if !adoption::adopt(self) || self.has_work() || self.becomes_initialized() {
            return;
        }
        let certificates = secrets::certificates(self.settings, self.look, self.cluster, &mut self.decision);
        if !certificates || self.has_work() {
            return;
        }
        if !self.cluster.spec.control_plane_endpoint.is_valid() {
            self.unknown("Waiting for Cluster spec.controlPlaneEndpoint to be set");
            self.decision.wait(Wait::on("WaitingForEndpoint", "the endpoint of the cluster"));
            return;
        }
        let kubeconfig = secrets::kubeconfig(self.settings, self.look, self.cluster, &mut self.decision);
        if !kubeconfig || self.has_work() {
            return;
        }
        self.follow();
        if self.has_work() {
            return;
        }
        let plane = self.plane();
        self.judge(&plane);
        if self.has_work() {
            return;
        }
        if let Workload::Unreachable(why) = &self.look.seen.workload
            && plane.is_initialized()
        {
            // Nobody comes or goes unseen.
            self.obstacles.push(why.clone());
            return self.wait("WorkloadUnreachable", why.clone());
        }
        for step in [hooks::strangers, hooks::release, scale::keep_records, scale::remediate, scale::step] {
            step(self, &plane);
            if self.has_work() {
                return;
            }
        }
        if self.obstacles.is_empty() {
            upkeep::add_ons(self, &plane);
            self.date();
        }
    }

    /// Writes down when the certificates of machines expire: on their configurations, from where machines take it.
    fn date(&mut self) {
        let Some(inside) = self.look.seen.workload.inside() else { return };
        for seen in &self.look.seen.machines {
            let expiry = inside.expiries.get(&seen.machine.status.node_ref.name);
            if let (Some(config), Some(expiry)) = (&seen.config, expiry)
                && !config.metadata.annotations.contains_key(annotation::CERTIFICATES_EXPIRY)
            {
                let text = Time::new(*expiry).to_string();
                let change = json!({"metadata": {"annotations": {annotation::CERTIFICATES_EXPIRY: text}}});
                let target = ObjectRef::to(config.as_ref());
                self.decision.then(Effect::merge_guarded(target, &config.metadata, change));
            }
        }
    }

    /// The first API server takes requests: kubeadm has left its configuration there. Never taken back.
    fn becomes_initialized(&mut self) -> bool {
        let plane = self.plane();
        if plane.is_initialized() || plane.machines.is_empty() {
            return false;
        }
        // A first machine that goes would leave a cluster that nobody can join.
        let goes = |member: &Member| {
            member.machine.metadata.is_deleting()
                || capstan_capi_core::machines::is_to_be_remediated(&member.machine)
        };
        let lost = plane.machines.len() == 1 && plane.machines.iter().any(goes);
        let seen = self.look.seen.workload.inside().is_some_and(|inside| inside.kubeadm_config.is_some());
        if seen && !lost {
            self.decision.object.status.initialization.control_plane_initialized = Some(true);
            // What was seen of a cluster that had only just begun to answer is not judged.
            return true;
        }
        self.decision.wait(Wait::on("WaitingForFirstControlPlane", "the first API server to take requests"));
        self.decision.again_in(UNWELL);
        false
    }

    /// Neither etcd nor the components can be judged yet.
    fn unknown(&mut self, message: &str) {
        for kind in [own::ETCD_CLUSTER_HEALTHY, own::CONTROL_PLANE_COMPONENTS_HEALTHY] {
            let verdict = Verdict::new(ConditionStatus::Unknown, reason::INSPECTION_FAILED, message);
            status::say(&mut self.decision, self.look, kind, verdict);
        }
    }

    /// Keeps on living machines, and on what they are made of, what follows the control plane.
    fn follow(&mut self) {
        let control_plane = &self.look.object;
        let cluster = &self.cluster.metadata.name;
        let uid = &control_plane.metadata.uid;
        let to_machine = desired::propagated_to_machine(control_plane, cluster);
        let to_parts = desired::propagated(control_plane, cluster);
        for seen in &self.look.seen.machines {
            let machine = &seen.machine;
            if !machine.metadata.is_owned_by(uid) {
                continue;
            }
            let going = machine.metadata.is_deleting();
            let mut change = Map::new();
            if !going && let Some(metadata) = to_machine.change(&machine.metadata, &[]) {
                change.insert("metadata".to_owned(), metadata);
            }
            let mut followed = desired::followed(control_plane, &machine.spec);
            if going {
                // Of a machine that goes only what matters to its going is kept up to date.
                followed.readiness_gates = machine.spec.readiness_gates.clone();
            }
            // A struct of plain data always has a JSON form.
            let form = |spec| serde_json::to_value(spec).unwrap_or_else(|_| json!({}));
            if let Some(spec) = merge_difference(&form(&machine.spec), &form(&followed)) {
                change.insert("spec".to_owned(), spec);
            }
            if !change.is_empty() {
                let target = ObjectRef::to(machine.as_ref());
                let change = Value::Object(change);
                self.decision.then(Effect::merge_guarded(target, &machine.metadata, change));
            }
            if going {
                continue;
            }
            let config =
                seen.config.as_ref().map(|config| (ObjectRef::to(config.as_ref()), &config.metadata));
            let infrastructure =
                seen.infrastructure.object().map(|object| (object.reference(), &object.metadata));
            for (target, metadata) in [config, infrastructure].into_iter().flatten() {
                let metadata: &ObjectMeta = metadata;
                if let Some(change) = to_parts.change(metadata, &[]) {
                    let change = json!({"metadata": change});
                    self.decision.then(Effect::merge_guarded(target, metadata, change));
                }
            }
        }
    }

    /// Says of every machine how it fares, and of the control plane what follows from that.
    fn judge(&mut self, plane: &Plane) {
        let seen = &self.look.seen;
        let health = Health::of(plane, &seen.workload, &seen.health, self.settings.grace);
        self.matching = health.matching;
        for member in &plane.machines {
            let name = &member.machine.metadata.name;
            let current = up_to_date(plane, member);
            let verdicts = health.machines.get(name).map(Vec::as_slice).unwrap_or_default();
            let told = verdicts.iter().map(|(kind, verdict)| (*kind, Some(verdict)));
            let told = told.chain([(machine_condition::UP_TO_DATE, Some(&current))]);
            if let Some(effect) = tell_all(&member.machine, told, self.look.now) {
                self.decision.then(effect);
            }
        }
        for (kind, verdict) in [
            (own::ETCD_CLUSTER_HEALTHY, health.etcd),
            (own::CONTROL_PLANE_COMPONENTS_HEALTHY, health.components),
        ] {
            if let Some(verdict) = verdict {
                status::say(&mut self.decision, self.look, kind, verdict);
            }
        }
    }

    fn report(&mut self) {
        let plane = self.plane();
        let template = &self.look.seen.template;
        let kind = self.look.object.spec.machine_template.spec.infrastructure_ref.kind.clone();
        let facts = Facts {
            plane: &plane,
            matching: self.matching,
            obstacles: &self.obstacles,
            missing_template: matches!(template, Found::Missing).then_some(kind.as_str()),
            deleting: self.deleting.clone(),
        };
        status::report(&mut self.decision, self.look, &facts);
        if self.look.object.metadata.is_deleting() || plane.machines.is_empty() {
            return;
        }
        let conditions = &self.decision.object.status.conditions;
        let well = conditions.is_condition_true(own::CONTROL_PLANE_COMPONENTS_HEALTHY)
            && (!plane.manages_etcd() || conditions.is_condition_true(own::ETCD_CLUSTER_HEALTHY));
        self.decision.again_in(if well { WELL } else { UNWELL });
        if let Some(after) = self.look.object.spec.rollout.after
            && after.timestamp() > self.look.now
        {
            self.decision.again_at(self.look.now, after.timestamp());
        }
    }
}

/// Whether a machine is what is wanted now.
fn up_to_date(plane: &Plane, member: &Member) -> Verdict {
    let machine: &Machine = &member.machine;
    let reasons = reasons_to_replace(plane, member);
    let not = |reason: &str, message: String| Verdict::new(ConditionStatus::False, reason, message);
    if !reasons.is_empty() {
        let lines: Vec<String> = reasons.iter().map(|reason| format!("* {reason}")).collect();
        return not(reason::NOT_UP_TO_DATE, lines.join("\n"));
    }
    if is_updating_in_place(machine) {
        return not(machine_reason::UPDATING, "* In-place update in progress".to_owned());
    }
    let kubelet = machine.status.node_info.as_ref().map(|info| info.kubelet_version.as_str());
    if let Some(kubelet) = kubelet.filter(|version| !version.is_empty() && *version != machine.spec.version) {
        let wanted = &machine.spec.version;
        let message = format!("* Node.status.nodeInfo.kubeletVersion {kubelet}, {wanted} required");
        return not(machine_reason::UPDATING, message);
    }
    Verdict::new(ConditionStatus::True, reason::UP_TO_DATE, "")
}
