//! Remediation of unhealthy machines.

use super::*;

#[test]
fn an_unhealthy_machine_is_replaced_and_recorded_on_the_replacement() {
    let mut test = TestCluster::running(3, "");
    let broken = test.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        test.set(&broken, kind, "False");
    }
    let done = test.settle();
    assert!(done.contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")), "{done:?}");
    let record = test.control_plane.metadata.annotations[IN_PROGRESS].clone();
    assert_eq!(test.control_plane.status.last_remediation.machine, broken);
    assert_eq!(test.condition("Remediating").2, format!("* Machine {broken}: Machine is deleting"));
    test.drained();
    test.settle();
    test.reap();
    test.settle();
    let new = test.booting().expect("a replacement");
    assert_eq!(test.machines[&new].metadata.annotations[FOR], record);
    assert!(!test.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
    test.boot(&new, "n4");
    test.settle();
    assert_eq!(test.settle(), NOTHING);
    assert_eq!(test.members(), ["n1", "n3", "n4"]);
}

#[test]
fn a_recorded_remediation_continues() {
    let mut test = TestCluster::running(3, "");
    let broken = test.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        test.set(&broken, kind, "False");
    }
    let record = json!({"machine": broken, "timestamp": Time::new(test.now).to_string(), "retryCount": 0});
    test.control_plane.metadata.annotations.insert(IN_PROGRESS.to_owned(), record.to_string());
    let mut recovered = TestCluster::running(3, "");
    recovered.control_plane.metadata.annotations = test.control_plane.metadata.annotations.clone();
    assert!(test.settle().contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")));
    assert_eq!(recovered.settle(), NOTHING, "it became healthy before it was deleted");
    assert!(!recovered.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
}

#[test]
fn the_only_machine_is_not_replaced_and_reports_why() {
    let mut test = TestCluster::running(1, "");
    let only = test.machine_of("n1");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        test.set(&only, kind, "False");
    }
    test.settle();
    assert_eq!(test.machine_condition(&only, "OwnerRemediated").1, "the only machine is not replaced");
    test.set(&only, "HealthCheckSucceeded", "True");
    test.settle();
    assert!(test.machines[&only].status.conditions.condition("OwnerRemediated").is_none(), "it recovered");
}
