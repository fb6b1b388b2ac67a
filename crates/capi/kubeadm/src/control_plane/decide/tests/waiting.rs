//! What tools read that wait by the rules of kstatus.

use capstan_object::kstatus::Progress;
use capstan_object::to_value;

use super::*;

fn progress(control_plane: &capstan_capi_types::controlplane::KubeadmControlPlane) -> Progress {
    Progress::of(&to_value(control_plane).expect("an object"))
}

fn waits_for(what: &str) -> Progress {
    Progress::InProgress(what.to_owned())
}

/// A control plane of one machine, about which the Machine controller has nothing to complain.
fn settled() -> TestCluster {
    let mut test = TestCluster::running(1, "");
    let machine = test.machine_of("n1");
    for kind in ["Ready", "Available"] {
        test.set(&machine, kind, "True");
    }
    test.settle();
    test
}

#[test]
fn a_control_plane_is_current_when_its_machines_are_ready() {
    let mut test = TestCluster::running(1, "");
    assert_eq!(progress(&test.control_plane), waits_for("0 of 1 replicas are ready"));
    let machine = test.machine_of("n1");
    test.set(&machine, "Ready", "True");
    test.settle();
    assert_eq!(progress(&test.control_plane), waits_for("0 of 1 replicas are available"));
    test.set(&machine, "Available", "True");
    test.settle();
    assert_eq!(progress(&test.control_plane), Progress::Current);
}

#[test]
fn a_change_is_in_progress_as_soon_as_its_generation_is_observed() {
    type Change = fn(&mut capstan_capi_types::controlplane::KubeadmControlPlaneSpec);
    let rolling = "Rolling out 1 not up-to-date replicas";
    let changes: [(Change, &str); 4] = [
        (|spec| spec.version = "v1.35.0".to_owned(), rolling),
        (|spec| spec.machine_template.spec.infrastructure_ref.name = "large".to_owned(), rolling),
        (|spec| spec.replicas = Some(3), "Scaling up from 1 to 3 replicas"),
        (
            |spec| spec.machine_template.spec.deletion.node_drain_timeout_seconds = Some(90),
            "Machines are being changed in place",
        ),
    ];
    for (change, expected) in changes {
        let mut test = settled();
        change(&mut test.control_plane.spec);
        test.control_plane.metadata.generation += 1;
        assert_eq!(
            progress(&test.control_plane),
            waits_for("generation 2 is not observed yet, the last one was 1")
        );
        // Machines still report what they were made for.
        assert_eq!(progress(&test.decided().object), waits_for(expected));
    }
}
