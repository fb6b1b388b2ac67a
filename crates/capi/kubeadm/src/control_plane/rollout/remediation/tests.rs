use super::{Remediation, remediate};
use crate::control_plane::fixture::{broken, control_plane, machine, plane, set};
use crate::control_plane::observed::{ControlPlaneState, EtcdMember};
use crate::testing::now;

#[test]
fn an_unhealthy_machine_is_replaced_if_the_control_plane_survives() {
    let three = plane(control_plane(3, ""), vec![machine(1), broken(2), machine(3)]);
    let Remediation::Delete { machine: worst, record } = remediate(&three) else {
        panic!("{:?}", remediate(&three))
    };
    assert_eq!((worst.as_str(), record.retry_count), ("m2", 0));

    let held = |plane: &ControlPlaneState| match remediate(plane) {
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
fn a_machine_without_node_counts_with_its_etcd_member() {
    let mut joined = broken(2);
    joined.status.node_ref.name.clear();
    let mut sick = machine(3);
    set(&mut sick, "EtcdMemberHealthy", "False");
    let mut three = plane(control_plane(3, ""), vec![machine(1), joined, sick]);
    assert!(matches!(remediate(&three), Remediation::Delete { .. }), "it never joined");
    three.etcd.push(EtcdMember { name: "n2".to_owned(), ..EtcdMember::default() });
    let Remediation::Held { message, .. } = remediate(&three) else { panic!("{:?}", remediate(&three)) };
    assert_eq!(message, "without this machine the control plane or etcd's quorum would be lost");
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
