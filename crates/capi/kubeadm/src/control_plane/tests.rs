use std::sync::Arc;

use capstan_capi_types::controlplane::KubeadmControlPlane;
use capstan_capi_types::core::{Cluster, Machine};
use jiff::Timestamp;

use super::*;
use crate::testing::object;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a moment")
}

fn control_plane(replicas: i32, rest: &str) -> KubeadmControlPlane {
    object(&format!(
        "
metadata: {{name: blue, namespace: fleet, uid: kcp-uid}}
spec:
  replicas: {replicas}
  version: v1.34.1
  machineTemplate: {{spec: {{infrastructureRef: {{apiGroup: infrastructure.cluster.x-k8s.io, kind: SimMachineTemplate, name: cp}}}}}}
{rest}
status:
  initialization: {{controlPlaneInitialized: true}}
  conditions: [{{type: CertificatesAvailable, status: 'True', reason: Available, lastTransitionTime: '2026-01-01T00:00:00Z'}}]
"
    ))
}

/// A healthy machine, `m<n>` on node `n<n>`, the lower the older.
fn machine(n: u32) -> Machine {
    let conditions: Vec<String> = [
        "APIServerPodHealthy",
        "ControllerManagerPodHealthy",
        "SchedulerPodHealthy",
        "EtcdPodHealthy",
        "EtcdMemberHealthy",
        "NodeKubeadmLabelsAndTaintsSet",
    ]
    .iter()
    .map(|kind| condition(kind, "True"))
    .collect();
    object(&format!(
        "
metadata: {{name: m{n}, namespace: fleet, creationTimestamp: '2026-11-0{n}T00:00:00Z'}}
spec: {{clusterName: blue, version: v1.34.1, infrastructureRef: {{kind: SimMachine}}}}
status: {{nodeRef: {{name: n{n}}}, conditions: [{}]}}
",
        conditions.join(", ")
    ))
}

fn condition(kind: &str, status: &str) -> String {
    format!("{{type: {kind}, status: '{status}', reason: x, lastTransitionTime: '2026-01-01T00:00:00Z'}}")
}

fn set(machine: &mut Machine, kind: &str, status: &str) {
    use capstan_object::Conditions;
    machine.status.conditions.set_condition(object(&condition(kind, status)));
}

fn broken(n: u32) -> Machine {
    let mut machine = machine(n);
    for kind in ["HealthCheckSucceeded", "OwnerRemediated", "EtcdMemberHealthy", "APIServerPodHealthy"] {
        set(&mut machine, kind, "False");
    }
    machine
}

fn plane(control_plane: KubeadmControlPlane, machines: Vec<Machine>) -> Plane {
    let member = |machine: &Machine| EtcdMember {
        name: machine.status.node_ref.name.clone(),
        ..EtcdMember::default()
    };
    let etcd = machines.iter().filter(|m| !m.status.node_ref.name.is_empty()).map(member).collect();
    let machines = machines
        .into_iter()
        .map(|machine| {
            let node = machine.status.node_ref.name.clone();
            Member { machine: Arc::new(machine), config: None, origin: None, node }
        })
        .collect();
    Plane {
        control_plane: Arc::new(control_plane),
        cluster: Arc::new(Cluster::default()),
        machines,
        etcd,
        now: now(),
    }
}

fn healthy(replicas: i32, machines: u32) -> Plane {
    plane(control_plane(replicas, ""), (1..=machines).map(machine).collect())
}

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
fn nothing_is_added_or_removed_while_something_is_in_the_way() {
    let waits = |plane: &Plane| match next_step(plane) {
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
fn a_new_version_rolls_out_by_adding_first_unless_told_otherwise() {
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
fn etcd_never_loses_its_quorum_by_a_step_of_ours() {
    let sick = |n| {
        let mut machine = machine(n);
        set(&mut machine, "EtcdMemberHealthy", "False");
        machine
    };
    let remove = |machine: &'static str, member: &'static str| Change::Remove { machine, member };
    // Members and which of them are sick; adding one more; removing the first.
    for (members, sick_ones, add, remove_first) in [
        (1, vec![], true, false),
        (2, vec![], true, true),
        (3, vec![], true, true),
        (3, vec![1], false, true),
        (3, vec![2], false, false),
        (5, vec![1], true, true),
        (5, vec![1, 2], false, true),
        (5, vec![2, 3], false, false),
        (7, vec![1, 2, 3], false, true),
    ] {
        let machines =
            (1..=members).map(|n| if sick_ones.contains(&n) { sick(n) } else { machine(n) }).collect();
        let plane = plane(control_plane(3, ""), machines);
        assert_eq!(etcd_survives(&plane, Change::Add), add, "add to {members}, sick {sick_ones:?}");
        let survives = etcd_survives(&plane, remove("m1", "n1"));
        assert_eq!(survives, remove_first, "remove from {members}, sick {sick_ones:?}");
    }
    let mut learning = healthy(3, 3);
    learning.etcd[2].learner = true;
    assert!(!etcd_survives(&learning, Change::Add));
    learning.etcd[2] = EtcdMember::default();
    assert!(!etcd_survives(&learning, remove("m1", "n1")), "a member that starts is waited for");
}

#[test]
fn the_machine_that_goes_is_marked_then_outdated_then_in_the_fullest_domain() {
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
fn a_new_machine_goes_where_the_fewest_current_ones_are() {
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
fn machines_are_replaced_for_what_cannot_be_changed_in_place() {
    let reasons = |rest: &str, change: &dyn Fn(&mut Member)| {
        let mut plane = plane(control_plane(3, rest), vec![machine(1)]);
        change(&mut plane.machines[0]);
        let member = plane.machines[0].clone();
        reasons_to_replace(&plane, &member)
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(reasons("", &|_| ()), none);
    assert_eq!(
        reasons("", &|m| Arc::make_mut(&mut m.machine).spec.version = "v1.33.0".to_owned()),
        ["Version v1.33.0, v1.34.1 required"]
    );
    let after = "  rollout: {after: '2026-11-10T00:00:00Z'}";
    assert_eq!(reasons(after, &|_| ()), ["KubeadmControlPlane spec.rollout.after expired"]);
    assert_eq!(reasons("  rollout: {after: '2026-12-10T00:00:00Z'}", &|_| ()), none, "not yet");
    assert_eq!(reasons("  rollout: {after: '2026-10-10T00:00:00Z'}", &|_| ()), none, "made after it");
    let before = "  rollout: {before: {certificatesExpiryDays: 21}}";
    let expires = |at: &'static str| {
        move |m: &mut Member| {
            Arc::make_mut(&mut m.machine).status.certificates_expiry_date = Some(object(at));
        }
    };
    assert_eq!(reasons(before, &expires("'2026-12-01T00:00:00Z'")), ["Certificates will expire soon"]);
    assert_eq!(reasons(before, &expires("'2027-06-01T00:00:00Z'")), none);
    let origin = |name: &str| {
        let name = name.to_owned();
        move |m: &mut Member| {
            let group_kind = "SimMachineTemplate.infrastructure.cluster.x-k8s.io".to_owned();
            m.origin = Some(Origin { name: name.clone(), group_kind });
        }
    };
    assert_eq!(reasons("", &origin("cp")), none);
    assert_eq!(reasons("", &origin("cp-old")), ["SimMachine is not up-to-date"]);
}

#[test]
fn a_configuration_is_compared_as_the_machine_was_made() {
    let rest = "  kubeadmConfigSpec:
    clusterConfiguration: {apiServer: {extraArgs: [{name: v, value: '2'}]}}
    initConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}}
    joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}}";
    let outdated = |config: &str| {
        let mut plane = plane(control_plane(3, rest), vec![machine(1)]);
        plane.machines[0].config = Some(object(config));
        let member = plane.machines[0].clone();
        !reasons_to_replace(&plane, &member).is_empty()
    };
    let cluster = "clusterConfiguration: {featureGates: {ControlPlaneKubeletLocalMode: true}, controlPlaneEndpoint: 'x:1', dns: {imageTag: v1}, apiServer: {extraArgs: [{name: v, value: '2'}], extraEnvs: []}}";
    let node = "nodeRegistration: {kubeletExtraArgs: [{name: a, value: b}]}";
    let joined = format!(
        "{{{cluster}, joinConfiguration: {{{node}, controlPlane: {{}}, discovery: {{bootstrapToken: {{token: t}}}}}}}}"
    );
    let first = format!("{{{cluster}, initConfiguration: {{{node}}}}}");
    assert!(!outdated(&joined), "what was filled in while joining is no difference");
    assert!(!outdated(&first), "the first machine was told the same in other words");
    assert!(outdated(&joined.replace("value: '2'", "value: '4'")));
    assert!(outdated(&first.replace("value: b", "value: c")));
}

#[test]
fn a_broken_machine_is_replaced_if_the_rest_survives() {
    let three = plane(control_plane(3, ""), vec![machine(1), broken(2), machine(3)]);
    let Remediation::Delete { machine: worst, record } = remediate(&three) else {
        panic!("{:?}", remediate(&three))
    };
    assert_eq!((worst.as_str(), record.retry_count), ("m2", 0));
    assert!(matches!(next_step(&three), Step::Remediate(_)));

    let held = |plane: &Plane| match remediate(plane) {
        Remediation::Held { message, .. } => message,
        other => panic!("{other:?}"),
    };
    let one = plane(control_plane(1, ""), vec![broken(1)]);
    assert_eq!(held(&one), "the only machine is not replaced");
    let two_broken = plane(control_plane(3, ""), vec![machine(1), broken(2), broken(3)]);
    assert_eq!(held(&two_broken), "without this machine the control plane or etcd's quorum would be lost");
    let mut starting = machine(3);
    starting.status.node_ref.name.clear();
    let busy = plane(control_plane(3, ""), vec![machine(1), broken(2), starting]);
    assert_eq!(held(&busy), "another machine is still being provisioned");
    let five = plane(control_plane(5, ""), vec![machine(1), broken(2), broken(3), machine(4), machine(5)]);
    assert!(matches!(remediate(&five), Remediation::Delete { .. }), "five machines stand two failures");
}

#[test]
fn a_replacement_of_a_replacement_is_a_retry() {
    let with = |settings: &str, minutes_ago: i64, count: i32| {
        let mut machine2 = broken(2);
        let at = now() - jiff::SignedDuration::from_mins(minutes_ago);
        machine2.metadata.annotations.insert(
            "controlplane.cluster.x-k8s.io/remediation-for".to_owned(),
            serde_json::json!({"machine": "m0", "timestamp": at.to_string(), "retryCount": count})
                .to_string(),
        );
        let rest = format!("  remediation: {settings}");
        remediate(&plane(control_plane(3, &rest), vec![machine(1), machine2, machine(3)]))
    };
    let count = |remediation| match remediation {
        Remediation::Delete { record, .. } => Ok(record.retry_count),
        Remediation::Held { message, .. } => Err(message),
        Remediation::NotNeeded => panic!("needed"),
    };
    assert_eq!(count(with("{}", 30, 2)), Ok(3));
    assert_eq!(count(with("{}", 61, 2)), Ok(0), "it was healthy long enough");
    assert_eq!(count(with("{minHealthyPeriodSeconds: 600}", 30, 2)), Ok(0));
    assert_eq!(
        count(with("{retryPeriodSeconds: 3000}", 30, 0)),
        Err("the replacement failed less than 3000 s ago (retryPeriodSeconds)".to_owned())
    );
    assert_eq!(
        count(with("{maxRetry: 2}", 30, 2)),
        Err("the replacement failed 2 times (maxRetry)".to_owned())
    );
    assert_eq!(count(with("{maxRetry: 2}", 30, 1)), Ok(2));
}

#[test]
fn a_replacement_may_come_while_others_are_broken_if_quorum_allows() {
    let mut control_plane = control_plane(5, "");
    control_plane
        .metadata
        .annotations
        .insert("controlplane.cluster.x-k8s.io/remediation-in-progress".to_owned(), "{}".to_owned());
    // Five lost one and another is sick: four members, one sick, one more unproven: three of five are well.
    let four = plane(control_plane.clone(), vec![machine(1), machine(2), machine(3), broken(4)]);
    assert_eq!(next_step(&four), up());
    let worse = plane(control_plane, vec![machine(1), machine(2), broken(3), broken(4)]);
    assert!(matches!(next_step(&worse), Step::Wait(_)));
}
