//! Creating a control plane.

use super::*;

#[test]
fn a_control_plane_is_created_machine_by_machine() {
    let mut test = TestCluster::new(3, "");
    assert_eq!(
        summaries(&test.settle()),
        [
            "create secrets blue-ca",
            "create secrets blue-etcd",
            "create secrets blue-proxy",
            "create secrets blue-sa",
            "create secrets blue-kubeconfig",
            "create simmachines.infrastructure.cluster.x-k8s.io blue-cp",
            "create kubeadmconfigs.bootstrap.cluster.x-k8s.io blue-cp",
            "create machines.cluster.x-k8s.io blue-cp",
            "patch machines.cluster.x-k8s.io fleet/blue-cp/status",
        ]
    );
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(waits(&test)[0], "WaitingForFirstControlPlane");
    assert_eq!(test.condition("Available").2, "Control plane not yet initialized");
    let first = test.booting().expect("the first");
    let config = &test.configs[&first];
    assert!(config.spec.join_configuration.control_plane.is_none(), "the first machine does not join");
    let made = &test.machines[&first];
    assert_eq!(made.spec.version, "v1.34.1");
    assert_eq!(made.spec.readiness_gates.len(), 6);
    assert!(made.metadata.annotations.keys().any(|key| key.ends_with("/kcp-cleanup")));

    test.boot(&first, "n1");
    assert!(summaries(&test.settle()).contains(&"create machines.cluster.x-k8s.io blue-cp".to_owned()));
    assert_eq!(test.condition("Initialized").0, "True");
    assert_eq!(test.machines.len(), 2, "the second is created once the first is healthy");
    let second = test.booting().expect("the second");
    assert!(test.configs[&second].spec.join_configuration.control_plane.is_some());
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(
        test.condition("ScalingUp").2,
        format!("Scaling up from 2 to 3 replicas is blocked because:\n* machine {second} has no node yet")
    );
    let message = "Waiting for control plane to pass preflight checks to continue reconciliation: ";
    let expected = ("ControlPlaneUnhealthy".to_owned(), format!("{message}machine {second} has no node yet"));
    assert_eq!(warnings(&test), [expected]);
    test.boot(&second, "n2");
    test.settle();
    let third = test.booting().expect("the third");
    test.boot(&third, "n3");
    test.settle();
    assert_eq!(test.settle(), NOTHING);
    for kind in ["Available", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", "CertificatesAvailable"]
    {
        assert_eq!(test.condition(kind).0, "True", "{kind}: {}", test.condition(kind).2);
    }
    let status = &test.control_plane.status;
    assert_eq!((status.replicas, status.up_to_date_replicas), (Some(3), Some(3)));
    assert_eq!(status.version, "v1.34.1");
    assert_eq!(status.selector, "cluster.x-k8s.io/cluster-name=blue,cluster.x-k8s.io/control-plane");
}

#[test]
fn nothing_is_created_before_infrastructure_and_endpoint_exist() {
    let mut test = TestCluster::new(1, "");
    test.cluster.status.initialization.infrastructure_provisioned = None;
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(waits(&test), ["WaitingForInfrastructure"]);
    test.cluster.status.initialization.infrastructure_provisioned = Some(true);
    test.cluster.spec.control_plane_endpoint = object("{}");
    assert_eq!(test.settle().len(), 4, "certificates need no endpoint");
    assert_eq!(waits(&test), ["WaitingForEndpoint"]);
    test.cluster.spec.control_plane_endpoint = object("{host: 10.0.0.9, port: 6443}");
    test.has_template = false;
    assert_eq!(test.settle(), ["create secrets blue-kubeconfig"]);
    assert_eq!(server_of(&test.secrets["blue-kubeconfig"], "blue").as_deref(), Ok("https://10.0.0.9:6443"));
    assert_eq!(
        test.condition("ScalingUp").2,
        "Scaling up from 0 to 1 replicas is blocked because:\n* SimMachineTemplate does not exist"
    );
}

#[test]
fn objects_of_a_machine_that_was_never_created_are_used_or_deleted() {
    let mut test = TestCluster::new(1, "");
    test.settle();
    let name = test.booting().expect("a machine");
    // The process crashed before it created the Machine.
    test.machines.clear();
    test.control_plane.metadata.annotations.clear();
    let ours = OwnerReference::to(&test.control_plane);
    let config = test.configs.get_mut(&name).expect("a configuration");
    config.metadata.owner_references = vec![ours.clone()];
    test.infrastructure.get_mut(&name).expect("it")["metadata"]["ownerReferences"] = json!([ours]);
    let done = test.settle();
    assert_eq!(done[0], format!("create machines.cluster.x-k8s.io {name}"), "{done:?}");
    let mut late = TestCluster::running(1, "");
    let mut orphan = late.configs.values().next().expect("one").clone();
    orphan.metadata.name = "blue-cp-orphan".to_owned();
    orphan.metadata.owner_references = vec![ours];
    late.configs.insert("blue-cp-orphan".to_owned(), orphan);
    assert_eq!(late.settle(), ["delete kubeadmconfigs.bootstrap.cluster.x-k8s.io fleet/blue-cp-orphan"]);
}

#[test]
fn a_paused_control_plane_is_left_alone() {
    let test = TestCluster::new(1, "");
    let seen = TestCluster::new(1, "").decided();
    assert!(!seen.effects.is_empty());
    let mut look = capstan_controller::Look::<ControlPlaneController>::new(
        std::sync::Arc::new(test.control_plane.clone()),
        test.seen(),
        test.now + SignedDuration::from_secs(1),
    );
    look.paused = Some("Cluster spec.paused is set to true".to_owned());
    let decision = decide(&Settings::default(), &look);
    assert!(decision.effects.is_empty());
    let paused = decision.object.status.conditions.condition("Paused").expect("it").clone();
    assert_eq!(paused.message, "Cluster spec.paused is set to true");
}
