//! Tables of lifecycle hooks: which are asked when, what they hold back, what is due later.

use std::collections::BTreeMap;

use capstan_capi_runtime::HookAnswer;
use capstan_capi_types::core::Cluster;
use capstan_capi_types::runtime::Hook;
use capstan_capi_types::runtime::pending::PENDING_HOOKS;
use serde_json::{Value, json};

use super::*;
use crate::ask::Ask;
use crate::testing::{applied, blueprint, class, cluster};

const OLD: &str = "v1.35.0";
const NEW: &str = "v1.36.0";

/// The desired state if only these hooks block, and the hooks that were asked, with their requests.
fn run(of: &Cluster, current: &Current, blocking: &[Hook]) -> (Result<Desired, Stop>, Vec<(Hook, Value)>) {
    let blueprint = blueprint(class(json!({})), of);
    let (mut answers, mut asked) = (Answers::default(), Vec::new());
    loop {
        let stop = match desired_of(&blueprint, current, &answers) {
            Err(Stop::Ask(ask)) => ask,
            result => return (result, asked),
        };
        let Ask::Lifecycle { hook, request } = *stop else { panic!("no patches here") };
        let seconds = if blocking.contains(&hook) { 30 } else { 0 };
        answers.hooks.insert(hook, HookAnswer { retry_after_seconds: seconds, message: "later".to_owned() });
        asked.push((hook, request));
    }
}

fn desired_of(blueprint: &Blueprint, current: &Current, answers: &Answers) -> Result<Desired, Stop> {
    compute(blueprint, current, answers)
}

fn names(asked: &[(Hook, Value)]) -> Vec<&'static str> {
    asked.iter().map(|(hook, _)| hook.name()).collect()
}

fn pending(desired: &Desired) -> String {
    let mut annotations = BTreeMap::new();
    desired.hooks.pending.write(&mut annotations);
    annotations.remove(PENDING_HOOKS).unwrap_or_default()
}

fn with_pending(mut of: Cluster, hooks: &str) -> Cluster {
    of.metadata.annotations.insert(PENDING_HOOKS.to_owned(), hooks.to_owned());
    of
}

/// A cluster that runs the old version, and whose topology wants another.
fn running(wanted: &str, hooks: &str) -> (Cluster, Current) {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let (desired, _) = run(&of, &fresh, &[]);
    let mut current = applied(&of, &desired.expect("a desired state"), &[OLD]);
    current.cluster.spec.topology.version = wanted.to_owned();
    current.cluster = with_pending(current.cluster, hooks);
    let of = with_pending(cluster(json!({"spec": {"topology": {"version": wanted}}})), hooks);
    (of, current)
}

#[test]
fn creation_waits_for_its_hook_and_is_not_asked_about_twice() {
    let of = cluster(json!({}));
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let (blocked, asked) = run(&of, &fresh, &[Hook::BeforeClusterCreate]);
    assert!(matches!(blocked, Err(Stop::CreationBlocked(answer)) if answer.message == "later"));
    assert_eq!(asked[0].1["cluster"]["metadata"]["name"], "one");
    let (desired, _) = run(&of, &fresh, &[]);
    assert_eq!(pending(&desired.expect("created")), "AfterControlPlaneInitialized");

    let of = with_pending(of, "AfterControlPlaneInitialized");
    let fresh = Current { cluster: of.clone(), ..Current::default() };
    let (_, asked) = run(&of, &fresh, &[Hook::BeforeClusterCreate]);
    assert_eq!(names(&asked), [""; 0]);
}

#[test]
fn the_hook_after_initialization_is_called_once_the_condition_is_true() {
    let (of, mut current) = running(OLD, "AfterControlPlaneInitialized");
    let (desired, asked) = run(&of, &current, &[]);
    assert_eq!(
        (names(&asked), pending(&desired.expect("desired")).as_str()),
        (vec![], "AfterControlPlaneInitialized")
    );
    let condition = json!({
        "type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    current.cluster.status.conditions = vec![serde_json::from_value(condition).expect("a condition")];
    let (desired, asked) = run(&of, &current, &[Hook::AfterControlPlaneInitialized]);
    assert_eq!(names(&asked), ["AfterControlPlaneInitialized"]);
    assert_eq!(pending(&desired.expect("it does not block")), "");
}

#[test]
fn an_upgrade_starts_when_both_hooks_let_it() {
    let (of, current) = running(NEW, "");
    let version = |desired: &Desired| desired.control_plane.body["spec"]["version"].clone();
    let (desired, asked) = run(&of, &current, &[Hook::BeforeClusterUpgrade]);
    let held = desired.expect("desired");
    assert_eq!(names(&asked), ["BeforeClusterUpgrade"]);
    assert_eq!((version(&held), pending(&held).as_str()), (json!(OLD), ""));
    assert!(held.upgrade.control_plane_pending && held.hooks.retry_after_seconds() == Some(30));
    assert_eq!(
        held.hooks.message("upgrade").as_deref(),
        Some("Following hooks are blocking upgrade: BeforeClusterUpgrade: later")
    );

    let (desired, asked) = run(&of, &current, &[Hook::BeforeControlPlaneUpgrade]);
    let held = desired.expect("desired");
    assert_eq!(names(&asked), ["BeforeClusterUpgrade", "BeforeControlPlaneUpgrade"]);
    assert_eq!((version(&held), pending(&held).as_str()), (json!(OLD), "AfterClusterUpgrade"));

    let (of, current) = running(NEW, "AfterClusterUpgrade");
    let (desired, asked) = run(&of, &current, &[]);
    let begun = desired.expect("desired");
    assert_eq!(names(&asked), ["BeforeControlPlaneUpgrade"], "the first hook has passed");
    let request = &asked[0].1;
    assert_eq!(
        (&request["fromKubernetesVersion"], &request["toKubernetesVersion"], &request["workersUpgrades"]),
        (&json!(OLD), &json!(NEW), &json!([{"version": NEW}]))
    );
    assert_eq!(version(&begun), NEW);
    assert_eq!(
        pending(&begun),
        "AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade"
    );
}

#[test]
fn an_annotation_holds_an_upgrade_without_a_server() {
    let (of, mut current) = running(NEW, "");
    let name = "before-upgrade.hook.cluster.cluster.x-k8s.io/backup".to_owned();
    current.cluster.metadata.annotations.insert(name, String::new());
    let (desired, asked) = run(&of, &current, &[]);
    assert_eq!(names(&asked), [""; 0]);
    assert_eq!(
        desired.expect("desired").hooks.message("upgrade").as_deref(),
        Some(
            "Following hooks are blocking upgrade: BeforeClusterUpgrade: annotation \
             before-upgrade.hook.cluster.cluster.x-k8s.io/backup is set"
        )
    );
}

#[test]
fn workers_follow_when_hooks_let_them_and_the_end_is_reported() {
    let due = "AfterClusterUpgrade,AfterControlPlaneUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade";
    let (of, current) = running(NEW, "AfterClusterUpgrade");
    let (begun, _) = run(&of, &current, &[]);
    // The control plane has the version; workers do not.
    let mut current = applied(&of, &begun.expect("begun"), &[NEW]);
    current.cluster = with_pending(of.clone(), due);
    let workers = |desired: &Desired| desired.deployments["md"].object.spec.template.spec.version.clone();
    for (blocking, asked_for, left) in [
        (Hook::AfterControlPlaneUpgrade, vec!["AfterControlPlaneUpgrade"], due),
        (
            Hook::BeforeWorkersUpgrade,
            vec!["AfterControlPlaneUpgrade", "BeforeWorkersUpgrade"],
            "AfterClusterUpgrade,AfterWorkersUpgrade,BeforeWorkersUpgrade",
        ),
    ] {
        let (desired, asked) = run(&of, &current, &[blocking]);
        let held = desired.expect("desired");
        assert_eq!((names(&asked), pending(&held).as_str()), (asked_for, left));
        assert_eq!(workers(&held), OLD, "{blocking}");
        assert!(held.upgrade.workers_held);
    }
    let (desired, asked) = run(&of, &current, &[]);
    let following = desired.expect("desired");
    assert_eq!(asked[1].1["fromKubernetesVersion"], OLD);
    assert_eq!(
        (workers(&following).as_str(), pending(&following).as_str()),
        (NEW, "AfterClusterUpgrade,AfterWorkersUpgrade")
    );

    let mut current = applied(&of, &following, &[NEW]);
    current.cluster = with_pending(of.clone(), "AfterClusterUpgrade,AfterWorkersUpgrade");
    let (desired, asked) = run(&of, &current, &[]);
    assert_eq!(names(&asked), ["AfterWorkersUpgrade", "AfterClusterUpgrade"]);
    assert_eq!(pending(&desired.expect("done")), "");
    let (desired, asked) = run(&of, &current, &[Hook::AfterWorkersUpgrade]);
    assert_eq!(names(&asked), ["AfterWorkersUpgrade"]);
    assert_eq!(pending(&desired.expect("held")), "AfterClusterUpgrade,AfterWorkersUpgrade");
}
