//! Steps, as sentences: what was observed, and what comes next.

use std::sync::Arc;

use super::step::{Situation, Step, next};
use super::*;

fn manifests(tag: &str) -> Arc<Manifests> {
    let workload = |kind: &str, name: &str| {
        format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: kube-system}}\nspec: {{template: {{spec: {{containers: [{{image: \"r/{name}:{tag}\"}}]}}}}}}\n---\n"
        )
    };
    let text = workload("DaemonSet", AGENT) + &workload("Deployment", OPERATOR);
    Arc::new(Manifests::parse(&text).expect("manifests"))
}

fn rollout(name: &str, tag: &str, ready: i64) -> Option<Rollout> {
    Some(Rollout { image: format!("r/{name}:{tag}"), observed: true, desired: 2, ready })
}

/// Version 1.16 runs, without a check of another one.
fn running() -> Running {
    Running {
        agent: rollout(AGENT, "v1.16.2", 2),
        operator: rollout(OPERATOR, "v1.16.2", 2),
        ..Running::default()
    }
}

fn seen(tag: &str, running: Running) -> CniSeen {
    CniSeen { manifests: Some(Ok(manifests(tag))), running: Some(Ok(running)) }
}

/// Something else than wanted is installed.
fn outdated(seen: &CniSeen) -> Situation<'_> {
    Situation { installed: true, recorded: false, applied: true, marked: false, has_preflight: true, seen }
}

#[test]
fn what_was_never_installed_is_installed_once_the_control_plane_is_available() {
    let nothing = CniSeen::default();
    let first = |seen| Situation { installed: false, applied: false, ..outdated(seen) };
    assert_eq!(next(&first(&nothing)), Step::WaitForControlPlane);
    let rendered = CniSeen { manifests: Some(Ok(manifests("v1.16.2"))), running: None };
    assert!(matches!(next(&first(&rendered)), Step::Write(_)));
    let failed = CniSeen { manifests: Some(Err("no chart".to_owned())), running: None };
    assert_eq!(next(&first(&failed)), Step::Fail("no chart".to_owned()));
}

#[test]
fn what_is_installed_as_it_is_wanted_stays() {
    let nothing = CniSeen::default();
    let done = Situation { recorded: true, ..outdated(&nothing) };
    assert_eq!(next(&done), Step::Done);
    assert_eq!(next(&Situation { marked: true, ..done }), Step::EndPreflight);
    // What was checked is applied first.
    assert_eq!(next(&Situation { marked: true, applied: false, ..done }), Step::Done);
}

#[test]
fn another_setting_of_the_same_version_is_written_at_once() {
    let same = seen("v1.16.2", running());
    assert!(matches!(next(&outdated(&same)), Step::Write(_)));
    // As is what nothing checks, and what does not run any more.
    let other = seen("v1.17.0", running());
    assert!(matches!(next(&Situation { has_preflight: false, ..outdated(&other) }), Step::Write(_)));
    let removed = seen("v1.17.0", Running { agent: None, ..running() });
    assert!(matches!(next(&outdated(&removed)), Step::Write(_)));
}

#[test]
fn another_version_is_checked_on_every_node_before_it_is_written() {
    let unready = Running { agent: rollout(AGENT, "v1.16.2", 1), ..running() };
    let started = Running {
        preflight: rollout(PREFLIGHT, "v1.17.0", 1),
        preflight_check: rollout(PREFLIGHT, "v1.17.0", 1),
        ..running()
    };
    let pulled = Running { preflight: rollout(PREFLIGHT, "v1.17.0", 2), ..started.clone() };
    let checked = Running { preflight_check: rollout(PREFLIGHT, "v1.17.0", 2), ..pulled.clone() };
    let mut stale = checked.clone();
    if let Some(agent) = &mut stale.agent {
        agent.observed = false;
    }
    let wait = |what: &str| Some(Step::Wait(what.to_owned()));
    for (running, marked, expected) in [
        (unready, false, wait("DaemonSet cilium is not ready: 1 of 2")),
        (running(), false, Some(Step::Mark)),
        (running(), true, Some(Step::StartPreflight)),
        (started, true, wait("DaemonSet cilium-pre-flight-check is not ready: 1 of 2")),
        (pulled, true, wait("Deployment cilium-pre-flight-check is not ready: 1 of 2")),
        (stale, true, wait("DaemonSet cilium is not ready: 2 of 2")),
        (checked, true, None),
    ] {
        let seen = seen("v1.17.0", running);
        let step = next(&Situation { marked, ..outdated(&seen) });
        match expected {
            Some(expected) => assert_eq!(step, expected),
            None => assert!(matches!(step, Step::Write(_)), "{step:?}"),
        }
    }
}

#[test]
fn a_workload_cluster_that_does_not_answer_is_waited_for() {
    let silent =
        CniSeen { manifests: Some(Ok(manifests("v1.17.0"))), running: Some(Err("no answer".to_owned())) };
    assert_eq!(next(&outdated(&silent)), Step::Wait("no answer".to_owned()));
}

#[test]
fn the_version_that_runs_is_in_the_tag_of_its_image() {
    for (image, version) in [
        ("quay.io/cilium/cilium:v1.17.4@sha256:00", Some("1.17")),
        ("registry.example:5000/cilium:v1.15.13-0-eksa.2", Some("1.15")),
        ("registry.example:5000/cilium", None),
        ("quay.io/cilium/cilium:latest", None),
    ] {
        let agent = Some(Rollout { image: image.to_owned(), ..Rollout::default() });
        let running = Running { agent, ..Running::default() };
        assert_eq!(running.minor().as_deref(), version, "{image}");
    }
}
