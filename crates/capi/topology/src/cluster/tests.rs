//! Tables of decisions: what is applied, in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use capstan_capi_runtime::HookAnswer;
use capstan_capi_types::core::Cluster;
use capstan_capi_types::runtime::Hook;
use capstan_controller::{Controller, Decision, Look, ObjectRef};
use jiff::Timestamp;
use serde_json::json;

use super::observed::{DeletionHook, Difference, Observed, Topology};
use super::*;
use crate::current::Current;
use crate::desired::{Desired, rotation};
use crate::testing::{applied, blueprint, class, cluster, computed};

fn desired_of(of: &Cluster, current: &Current) -> Desired {
    computed(&blueprint(class(json!({})), of), current).expect("a desired state")
}

fn decide(topology: Topology) -> Decision<ClusterTopologies> {
    let cluster = Arc::new(topology.current.cluster.clone());
    let seen = Observed::Topology(Box::new(topology));
    let look = Look::new(cluster, seen, Timestamp::UNIX_EPOCH);
    ClusterTopologies::default().decide(&look)
}

fn summaries(decision: &Decision<ClusterTopologies>) -> Vec<String> {
    let summary = |effect: &capstan_controller::Effect<NoCall>| {
        let text = effect.summary();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ")
    };
    decision.effects.iter().map(|planned| summary(&planned.effect)).collect()
}

fn topology(current: Current, desired: Desired) -> Topology {
    Topology {
        current,
        desired,
        differences: BTreeMap::new(),
        orphans: Vec::new(),
        taken: BTreeSet::new(),
        extended: false,
        former_kinds: BTreeSet::new(),
    }
}

#[test]
fn a_new_cluster_gets_its_infrastructure_and_control_plane_and_then_workers() {
    let of = cluster(json!({}));
    let mut current = Current { cluster: of.clone(), ..Current::default() };
    let desired = desired_of(&of, &current);
    let first = decide(topology(current.clone(), desired.clone()));
    assert_eq!(
        summaries(&first),
        ["apply infraclusters.infra", "apply machinetemplates.infra", "apply controlplanes.cp"]
    );
    assert!(!first.object.spec.infrastructure_ref.is_defined(), "not before they exist");

    let all = applied(&of, &desired, &[]);
    current.infrastructure = all.infrastructure;
    current.control_plane = all.control_plane;
    current.control_plane_machines = all.control_plane_machines;
    let second = decide(topology(current, desired));
    assert_eq!(
        summaries(&second),
        [
            "apply machinetemplates.infra",
            "apply boottemplates.boot",
            "apply machinedeployments.cluster.x-k8s.io"
        ]
    );
    assert_eq!(second.object.spec.control_plane_ref.kind, "ControlPlane");
    assert!(second.object.metadata.labels.contains_key(label::TOPOLOGY_OWNED));
}

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    let desired = desired_of(&of, &current);
    let decision = decide(topology(current, desired));
    assert_eq!(summaries(&decision), [""; 0]);
    let condition = &decision.object.status.conditions[0];
    assert_eq!((&*condition.kind, &*condition.reason), ("TopologyReconciled", "ReconcileSucceeded"));
}

#[test]
fn a_template_that_differs_is_replaced_before_it_is_used() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    let mut desired = desired_of(&of, &current);
    let deployment = desired.deployments.get_mut("md").expect("md");
    rotation::rotate_infrastructure(deployment, &of, "md");
    let target = ObjectRef::to(&deployment.object);
    let mut all = topology(current, desired);
    all.differences.insert(target, Difference::Spec);
    let decision = decide(all);
    assert_eq!(
        summaries(&decision),
        ["apply machinetemplates.infra", "apply machinedeployments.cluster.x-k8s.io"]
    );
}

#[test]
fn workers_that_left_the_topology_are_deleted() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    let less = cluster(json!({"spec": {"topology": {"workers": {"machineDeployments": []}}}}));
    let desired = desired_of(&less, &current);
    assert_eq!(
        summaries(&decide(topology(current, desired))),
        ["delete machinedeployments.cluster.x-k8s.io"]
    );
}

#[test]
fn workers_whose_name_is_taken_are_not_created() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let mut current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    current.deployments.clear();
    let desired = desired_of(&of, &current);
    let target = ObjectRef::to(&desired.deployments["md"].object);
    let mut all = topology(current, desired);
    all.taken.insert(target.clone());
    let decision = decide(all);
    assert_eq!(summaries(&decision), [""; 0]);
    let condition = &decision.object.status.conditions[0];
    assert_eq!(condition.reason, "ReconcileFailed");
    assert_eq!(
        condition.message,
        format!(
            "failed to create MachineDeployment {}: another object with this name exists that is not topology owned, delete it",
            target.key
        )
    );
    assert_eq!((decision.waits.len(), decision.look_again), (1, Some(Duration::from_secs(60))));
}

#[test]
fn failures_and_upgrades_are_reported() {
    let mut of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let mut current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    of.spec.topology.version = "v1.36.0".to_owned();
    current.cluster.spec.topology.version = "v1.36.0".to_owned();
    let desired = desired_of(&of, &current);
    let name = desired.deployments["md"].object.metadata.name.clone();
    let decision = decide(topology(current, desired));
    let condition = &decision.object.status.conditions[0];
    assert_eq!(condition.reason, "ClusterUpgrading");
    assert_eq!(
        condition.message,
        format!(
            "Cluster is upgrading to v1.36.0\n  * ControlPlane upgrading to version v1.36.0\n  * MachineDeployment {name} pending upgrade to version v1.36.0"
        )
    );
    assert_eq!(
        decision.object.metadata.annotations["topology.internal.cluster.x-k8s.io/upgrade-step"],
        "v1.36.0"
    );

    let failed = Look::new(Arc::new(of), Observed::Failed("no template".to_owned()), Timestamp::UNIX_EPOCH);
    let decision = ClusterTopologies::default().decide(&failed);
    let condition = &decision.object.status.conditions[0];
    assert_eq!((&*condition.reason, &*condition.message), ("ReconcileFailed", "no template"));
}

#[test]
fn the_step_of_an_upgrade_is_not_recorded_before_the_hook_lets_it_begin() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let mut current = applied(&of, &desired_of(&of, &fresh), &["v1.35.0"]);
    current.cluster.spec.topology.version = "v1.36.0".to_owned();
    let wanted = current.cluster.clone();
    let mut desired = desired_of(&wanted, &current);
    let step = |current: &Current, desired: &Desired| {
        let decision = decide(topology(current.clone(), desired.clone()));
        decision.object.metadata.annotations.get("topology.internal.cluster.x-k8s.io/upgrade-step").cloned()
    };
    assert_eq!(step(&current, &desired).as_deref(), Some("v1.36.0"), "the upgrade has begun");
    desired.hooks.pending.remove(Hook::AfterClusterUpgrade);
    let answer = HookAnswer { retry_after_seconds: 30, message: "later".to_owned() };
    desired.hooks.blocking.insert(Hook::BeforeClusterUpgrade, answer);
    assert_eq!(step(&current, &desired), None, "the hook blocks");
    desired.hooks.pending.add(Hook::AfterClusterUpgrade);
    assert_eq!(step(&current, &desired).as_deref(), Some("v1.36.0"), "only the next upgrade is blocked");
}

fn decided(of: Cluster, seen: Observed) -> Decision<ClusterTopologies> {
    ClusterTopologies::default().decide(&Look::new(Arc::new(of), seen, Timestamp::UNIX_EPOCH))
}

#[test]
fn hooks_that_block_are_reported_and_asked_again() {
    let answer = || HookAnswer { retry_after_seconds: 30, message: "later".to_owned() };
    let mut deleted = cluster(json!({}));
    deleted.metadata.deletion_timestamp = Some(Timestamp::UNIX_EPOCH.into());
    for (of, seen, reason, message) in [
        (
            cluster(json!({})),
            Observed::CreationBlocked(answer()),
            "ClusterCreating",
            "Following hooks are blocking Cluster topology creation: BeforeClusterCreate: later",
        ),
        (
            deleted.clone(),
            Observed::Deleting(DeletionHook::Blocks(answer())),
            "Deleting",
            "Cluster is deleting. Following hooks are blocking delete: BeforeClusterDelete: later",
        ),
        (
            cluster(json!({})),
            Observed::ExtensionFailed { why: "refused".to_owned(), again: Duration::from_secs(30) },
            "ReconcileFailed",
            "refused",
        ),
    ] {
        let decision = decided(of, seen);
        let condition = &decision.object.status.conditions[0];
        assert_eq!((&*condition.reason, &*condition.message), (reason, message));
        assert_eq!(decision.look_again, Some(Duration::from_secs(30)));
        assert_eq!((decision.effects.len(), decision.waits.len()), (0, 1));
        assert!(decision.object.metadata.annotations.is_empty(), "nothing goes on");
    }
    let decision = decided(deleted, Observed::Deleting(DeletionHook::Passed));
    assert!(decision.object.metadata.annotations.contains_key("runtime.cluster.x-k8s.io/ok-to-delete"));
}

#[test]
fn a_condition_stays_while_the_class_is_about_to_be_reconciled() {
    let reported = json!({"status": {"conditions": [{
        "type": "TopologyReconciled", "status": "True", "reason": "ReconcileSucceeded", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let patience = Some(Duration::from_secs(7));
    for (of, patience, reason) in [
        (cluster(json!({})), patience, "ClusterClassNotReconciled"),
        (cluster(reported.clone()), patience, "ReconcileSucceeded"),
        (cluster(reported), None, "ClusterClassNotReconciled"),
    ] {
        let decision = decided(of, Observed::ClassNotReconciled { patience });
        assert_eq!(decision.object.status.conditions[0].reason, reason);
        assert_eq!((decision.look_again, decision.waits.len()), (patience, 1));
    }
}
