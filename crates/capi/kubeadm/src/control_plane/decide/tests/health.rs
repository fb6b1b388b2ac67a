//! Health conditions.

use super::*;

#[test]
fn an_unreachable_cluster_keeps_its_state_during_the_grace_period() {
    let mut test = TestCluster::running(1, "");
    test.silent = Some("cluster fleet/blue does not answer: 3 probes in a row failed".to_owned());
    test.health.last_success = Some(test.now);
    test.own(60);
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(test.condition("EtcdClusterHealthy").0, "True");
    assert_eq!(waits(&test), ["WorkloadUnreachable"]);
    test.own(600);
    test.settle();
    let (status, reason, message) = test.condition("ControlPlaneComponentsHealthy");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "ConnectionDown"));
    assert!(message.starts_with("Last successful probe at 2026-11-15T"), "{message}");
    let machine = test.machine_of("n1");
    assert_eq!(test.machine_condition(&machine, "APIServerPodHealthy").0, "Unknown");
    assert_eq!(test.settle(), NOTHING);
    test.silent = None;
    test.settle();
    assert_eq!(test.condition("Available").0, "True");
}

#[test]
fn static_pods_determine_the_health_of_a_machine() {
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
        let mut test = TestCluster::running(1, "");
        let pods = &mut test.reached.as_mut().expect("inside").pods;
        pods.insert("kube-scheduler-n1".to_owned(), Ok(object(&format!("status: {pod}"))));
        test.settle();
        let found = test.machine_condition(&test.machine_of("n1"), "SchedulerPodHealthy");
        assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{pod}");
    }
    let mut test = TestCluster::running(1, "");
    test.reached.as_mut().expect("inside").pods.remove("etcd-n1");
    test.settle();
    let name = test.machine_of("n1");
    assert_eq!(
        test.condition("ControlPlaneComponentsHealthy").2,
        format!("* Machine {name}:\n  * EtcdPodHealthy: Pod does not exist")
    );
    assert_eq!(test.decided().look_again, Some(std::time::Duration::from_secs(20)));
    test.own(60);
    test.settle();
    assert_eq!(
        test.condition("Available").2,
        "* There are no Machines with healthy control plane components, at least 1 required"
    );
}

#[test]
fn nodes_without_machine_or_label_are_reported() {
    let mut test = TestCluster::running(1, "");
    let reached = test.reached.as_mut().expect("inside");
    let mut node = (*reached.nodes["n1"]).clone();
    node.spec.taints.clear();
    reached.nodes.insert("n1".to_owned(), std::sync::Arc::new(node.clone()));
    node.metadata.name = "stranger".to_owned();
    reached.nodes.insert("stranger".to_owned(), std::sync::Arc::new(node));
    test.settle();
    assert_eq!(
        test.condition("ControlPlaneComponentsHealthy").2,
        "* Control plane Node stranger does not have a corresponding Machine"
    );
    assert_eq!(
        test.machine_condition(&test.machine_of("n1"), "NodeKubeadmLabelsAndTaintsSet").1,
        "Node n1 does not have the node-role.kubernetes.io/control-plane:NoSchedule taint"
    );
}

#[test]
fn an_unresponsive_etcd_is_reported_and_blocks_deletions() {
    let mut test = TestCluster::running(3, "");
    let reached = test.reached.as_mut().expect("inside");
    reached.etcd = EtcdState::Failed("Failed to connect to etcd: etcd-n1: refused".to_owned());
    test.control_plane.spec.replicas = Some(1);
    let done = test.settle();
    assert!(!done.iter().any(|text| text.starts_with("delete")), "{done:?}");
    let name = test.machine_of("n1");
    assert_eq!(
        test.machine_condition(&name, "EtcdMemberHealthy"),
        ("Unknown".to_owned(), "Failed to connect to etcd: etcd-n1: refused".to_owned())
    );
    test.own(600);
    test.settle();
    assert_eq!(test.condition("Available").2, "Failed to get etcd members");
}
