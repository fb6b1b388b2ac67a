//! The phases of a cluster. Each reads what was observed and adds to the decision.

use std::sync::Arc;
use std::time::Duration;

use capstan_capi_types::admission::Admission;
use capstan_capi_types::core::condition as shared;
use capstan_controller::{Code, Decision, Effect, KindName, Look, Note, ObjectRef, Patch, Wait};
use capstan_object::{Conditions as _, Key, Object, ObjectMeta, OwnerReference};
use serde_json::Value;

use super::cni::{self, Pending};
use super::{Clusters, CniCall, Settings, compare, registry, rotation};
use crate::code;
use crate::generate::{Generated, GeneratedGroup, Manifests, generate};
use crate::names::{SYSTEM_NAMESPACE, annotation};

/// How long an answer that something is wrong counts.
const RETRY: Duration = Duration::from_secs(30);

/// Whether the next phase follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Stop,
}

/// Input and decision of the phases.
pub(super) struct Round<'a> {
    pub settings: &'a Settings,
    pub look: &'a Look<Clusters>,
    pub decision: Decision<Clusters>,
    /// The objects, once all validations have passed.
    pub generated: Option<Generated>,
    pub cni: Pending,
}

impl Round<'_> {
    /// Stops with a failure that somebody has to correct.
    pub(super) fn fail(&mut self, reason: &str, code: Code, message: String) -> Flow {
        let status = &mut self.decision.object.status;
        status.failure_reason = Some(reason.to_owned());
        status.failure_message = Some(message.clone());
        self.decision.wait(Wait::on(reason, message).code(code));
        Flow::Stop
    }

    pub(super) fn stop(&mut self, reason: &str, what: &str) -> Flow {
        self.decision.wait(Wait::on(reason, what));
        Flow::Stop
    }
}

/// Everything that the cluster refers to exists, and its name is free.
pub(super) fn dependencies(round: &mut Round<'_>) -> Flow {
    let cluster = &round.look.object;
    let seen = &round.look.seen;
    let namespace = &cluster.metadata.namespace;
    let mut missing = Vec::new();
    if seen.datacenter.is_none() {
        let name = &cluster.spec.datacenter_ref.name;
        missing.push(format!("CloudStackDatacenterConfig {namespace}/{name}"));
    }
    for name in cluster.machine_configs() {
        if !seen.machine_configs.contains_key(name) {
            missing.push(format!("CloudStackMachineConfig {namespace}/{name}"));
        }
    }
    if !missing.is_empty() {
        let what = format!("dependent cluster objects don't exist: {}", missing.join(", "));
        return round.fail("MissingDependentObjects", code::MISSING, what);
    }
    let own = cluster.metadata.key();
    if let Some(other) = seen.current.cluster.as_ref().filter(|it| super::owner_of(&***it) != Some(own)) {
        let what = format!(
            "Cluster {} of Cluster API has another owner: rename this cluster, or delete that one",
            other.key()
        );
        return round.fail("ClusterInvalid", code::INVALID, what);
    }
    if cluster.is_self_managed() {
        let what =
            "self-managed clusters are not supported: set managementCluster.name to another name".to_owned();
        return round.fail("ManagementClusterRefInvalid", code::INVALID, what);
    }
    Flow::Next
}

pub(super) fn validate_control_plane_ip(round: &mut Round<'_>) -> Flow {
    let Some(holder) = &round.look.seen.address_holder else { return Flow::Next };
    let endpoint = round.look.object.spec.control_plane_configuration.endpoint.as_ref();
    let host = endpoint.map_or("", |endpoint| endpoint.host.as_str());
    let what = format!(
        "cluster controlPlaneConfiguration.Endpoint.Host <{host}> is already in use, control plane IP must be unique: {holder} has it"
    );
    round.decision.again_in(RETRY);
    round.fail("UnavailableControlPlaneIP", code::ADDRESS_IN_USE, what)
}

pub(super) fn validate_datacenter(round: &mut Round<'_>) -> Flow {
    let Some(datacenter) = &round.look.seen.datacenter else { return Flow::Stop };
    if datacenter.is_valid() {
        return Flow::Next;
    }
    let current = datacenter.status.observed_generation == datacenter.metadata.generation;
    match datacenter.status.failure_message.as_ref().filter(|_| current) {
        Some(message) => {
            let what = format!("Invalid {} CloudStackDatacenterConfig: {message}", datacenter.metadata.name);
            round.fail("DatacenterConfigInvalid", code::DATACENTER, what)
        }
        None => round.stop("WaitingForDatacenter", "the CloudStackDatacenterConfig to be validated"),
    }
}

pub(super) fn validate_machine_configs(round: &mut Round<'_>) -> Flow {
    if let Some(error) = &round.look.seen.machines {
        let what = error.text();
        round.decision.again_in(RETRY);
        // A cloud that is down is not a manifest that is wrong.
        if error.reason == "CloudUnreachable" {
            round.decision.wait(Wait::on(error.reason, what).code(error.code));
            return match is_reconciled(round.look) {
                true => prepare(round),
                false => Flow::Stop,
            };
        }
        return round.fail("MachineConfigInvalid", code::MACHINE_CONFIG, what);
    }
    prepare(round)
}

/// Whether the cluster was reconciled as its manifests are now: CloudStack had what they name then.
fn is_reconciled(look: &Look<Clusters>) -> bool {
    let status = &look.object.status;
    look.seen.current.cluster.is_some()
        && status.failure_reason.is_none()
        && status.reconciled_generation == look.object.metadata.generation
        && status.children_reconciled_generation == look.seen.children_generation()
}

/// Generates the objects.
fn prepare(round: &mut Round<'_>) -> Flow {
    let seen = &round.look.seen;
    let cluster = &round.look.object;
    let Some(datacenter) = &seen.datacenter else { return Flow::Stop };
    if !cni::is_left(cluster, &seen.current)
        && let Err(what) = round.settings.cni.plan(cluster)
    {
        return round.fail("ClusterInvalid", code::INVALID, what);
    }
    if registry::mirror(cluster).is_some()
        && let Err(what) = registry::login(seen.registry.as_deref())
    {
        return round.fail("ClusterInvalid", code::REGISTRY, what);
    }
    let manifests = Manifests {
        cluster,
        datacenter,
        machine_configs: &seen.machine_configs,
        releases: &round.settings.releases,
    };
    match generate(&manifests) {
        Ok(mut generated) => {
            rotation::rename(&mut generated, &seen.current);
            round.generated = Some(generated);
            Flow::Next
        }
        Err(why) => round.fail("ClusterInvalid", code::INVALID, why),
    }
}

/// All validations have passed: what they reported is over.
pub(super) fn clean_up_status(round: &mut Round<'_>) -> Flow {
    let status = &mut round.decision.object.status;
    status.failure_reason = None;
    status.failure_message = None;
    Flow::Next
}

pub(super) fn control_plane(round: &mut Round<'_>) -> Flow {
    let Some(generated) = round.generated.take() else { return Flow::Stop };
    let current = &round.look.seen.current;
    let effects = &mut Applies { decision: &mut round.decision, owner: None };
    effects.apply(generated.cluster.clone(), current.cluster.as_ref());
    let Some(cluster) = &current.cluster else {
        // Everything else is owned by it, so that nothing is left if it goes.
        round.generated = Some(generated);
        return Flow::Stop;
    };
    if cluster.metadata.is_deleting() {
        return round.stop("WaitingForDeletion", "the Cluster of Cluster API to be deleted");
    }
    // The same reference as the controller of Clusters sets: the two would not agree on another.
    let owner = OwnerReference::to(&**cluster);
    registry::write(round, &owner);
    let effects = &mut Applies { decision: &mut round.decision, owner: Some(owner) };
    effects.apply(generated.infrastructure.clone(), current.infrastructure.as_ref());
    let machines = &generated.control_plane_machines;
    effects.apply(machines.clone(), current.machine_templates.get(&machines.metadata.name));
    effects.apply(generated.control_plane.clone(), current.control_plane.as_ref());
    let check = &generated.control_plane_health_check;
    effects.apply(check.clone(), current.health_checks.get(&check.metadata.name));
    round.generated = Some(generated);
    Flow::Next
}

/// The API answers and every control plane machine has the desired version.
pub(super) fn check_control_plane_ready(round: &mut Round<'_>) -> Flow {
    let Some(generated) = &round.generated else { return Flow::Stop };
    let Some(plane) = &round.look.seen.current.control_plane else {
        return round.stop("WaitingForControlPlane", "the KubeadmControlPlane to exist");
    };
    if !round.decision.effects.is_empty() || plane.status.observed_generation != plane.metadata.generation {
        return round.stop("WaitingForControlPlane", "the KubeadmControlPlane to be reconciled");
    }
    if !plane.status.conditions.is_condition_true(shared::AVAILABLE) {
        return round.stop("WaitingForControlPlane", "the control plane to be available");
    }
    if plane.status.version != generated.control_plane.spec.version {
        return round.stop("WaitingForControlPlane", "the control plane to reach the desired version");
    }
    Flow::Next
}

pub(super) fn workers(round: &mut Round<'_>) -> Flow {
    let Some(generated) = round.generated.take() else { return Flow::Stop };
    let current = &round.look.seen.current;
    let Some(owner) = &current.cluster else { return Flow::Stop };
    let effects = &mut Applies { decision: &mut round.decision, owner: Some(OwnerReference::to(&**owner)) };
    for GeneratedGroup { deployment, bootstrap, machines, health_check } in &generated.groups {
        effects.apply(machines.clone(), current.machine_templates.get(&machines.metadata.name));
        effects.apply(bootstrap.clone(), current.bootstrap_templates.get(&bootstrap.metadata.name));
        let there = current.deployments.get(&deployment.metadata.name);
        match deployment.spec.replicas {
            Some(_) => effects.apply(deployment.clone(), there),
            // Admission would fill in what the autoscaler sets.
            None => effects.apply_without(deployment.clone(), there, "replicas"),
        }
        effects.apply(health_check.clone(), current.health_checks.get(&health_check.metadata.name));
    }
    let wanted = |name: &str| generated.groups.iter().any(|group| group.deployment.metadata.name == name);
    for (name, deployment) in current.deployments.iter().filter(|(name, _)| !wanted(name)) {
        if !deployment.metadata.is_deleting() {
            let note =
                Note::normal("WorkerGroupRemoved", "Delete", format!("Deleted MachineDeployment {name:?}"));
            round.decision.then_noting(Effect::delete(&**deployment), note);
        }
    }
    let own = &generated.control_plane_health_check.metadata.name;
    let wanted = |name: &String| {
        name == own || generated.groups.iter().any(|it| it.health_check.metadata.name == *name)
    };
    for (_, check) in current.health_checks.iter().filter(|(name, _)| !wanted(name)) {
        if !check.metadata.is_deleting() {
            round.decision.then(Effect::delete(&**check));
        }
    }
    round.generated = Some(generated);
    Flow::Next
}

/// Adds effects that apply objects which differ.
pub(super) struct Applies<'a> {
    pub decision: &'a mut Decision<Clusters>,
    pub owner: Option<OwnerReference>,
}

impl Applies<'_> {
    pub(super) fn apply<T: Admission>(&mut self, wanted: T, current: Option<&Arc<T>>) {
        self.apply_without(wanted, current, "");
    }

    /// Applies all but a field of the spec, which is left to others.
    fn apply_without<T: Admission>(&mut self, mut wanted: T, current: Option<&Arc<T>>, left: &str) {
        wanted.metadata_mut().owner_references.extend(self.owner.clone());
        // What admission adds is compared, too. If it fails, applying reports why.
        let _ = Admission::default(&mut wanted, None);
        let what = ObjectRef::to(&wanted);
        let values = capstan_object::to_value(&wanted)
            .and_then(|wanted| Ok((wanted, current.map(|it| capstan_object::to_value(&**it)).transpose()?)));
        let (mut body, there) = match values {
            Ok(values) => values,
            Err(error) => {
                let effect = Effect::Impossible { what: format!("apply {what}"), why: error.to_string() };
                self.decision.then(effect);
                return;
            }
        };
        if let Some(fields) = body.as_object_mut() {
            fields.remove("status");
        }
        if let Some(spec) = body["spec"].as_object_mut() {
            spec.remove(left);
        }
        let digest = compare::digest(&body);
        body["metadata"]["annotations"][annotation::APPLIED] = digest.into();
        if there.as_ref().is_none_or(|there| compare::differs(&body, there)) {
            self.push(T::KIND.kind, T::KIND.into(), body, current.map(|it| it.metadata()));
        }
    }

    pub(super) fn push(&mut self, kind: &str, name: KindName, mut body: Value, seen: Option<&ObjectMeta>) {
        if let Some(seen) = seen {
            body["metadata"]["uid"] = seen.uid.as_str().into();
        }
        let object = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let done = if seen.is_some() { "Updated" } else { "Created" };
        let note = Note::normal(done, "Apply", format!("{done} {kind} {object:?}"));
        let target = ObjectRef::new(name, Key::new(SYSTEM_NAMESPACE, object));
        let effect: Effect<CniCall> =
            Effect::Patch { target, subresource: None, patch: Patch::Apply { body, force: true } };
        self.decision.then_noting(effect, note);
    }
}
