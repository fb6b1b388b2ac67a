//! Decides about a topology.

use std::time::Duration;

use capstan_capi_core::contract::External;
use capstan_capi_types::core::cluster::reason as own;
use capstan_capi_types::core::{MachineHealthCheck, StatusUpgradePlanVersion, annotation, label};
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::OK_TO_DELETE;
use capstan_controller::{Decision, Effect, Look, NoCall, Note, ObjectRef, Patch, Wait};
use capstan_object::{Object, ObjectMeta};
use serde_json::Value;

use super::observed::{DeletionHook, Observed, Topology};
use super::{ClusterTopologies, former_kinds, status};
use crate::desired::{DesiredDeployment, Intent, reference};

type Decisions = Decision<ClusterTopologies>;

/// How often extensions are asked while nothing changes: what they patch may depend on more than the request.
const ASKED_AGAIN: Duration = Duration::from_secs(600);

/// How often it is checked whether the name of new workers is still taken.
const NAMES_CHECKED: Duration = Duration::from_secs(60);

pub(super) fn decide(look: &Look<ClusterTopologies>) -> Decisions {
    let mut decision = Decision::rest(look);
    match &look.seen {
        Observed::NotManaged => {}
        Observed::NoClass(why) | Observed::Failed(why) => {
            decision.wait(Wait::on("TopologyNotReconciled", why.clone()));
        }
        Observed::ClassNotReconciled { patience } => {
            decision.wait(Wait::on("ClusterClassNotReconciled", "the ClusterClass to be reconciled"));
            if let Some(patience) = patience {
                decision.again_in(*patience);
            }
        }
        Observed::ExtensionFailed { why, again } => {
            decision.wait(Wait::on("ExtensionFailed", why.clone())).again_in(*again);
        }
        Observed::CreationBlocked(answer) => {
            blocked(
                &mut decision,
                &format!("hook {} before the cluster is created", Hook::BeforeClusterCreate),
            );
            decision.again_in(seconds(answer.retry_after_seconds));
        }
        Observed::Deleting(DeletionHook::Blocks(answer)) => {
            blocked(
                &mut decision,
                &format!("hook {} before the cluster is deleted", Hook::BeforeClusterDelete),
            );
            decision.again_in(seconds(answer.retry_after_seconds));
        }
        Observed::Deleting(DeletionHook::Passed) => {
            let annotations = &mut decision.object.metadata.annotations;
            annotations.entry(OK_TO_DELETE.to_owned()).or_default();
        }
        Observed::Topology(topology) => {
            reconcile(topology, &mut decision);
            extensions(topology, &mut decision);
        }
    }
    status::report(look, &mut decision);
    decision
}

fn seconds(count: i32) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}

fn blocked(decision: &mut Decisions, what: &str) {
    decision.wait(Wait::on(own::LIFECYCLE_HOOK_BLOCKING, what));
}

/// Hooks that are due later, and when extensions are asked again.
fn extensions(topology: &Topology, decision: &mut Decisions) {
    let hooks = &topology.desired.hooks;
    hooks.pending.write(&mut decision.object.metadata.annotations);
    if let Some(after) = hooks.retry_after_seconds() {
        let names: Vec<&str> = hooks.blocking.keys().map(|hook| hook.name()).collect();
        blocked(decision, &format!("hooks {} before the upgrade continues", names.join(", ")));
        decision.again_in(seconds(after));
    }
    if topology.extended {
        decision.again_in(ASKED_AGAIN);
    }
}

fn reconcile(topology: &Topology, decision: &mut Decisions) {
    let (current, desired) = (&topology.current, &topology.desired);
    label_cluster(topology, decision);
    if !current.referenced && !created(topology, decision) {
        return;
    }
    if current.referenced {
        infrastructure(topology, decision);
        control_plane(topology, decision);
    } else {
        // Together with what comes next: the cluster is written before effects are carried out.
        decision.object.spec.infrastructure_ref = reference(&desired.infrastructure);
        decision.object.spec.control_plane_ref = reference(&desired.control_plane);
    }
    deployments(topology, decision);
    pools(topology, decision);
    if !topology.taken.is_empty() {
        // Nothing of the topology changes when the others go.
        let names: Vec<String> = topology.taken.iter().map(ToString::to_string).collect();
        let what = format!("{} to be deleted, whose names workers need", names.join(", "));
        decision.wait(Wait::on("NameTaken", what)).again_in(NAMES_CHECKED);
    }
    for orphan in &topology.orphans {
        let message = format!("Deleted {} {:?}, which nothing uses", orphan.kind.kind, orphan.metadata.name);
        let effect = Effect::delete_seen(orphan.reference(), &orphan.metadata);
        decision.best_effort_noting(effect, Note::normal("TopologyDelete", "Delete", message));
    }
}

/// Labels of the cluster, and the step of an upgrade for those who create machines.
fn label_cluster(topology: &Topology, decision: &mut Decisions) {
    let meta = &mut decision.object.metadata;
    meta.labels.insert(label::CLUSTER_NAME.to_owned(), meta.name.clone());
    meta.labels.insert(label::TOPOLOGY_OWNED.to_owned(), String::new());
    let upgrade = &topology.desired.upgrade;
    let step = topology.desired.control_plane.body["spec"]["version"].as_str().unwrap_or_default();
    let hooks = &topology.desired.hooks;
    let planned = !upgrade.control_plane_plan.is_empty() || !upgrade.workers_plan.is_empty();
    // Before the hook lets the upgrade begin, there is no step of it that machines could be created for.
    let held = hooks.blocking.contains_key(&Hook::BeforeClusterUpgrade);
    if hooks.pending.contains(Hook::AfterClusterUpgrade) || (planned && !held) {
        meta.annotations.insert(annotation::TOPOLOGY_UPGRADE_STEP.to_owned(), step.to_owned());
    } else {
        meta.annotations.remove(annotation::TOPOLOGY_UPGRADE_STEP);
    }
    former_kinds::write(&topology.former_kinds, &mut meta.annotations);
    let versions = |plan: &[String]| {
        plan.iter().map(|version| StatusUpgradePlanVersion { version: version.clone() }).collect::<Vec<_>>()
    };
    let status = &mut decision.object.status;
    for (replicas, plan) in [
        (&mut status.control_plane, &upgrade.control_plane_plan),
        (&mut status.workers, &upgrade.workers_plan),
    ] {
        if replicas.is_some() || !plan.is_empty() {
            replicas.get_or_insert_default().upgrade_plan = versions(plan);
        }
    }
}

/// Creates what the cluster refers to; the answer is whether all of it is there.
fn created(topology: &Topology, decision: &mut Decisions) -> bool {
    let (current, desired) = (&topology.current, &topology.desired);
    let mut missing = Vec::new();
    if current.infrastructure.is_none() {
        missing.push(&desired.infrastructure);
    }
    if current.control_plane_machines.is_none() {
        missing.extend(&desired.control_plane_machines);
    }
    if current.control_plane.is_none() {
        missing.push(&desired.control_plane);
    }
    for intent in &missing {
        apply(decision, intent, None, "Created");
    }
    missing.is_empty()
}

fn infrastructure(topology: &Topology, decision: &mut Decisions) {
    let intent = &topology.desired.infrastructure;
    if topology.differences.contains_key(&intent.reference()) {
        apply(decision, intent, topology.current.infrastructure.as_ref(), "Updated");
    }
}

fn control_plane(topology: &Topology, decision: &mut Decisions) {
    let (current, desired) = (&topology.current, &topology.desired);
    let name = desired.control_plane.name();
    health_check(topology, desired.control_plane_health_check.as_ref(), name, decision);
    if desired.upgrade.control_plane_pending {
        return;
    }
    if let Some(machines) = &desired.control_plane_machines {
        template(topology, machines, current.control_plane_machines.as_ref(), decision);
    }
    if topology.differences.contains_key(&desired.control_plane.reference()) {
        apply(decision, &desired.control_plane, current.control_plane.as_ref(), "Updated");
    }
}

/// Creates a template that is not there yet, or changes labels and annotations of one that is.
fn template(topology: &Topology, wanted: &Intent, running: Option<&External>, decision: &mut Decisions) {
    let same = running.filter(|running| running.metadata.name == wanted.name());
    if same.is_none() {
        apply(decision, wanted, None, "Created");
    } else if topology.differences.contains_key(&wanted.reference()) {
        apply(decision, wanted, same, "Updated");
    }
}

fn deployments(topology: &Topology, decision: &mut Decisions) {
    let (current, desired) = (&topology.current, &topology.desired);
    for (name, deployment) in &desired.deployments {
        let Some(running) = current.deployments.get(name) else {
            let waits = desired.upgrade.deployments.pending_create.contains(name);
            if !waits && !topology.taken.contains(&ObjectRef::to(&deployment.object)) {
                create_deployment(topology, deployment, decision);
            }
            continue;
        };
        let meta = &running.object.metadata;
        health_check(topology, deployment.health_check.as_ref(), &meta.name, decision);
        if meta.is_deleting() || desired.upgrade.deployments.pending.contains(&meta.name) {
            continue;
        }
        template(topology, &deployment.infrastructure, running.infrastructure.as_ref(), decision);
        template(topology, &deployment.bootstrap, running.bootstrap.as_ref(), decision);
        if topology.differences.contains_key(&ObjectRef::to(&deployment.object)) {
            apply_typed(decision, &deployment.object, Some(meta), "Updated");
        }
    }
    for (name, running) in &current.deployments {
        if desired.deployments.contains_key(name) {
            continue;
        }
        let meta = &running.object.metadata;
        health_check(topology, None, &meta.name, decision);
        if !meta.is_deleting() {
            let message = format!("Deleted MachineDeployment {:?}", meta.name);
            let note = Note::normal("TopologyDelete", "Delete", message);
            decision.then_noting(Effect::delete(&*running.object), note);
        }
    }
}

fn pools(topology: &Topology, decision: &mut Decisions) {
    let (current, desired) = (&topology.current, &topology.desired);
    for (name, pool) in &desired.pools {
        let Some(running) = current.pools.get(name) else {
            let waits = desired.upgrade.pools.pending_create.contains(name);
            if !waits && !topology.taken.contains(&ObjectRef::to(&pool.object)) {
                apply(decision, &pool.infrastructure, None, "Created");
                apply(decision, &pool.bootstrap, None, "Created");
                apply_typed(decision, &pool.object, None, "Created");
            }
            continue;
        };
        let meta = &running.object.metadata;
        if meta.is_deleting() || desired.upgrade.pools.pending.contains(&meta.name) {
            continue;
        }
        for (intent, found) in
            [(&pool.infrastructure, &running.infrastructure), (&pool.bootstrap, &running.bootstrap)]
        {
            if topology.differences.contains_key(&intent.reference()) {
                apply(decision, intent, found.as_ref(), "Updated");
            }
        }
        if topology.differences.contains_key(&ObjectRef::to(&pool.object)) {
            apply_typed(decision, &pool.object, Some(meta), "Updated");
        }
    }
    for (name, running) in &current.pools {
        let meta = &running.object.metadata;
        if desired.pools.contains_key(name) || meta.is_deleting() {
            continue;
        }
        let message = format!("Deleted MachinePool {:?}", meta.name);
        let note = Note::normal("TopologyDelete", "Delete", message);
        decision.then_noting(Effect::delete(&*running.object), note);
    }
}

fn create_deployment(topology: &Topology, deployment: &DesiredDeployment, decision: &mut Decisions) {
    apply(decision, &deployment.infrastructure, None, "Created");
    apply(decision, &deployment.bootstrap, None, "Created");
    apply_typed(decision, &deployment.object, None, "Created");
    let name = &deployment.object.metadata.name;
    health_check(topology, deployment.health_check.as_ref(), name, decision);
}

fn health_check(
    topology: &Topology,
    wanted: Option<&MachineHealthCheck>,
    name: &str,
    decision: &mut Decisions,
) {
    match (wanted, topology.current.health_checks.get(name)) {
        (Some(wanted), None) => apply_typed(decision, wanted, None, "Created"),
        (Some(wanted), Some(running)) if topology.differences.contains_key(&ObjectRef::to(wanted)) => {
            apply_typed(decision, wanted, Some(&running.metadata), "Updated");
        }
        (None, Some(running)) if !running.metadata.is_deleting() => {
            let message = format!("Deleted MachineHealthCheck {name:?}");
            let note = Note::normal("TopologyDelete", "Delete", message);
            decision.then_noting(Effect::delete(&**running), note);
        }
        _ => {}
    }
}

/// Applies an object: the very one that was seen, or a new one.
fn apply(decision: &mut Decisions, intent: &Intent, seen: Option<&External>, done: &str) {
    let seen = seen.map(|seen| &seen.metadata);
    push(decision, intent.reference(), intent.body.clone(), seen, done);
}

fn apply_typed<T: Object>(decision: &mut Decisions, object: &T, seen: Option<&ObjectMeta>, done: &str) {
    match capstan_object::to_value(object) {
        Ok(body) => push(decision, ObjectRef::to(object), body, seen, done),
        Err(error) => {
            let what = format!("apply {}", ObjectRef::to(object));
            decision.then(Effect::Impossible { what, why: error.to_string() });
        }
    }
}

fn push(decision: &mut Decisions, target: ObjectRef, mut body: Value, seen: Option<&ObjectMeta>, done: &str) {
    if let Some(seen) = seen {
        body["metadata"]["uid"] = seen.uid.as_str().into();
    }
    let reason = if done == "Created" { "TopologyCreate" } else { "TopologyUpdate" };
    let message = format!("{done} {} {:?}", target.kind.kind, target.key.name);
    let note = Note::normal(reason, "Apply", message);
    let effect: Effect<NoCall> =
        Effect::Patch { target, subresource: None, patch: Patch::Apply { body, force: true } };
    decision.then_noting(effect, note);
}
