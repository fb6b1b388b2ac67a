use capstan_capi_types::core::{Cluster, Machine};
use std::sync::Arc;

use super::next_step::{Step, next_step};
use super::placement::{failure_domain_for_new_machine, next_machine_to_delete};
use crate::control_plane::fixture::{broken, control_plane, healthy, machine, plane, set};
use crate::control_plane::observed::ControlPlaneState;
use crate::testing::now;
use crate::testing::object;

fn up() -> Step {
    Step::ScaleUp { failure_domain: String::new() }
}

fn down(machine: &str) -> Step {
    Step::ScaleDown { machine: machine.to_owned() }
}

#[test]
fn a_healthy_control_plane_grows_and_shrinks_one_machine_at_a_time() {
    for (replicas, machines, step) in [
        (3, 0, Step::Initialize { failure_domain: String::new() }),
        (3, 1, up()),
        (3, 2, up()),
        (3, 3, Step::Rest),
        (1, 3, down("m1")),
        (3, 5, down("m1")),
        (0, 0, Step::Rest),
    ] {
        assert_eq!(next_step(&healthy(replicas, machines)), step, "{machines} of {replicas}");
    }
}

#[test]
fn nothing_is_added_or_removed_while_blocked() {
    let waits = |plane: &ControlPlaneState| match next_step(plane) {
        Step::Wait(blocked) => blocked.reasons.join("; "),
        other => panic!("{other:?}"),
    };
    let mut starting = machine(2);
    starting.status.node_ref.name.clear();
    assert_eq!(waits(&plane(control_plane(3, ""), vec![machine(1), starting])), "machine m2 has no node yet");

    let mut sick = machine(2);
    set(&mut sick, "SchedulerPodHealthy", "Unknown");
    assert_eq!(
        waits(&plane(control_plane(3, ""), vec![machine(1), sick])),
        "machine m2: SchedulerPodHealthy is Unknown ()"
    );

    let mut going = machine(2);
    going.metadata.deletion_timestamp = Some(now().into());
    assert_eq!(waits(&plane(control_plane(3, ""), vec![machine(1), going])), "machine m2 is being deleted");

    let mut uncertified = control_plane(3, "");
    uncertified.status.conditions.clear();
    assert_eq!(waits(&plane(uncertified, vec![machine(1)])), "the cluster's certificates are missing");
}

#[test]
fn a_new_version_rolls_out_with_surge_by_default() {
    let old = |n| {
        let mut machine = machine(n);
        machine.spec.version = "v1.33.0".to_owned();
        machine
    };
    let surge = |surge: &str, machines| {
        let rest =
            format!("  rollout: {{strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: {surge}}}}}}}");
        plane(control_plane(3, &rest), machines)
    };
    assert_eq!(next_step(&surge("1", vec![old(1), old(2), old(3)])), up());
    assert_eq!(next_step(&surge("1", vec![old(1), old(2), old(3), machine(4)])), down("m1"));
    assert_eq!(next_step(&surge("0", vec![old(1), old(2), old(3)])), down("m1"));
    assert_eq!(next_step(&surge("0", vec![old(2), old(3)])), up());
    assert_eq!(next_step(&surge("1", vec![machine(4), machine(5), machine(6)])), Step::Rest);
}

#[test]
fn a_machine_of_an_abandoned_version_that_never_joined_is_dropped_first() {
    let stranded = |n| {
        let mut machine = machine(n);
        machine.spec.version = "v1.35.0".to_owned();
        machine.status = Default::default();
        machine
    };
    // Going back to v1.34.1, also while replicas grow: it would block the new machines for ever.
    for (replicas, machines) in [
        (1, vec![machine(1), stranded(2)]),
        (3, vec![machine(1), stranded(2)]),
        (5, vec![machine(1), stranded(2)]),
    ] {
        assert_eq!(next_step(&plane(control_plane(replicas, ""), machines)), down("m2"), "{replicas}");
    }
    let mut joined = stranded(2);
    joined.status.node_ref.name = "n2".to_owned();
    assert!(matches!(next_step(&plane(control_plane(3, ""), vec![machine(1), joined])), Step::Wait(_)));

    let mut young = control_plane(1, "");
    young.status.initialization = Default::default();
    assert_eq!(next_step(&plane(young.clone(), vec![stranded(1)])), down("m1"), "nothing runs yet");
    let mut booting = stranded(1);
    booting.status.initialization.infrastructure_provisioned = Some(true);
    assert!(matches!(next_step(&plane(young, vec![booting])), Step::Wait(_)), "it may become the first one");
}

#[test]
fn deletion_prefers_marked_then_outdated_then_the_fullest_domain() {
    let marked = |n| {
        let mut machine = machine(n);
        machine.metadata.annotations.insert("cluster.x-k8s.io/delete-machine".to_owned(), String::new());
        machine
    };
    let in_domain = |n, domain: &str| {
        let mut machine = machine(n);
        machine.spec.failure_domain = domain.to_owned();
        machine
    };
    let pick = |machines: Vec<Machine>, outdated: &[&str], domains: &str| {
        let mut plane = plane(control_plane(3, ""), machines);
        let cluster: Cluster = object(&format!("status: {{failureDomains: {domains}}}"));
        plane.cluster = Arc::new(cluster);
        let outdated: Vec<String> = outdated.iter().map(|&name| name.to_owned()).collect();
        next_machine_to_delete(&plane, &outdated).map(|member| member.machine.metadata.name.clone())
    };
    let picked = |name: &str| Some(name.to_owned());
    assert_eq!(pick(vec![machine(1), marked(2), marked(3)], &["m3"], "[]"), picked("m3"));
    assert_eq!(pick(vec![machine(1), marked(2), machine(3)], &["m1"], "[]"), picked("m2"));
    assert_eq!(pick(vec![machine(1), broken(2), machine(3)], &["m1", "m2"], "[]"), picked("m2"));
    assert_eq!(pick(vec![machine(1), machine(2), machine(3)], &["m2", "m3"], "[]"), picked("m2"));
    assert_eq!(pick(vec![machine(1), machine(2)], &[], "[]"), picked("m1"));
    let domains = "[{name: a, controlPlane: true}, {name: b, controlPlane: true}, {name: w}]";
    let spread = vec![in_domain(1, "a"), in_domain(2, "b"), in_domain(3, "b")];
    assert_eq!(pick(spread, &[], domains), picked("m2"));
    let moved = vec![in_domain(1, "a"), in_domain(2, "b"), in_domain(3, "w")];
    assert_eq!(pick(moved, &[], domains), picked("m3"), "its domain is none for control planes");
}

#[test]
fn a_new_machine_gets_the_domain_with_the_fewest_up_to_date_ones() {
    let mut plane = healthy(3, 3);
    plane.cluster = Arc::new(object(
        "status: {failureDomains: [{name: a, controlPlane: true}, {name: b, controlPlane: true}]}",
    ));
    for (n, domain) in [(0, "a"), (1, "b"), (2, "b")] {
        Arc::make_mut(&mut plane.machines[n].machine).spec.failure_domain = domain.to_owned();
    }
    assert_eq!(failure_domain_for_new_machine(&plane, &[]), "a");
    let outdated = ["m2".to_owned(), "m3".to_owned()];
    assert_eq!(failure_domain_for_new_machine(&plane, &outdated), "b", "outdated ones will go");
}

#[test]
fn a_replacement_is_added_beside_unhealthy_machines_if_quorum_allows() {
    let mut control_plane = control_plane(5, "");
    control_plane
        .metadata
        .annotations
        .insert("controlplane.cluster.x-k8s.io/remediation-in-progress".to_owned(), "{}".to_owned());
    // Five members lost one, another is unhealthy, and the new one is unproven: three of five are healthy.
    let four = plane(control_plane.clone(), vec![machine(1), machine(2), machine(3), broken(4)]);
    assert_eq!(next_step(&four), up());
    let worse = plane(control_plane, vec![machine(1), machine(2), broken(3), broken(4)]);
    assert!(matches!(next_step(&worse), Step::Wait(_)));
}

#[test]
fn remediation_precedes_rollout_and_scaling() {
    let three = plane(control_plane(5, ""), vec![machine(1), broken(2), machine(3)]);
    assert!(matches!(next_step(&three), Step::Remediate(_)));
}
