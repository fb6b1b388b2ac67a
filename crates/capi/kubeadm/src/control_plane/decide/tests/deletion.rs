//! Deleting machines, etcd members and whole control planes.

use std::sync::Arc;

use capstan_controller::Look;

use super::*;
use crate::control_plane::calls::ControlPlaneCall;

#[test]
fn leadership_moves_before_and_the_member_is_removed_after_a_deletion() {
    let mut test = TestCluster::running(3, "");
    let oldest = test.machine_of("n1");
    test.control_plane.spec.replicas = Some(1);
    let delete = format!("delete machines.cluster.x-k8s.io fleet/{oldest}");
    let done = test.settle();
    assert_eq!(done[..2], ["move etcd's leadership from n1 to n3".to_owned(), delete]);
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(waits(&test)[0], "WaitingForMachines", "core drains it first");
    assert_eq!(test.members(), ["n1", "n2", "n3"]);

    test.drained();
    let done = test.settle();
    assert_eq!(done[0], "remove etcd member n1");
    assert_eq!(test.members(), ["n2", "n3"]);
    assert_eq!(test.machines.len(), 3, "nothing else goes before it is gone");
    assert_eq!(test.reap(), [oldest]);
    let done = test.settle();
    assert!(done.iter().any(|text| text.starts_with("delete machines")), "{done:?}");
    test.drained();
    test.settle();
    assert_eq!(test.reap().len(), 1);
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(test.members(), ["n3"]);
    assert_eq!(test.condition("Available").0, "True");
}

#[test]
fn leadership_goes_to_the_next_machine_if_one_refuses() {
    let mut test = TestCluster::running(3, "");
    test.control_plane.spec.replicas = Some(1);
    let moves = |failed: &[&str]| {
        let mut look = Look::new(Arc::new(test.control_plane.clone()), test.seen(), test.now);
        look.failures = failed
            .iter()
            .map(|to| capstan_controller::Failure {
                effect: format!("move etcd's leadership from n1 to {to}"),
                call: Some(ControlPlaneCall::MoveLeader { from: "n1".to_owned(), to: (*to).to_owned() }),
                error: capstan_controller::Error {
                    code: capstan_controller::catalogue::WORKLOAD_UNREACHABLE,
                    message: "refused".to_owned(),
                },
                since: test.now,
                attempts: 1,
            })
            .collect();
        decide(&Settings::default(), &look).effects[0].effect.summary()
    };
    assert_eq!(moves(&[]), "move etcd's leadership from n1 to n3");
    assert_eq!(moves(&["n3"]), "move etcd's leadership from n1 to n2");
    assert_eq!(moves(&["n3", "n2"]), "move etcd's leadership from n1 to n3");
}

#[test]
fn effects_that_fail_leave_events() {
    let mut new = TestCluster::new(3, "");
    new.settle();
    new.machines.clear();
    new.configs.clear();
    new.infrastructure.clear();
    assert_eq!(failures(&new), ["FailedInitialization"; 3]);
    let mut test = TestCluster::running(3, "");
    test.control_plane.spec.replicas = Some(5);
    assert_eq!(failures(&test), ["FailedScaleUp"; 3]);
    test.control_plane.spec.replicas = Some(1);
    assert_eq!(failures(&test), ["FailedScaleDown"]);
    test.control_plane.metadata.deletion_timestamp = Some(Time::new(test.now));
    assert_eq!(failures(&test), ["FailedDelete"; 3]);
}

#[test]
fn other_hooks_are_waited_for() {
    let mut test = TestCluster::running(3, "");
    test.control_plane.spec.replicas = Some(1);
    test.settle();
    let going = test.drained().expect("a machine that goes");
    let hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup".to_owned();
    test.machines.get_mut(&going).expect("it").metadata.annotations.insert(hook.clone(), String::new());
    assert_eq!(test.settle(), NOTHING);
    test.machines.get_mut(&going).expect("it").metadata.annotations.remove(&hook);
    assert_eq!(test.settle()[0], "remove etcd member n1");
}

#[test]
fn a_member_is_found_by_node_before_node_ref_is_set() {
    let mut test = TestCluster::running(3, "");
    let joined = test.machine_of("n2");
    let machine = test.machines.get_mut(&joined).expect("it");
    machine.status.node_ref.name.clear();
    machine.metadata.deletion_timestamp = Some(Time::new(test.now));
    test.drained();
    let done = test.settle();
    assert!(done.contains(&"remove etcd member n2".to_owned()), "{done:?}");
    assert_eq!(test.members(), ["n1", "n3"]);
}

/// A machine has joined etcd, but its providerID stays unknown and no nodeRef is set.
fn nameless(test: &mut TestCluster, node: &str) -> String {
    let joined = test.machine_of(node);
    let machine = test.machines.get_mut(&joined).expect("it");
    machine.status.node_ref.name.clear();
    machine.spec.provider_id.clear();
    joined
}

fn delete(test: &mut TestCluster, machine: &str) {
    let now = Time::new(test.now);
    test.machines.get_mut(machine).expect("it").metadata.deletion_timestamp = Some(now);
    test.drained();
}

#[test]
fn the_member_of_a_machine_without_node_is_removed_with_it() {
    for replicas in [2, 3] {
        let mut test = TestCluster::running(1, "");
        test.control_plane.spec.replicas = Some(replicas);
        for n in 2..=replicas {
            test.settle();
            let name = test.booting().expect("a machine that boots");
            test.boot(&name, &format!("n{n}"));
            test.own(60);
        }
        test.settle();
        let joined = nameless(&mut test, "n2");
        test.etcd(|_, leader| *leader = "n2".to_owned());
        delete(&mut test, &joined);
        let done = test.settle();
        assert!(done.iter().any(|text| text.starts_with("move etcd's leadership from n2 to ")), "{done:?}");
        assert!(done.contains(&"remove etcd member n2".to_owned()), "{done:?}");
        assert!(!test.members().contains(&"n2".to_owned()));
        assert_eq!(test.reap(), [joined]);
    }
}

#[test]
fn a_member_that_may_be_of_a_machine_that_starts_is_kept() {
    let mut test = TestCluster::running(3, "");
    let (joined, starting) = (nameless(&mut test, "n2"), nameless(&mut test, "n3"));
    delete(&mut test, &joined);
    test.settle();
    assert_eq!(test.members(), ["n1", "n2", "n3"]);
    assert!(waits(&test).contains(&"EtcdMemberUnknown".to_owned()), "{:?}", waits(&test));
    // A node is mostly called like its infrastructure machine.
    test.machines.get_mut(&starting).expect("it").spec.infrastructure_ref.name = "n3".to_owned();
    let done = test.settle();
    assert!(done.contains(&"remove etcd member n2".to_owned()), "{done:?}");
    assert_eq!(test.members(), ["n1", "n3"]);
}

#[test]
fn a_machine_is_not_deleted_while_etcd_members_are_unknown() {
    let mut test = TestCluster::running(3, "");
    let joined = test.machine_of("n2");
    let machine = test.machines.get_mut(&joined).expect("it");
    machine.status.node_ref.name.clear();
    machine.spec.provider_id.clear();
    machine.metadata.deletion_timestamp = Some(Time::new(test.now));
    test.drained();
    test.reached.as_mut().expect("inside").etcd = EtcdState::Failed("no answer".to_owned());
    test.settle();
    assert_eq!(waits(&test), ["EtcdUnknown"]);
    assert!(test.reap().is_empty(), "its hook holds it");
}

#[test]
fn a_member_without_machine_is_removed_if_the_quorum_survives() {
    let mut test = TestCluster::running(3, "");
    let stranger = EtcdMember { id: 9, name: "n0".to_owned(), ..EtcdMember::default() };
    test.etcd(|members, _| members.push(stranger));
    assert_eq!(test.settle(), ["remove etcd member n0"]);
    assert_eq!(test.condition("EtcdClusterHealthy").0, "True");

    let mut starting = TestCluster::running(3, "");
    starting.control_plane.spec.replicas = Some(5);
    starting.settle();
    starting.etcd(|members, _| members.push(EtcdMember { id: 9, ..EtcdMember::default() }));
    assert_eq!(starting.settle(), NOTHING, "it may be the one of the machine that boots");
    assert!(starting.condition("EtcdClusterHealthy").2.contains("Name not yet assigned"));
}

#[test]
fn a_control_plane_is_deleted_at_once_after_its_workers() {
    let mut test = TestCluster::running(3, "");
    test.control_plane.metadata.deletion_timestamp = Some(Time::new(test.now));
    let worker: Machine = object("{metadata: {name: w1, namespace: fleet}, spec: {clusterName: blue}}");
    test.machines.insert("w1".to_owned(), worker);
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(
        test.condition("Deleting").2,
        "KubeadmControlPlane deletion blocked because following objects still exist:\n* Machines: w1"
    );
    test.machines.remove("w1");
    let done = summaries(&test.settle());
    assert_eq!(
        done,
        ["patch machines.cluster.x-k8s.io fleet/blue-cp", "delete machines.cluster.x-k8s.io fleet/blue-cp"]
    );
    assert_eq!(test.condition("Deleting").2, "Deleting 3 Machines");
    assert_eq!(test.reap().len(), 3);
    assert!(!test.control_plane.metadata.finalizers.is_empty());
    test.settle();
    assert!(test.control_plane.metadata.finalizers.is_empty());
}
