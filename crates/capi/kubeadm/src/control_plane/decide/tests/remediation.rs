//! Remediation of unhealthy machines.

use super::*;

#[test]
fn a_broken_machine_is_replaced_and_the_replacement_remembers_it() {
    let mut world = World::running(3, "");
    let broken = world.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&broken, kind, "False");
    }
    let done = world.settle();
    assert!(done.contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")), "{done:?}");
    let record = world.control_plane.metadata.annotations[IN_PROGRESS].clone();
    assert_eq!(world.control_plane.status.last_remediation.machine, broken);
    assert_eq!(world.condition("Remediating").2, format!("* Machine {broken}: Machine is deleting"));
    world.drained();
    world.settle();
    world.reap();
    world.settle();
    let new = world.booting().expect("a replacement");
    assert_eq!(world.machines[&new].metadata.annotations[FOR], record);
    assert!(!world.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
    world.boot(&new, "n4");
    world.settle();
    assert_eq!(world.settle(), NOTHING);
    assert_eq!(world.members(), ["n1", "n3", "n4"]);
}

#[test]
fn a_replacement_that_was_on_record_and_not_begun_is_gone_on_with() {
    let mut world = World::running(3, "");
    let broken = world.machine_of("n2");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&broken, kind, "False");
    }
    let record = json!({"machine": broken, "timestamp": Time::new(world.now).to_string(), "retryCount": 0});
    world.control_plane.metadata.annotations.insert(IN_PROGRESS.to_owned(), record.to_string());
    let mut recovered = World::running(3, "");
    recovered.control_plane.metadata.annotations = world.control_plane.metadata.annotations.clone();
    assert!(world.settle().contains(&format!("delete machines.cluster.x-k8s.io fleet/{broken}")));
    assert_eq!(recovered.settle(), NOTHING, "it became healthy before it was deleted");
    assert!(!recovered.control_plane.metadata.annotations.contains_key(IN_PROGRESS));
}

#[test]
fn the_only_machine_is_not_replaced_and_says_why() {
    let mut world = World::running(1, "");
    let only = world.machine_of("n1");
    for kind in ["HealthCheckSucceeded", "OwnerRemediated"] {
        world.set(&only, kind, "False");
    }
    world.settle();
    assert_eq!(world.machine_condition(&only, "OwnerRemediated").1, "the only machine is not replaced");
    world.set(&only, "HealthCheckSucceeded", "True");
    world.settle();
    assert!(world.machines[&only].status.conditions.condition("OwnerRemediated").is_none(), "it recovered");
}
