//! Health conditions.

use super::*;

#[test]
fn a_silent_cluster_is_taken_as_it_was_for_a_while() {
    let mut world = World::running(1, "");
    world.silent = Some("cluster fleet/blue does not answer: 3 probes in a row failed".to_owned());
    world.health.last_success = Some(world.now);
    world.pass(60);
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.condition("EtcdClusterHealthy").0, "True");
    assert_eq!(waits(&world), ["WorkloadUnreachable"]);
    world.pass(600);
    world.settle();
    let (status, reason, message) = world.condition("ControlPlaneComponentsHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ConnectionDown"));
    assert!(message.starts_with("Last successful probe at 2026-11-15T"), "{message}");
    let machine = world.machine_of("n1");
    assert_eq!(world.machine_condition(&machine, "APIServerPodHealthy").0, "Unknown");
    assert_eq!(world.settle(), NOTHING);
    world.silent = None;
    world.settle();
    assert_eq!(world.condition("Available").0, "True");
}

#[test]
fn static_pods_say_how_a_machine_fares() {
    for (pod, expected) in [
        ("{phase: Running, conditions: [{type: Ready, status: 'True'}]}", ("True", "")),
        ("{phase: Pending}", ("False", "Waiting to be scheduled")),
        (
            "{phase: Pending, conditions: [{type: PodScheduled, status: 'True'}]}",
            ("False", "Running init containers"),
        ),
        ("{phase: Running}", ("False", "Waiting for startup or readiness probes")),
        (
            "{phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}",
            ("False", "CrashLoopBackOff"),
        ),
        ("{phase: Running, containerStatuses: [{state: {terminated: {reason: Error}}}]}", ("False", "Error")),
        ("{phase: Failed}", ("False", "All the containers have been terminated")),
        ("{phase: Unknown}", ("Unknown", "Pod is reporting Unknown status")),
    ] {
        let mut world = World::running(1, "");
        let pods = &mut world.inside.as_mut().expect("inside").pods;
        pods.insert("kube-scheduler-n1".to_owned(), Ok(object(&format!("status: {pod}"))));
        world.settle();
        let found = world.machine_condition(&world.machine_of("n1"), "SchedulerPodHealthy");
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{pod}");
    }
    let mut world = World::running(1, "");
    world.inside.as_mut().expect("inside").pods.remove("etcd-n1");
    world.settle();
    let name = world.machine_of("n1");
    assert_eq!(
        world.condition("ControlPlaneComponentsHealthy").2,
        format!("* Machine {name}:\n  * EtcdPodHealthy: Pod does not exist")
    );
    assert_eq!(world.decided().look_again, Some(std::time::Duration::from_secs(20)));
    world.pass(60);
    world.settle();
    assert_eq!(
        world.condition("Available").2,
        "* There are no Machines with healthy control plane components, at least 1 required"
    );
}

#[test]
fn nodes_without_machines_and_marks_are_told() {
    let mut world = World::running(1, "");
    let inside = world.inside.as_mut().expect("inside");
    let mut node = (*inside.nodes["n1"]).clone();
    node.spec.taints.clear();
    inside.nodes.insert("n1".to_owned(), std::sync::Arc::new(node.clone()));
    node.metadata.name = "stranger".to_owned();
    inside.nodes.insert("stranger".to_owned(), std::sync::Arc::new(node));
    world.settle();
    assert_eq!(
        world.condition("ControlPlaneComponentsHealthy").2,
        "* Control plane Node stranger does not have a corresponding Machine"
    );
    assert_eq!(
        world.machine_condition(&world.machine_of("n1"), "NodeKubeadmLabelsAndTaintsSet").1,
        "Node n1 does not have the node-role.kubernetes.io/control-plane:NoSchedule taint"
    );
}

#[test]
fn etcd_that_does_not_answer_is_told_and_nothing_goes_meanwhile() {
    let mut world = World::running(3, "");
    let inside = world.inside.as_mut().expect("inside");
    inside.etcd = EtcdSeen::Failed("Failed to connect to etcd: etcd-n1: refused".to_owned());
    world.control_plane.spec.replicas = Some(1);
    let done = world.settle();
    assert!(!done.iter().any(|text| text.starts_with("delete")), "{done:?}");
    let name = world.machine_of("n1");
    assert_eq!(
        world.machine_condition(&name, "EtcdMemberHealthy"),
        ("Unknown".to_owned(), "Failed to connect to etcd: etcd-n1: refused".to_owned())
    );
    world.pass(600);
    world.settle();
    assert_eq!(world.condition("Available").2, "Failed to get etcd members");
}
