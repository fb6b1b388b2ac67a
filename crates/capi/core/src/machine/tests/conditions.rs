//! Conditions of a machine.

use super::*;

#[test]
fn a_machine_is_available_only_after_it_was_ready_for_long_enough() {
    let mut slow = machine();
    slow.spec.min_ready_seconds = Some(30);
    let decision = decide(slow, running());
    assert_eq!(condition(&decision, "Available"), (ConditionStatus::False, "WaitingForMinReadySeconds", ""));
    assert_eq!(decision.look_again, Some(std::time::Duration::from_secs(30)));
    let mut later = look(decision.object, running());
    later.now = at(NOW + 30);
    later.seen.health.last_success = Some(at(NOW + 29));
    assert_eq!(condition(&controller().decide(&later), "Available").0, ConditionStatus::True);
}

#[test]
fn an_unreachable_cluster_keeps_node_conditions_during_the_grace_period() {
    let ran = decide(machine(), running()).object;
    let silent = |last: i64| Observed {
        node: ObservedNode::NotConnected("refused".to_owned()),
        health: Health { last_success: Some(at(last)), failures: 3, error: None },
        ..running()
    };
    let soon = decide(ran.clone(), silent(NOW - 60));
    assert_eq!(condition(&soon, "NodeHealthy").0, ConditionStatus::True);
    let mut old_cluster = Cluster::clone(&cluster());
    old_cluster.status.conditions[0].last_transition_time = at(0).into();
    let late = decide(ran, Observed { cluster: Some(Arc::new(old_cluster)), ..silent(NOW - 301) });
    assert_eq!(
        condition(&late, "NodeHealthy"),
        (ConditionStatus::Unknown, "ConnectionDown", "Last successful probe at 1970-01-01T00:11:39Z")
    );
}

#[test]
fn a_node_that_vanished_makes_the_machine_unhealthy() {
    let ran = decide(machine(), running()).object;
    let decision = decide(ran, Observed { node: ObservedNode::Missing, ..running() });
    assert_eq!(
        condition(&decision, "NodeHealthy"),
        (ConditionStatus::False, "NodeDeleted", "Node node has been deleted while the Machine still exists")
    );
    assert_eq!(condition(&decision, "Ready").0, ConditionStatus::False);
}

#[test]
fn certificate_expiry_comes_from_the_machine_or_its_bootstrap_config() {
    let expiry = |own: Option<&str>| {
        let mut machine = machine();
        machine.metadata.labels.insert(label::CONTROL_PLANE.to_owned(), String::new());
        if let Some(own) = own {
            machine.metadata.annotations.insert(annotation::CERTIFICATES_EXPIRY.to_owned(), own.to_owned());
        }
        decide(machine, running()).object.status.certificates_expiry_date.map(|time| time.to_string())
    };
    assert_eq!(expiry(Some("2027-01-02T03:04:05Z")).as_deref(), Some("2027-01-02T03:04:05Z"));
    assert_eq!(expiry(None), None);
}

#[test]
fn a_machine_of_a_deployment_reports_whether_it_is_up_to_date() {
    use capstan_capi_types::core::{MachineDeployment, MachineSet};
    type Change<'a> = &'a dyn Fn(&mut MachineSet, &mut MachineDeployment);
    let seen = |change: Change<'_>| {
        let (mut set, mut deployment) = (MachineSet::default(), MachineDeployment::default());
        set.metadata.creation_timestamp = Some(at(500).into());
        change(&mut set, &mut deployment);
        Observed { set: Some(Arc::new(set)), deployment: Some(Arc::new(deployment)), ..running() }
    };
    let mut right = machine();
    right.spec.version = "v1.34.0".to_owned();
    let cases: [(&str, Change<'_>, _); 4] = [
        ("v1.34.0", &|_, _| (), (ConditionStatus::True, "UpToDate", "")),
        (
            "v1.34.0",
            &|_, deployment| deployment.spec.template.spec.failure_domain = "b".to_owned(),
            (ConditionStatus::False, "NotUpToDate", "* Failure domain , b required"),
        ),
        (
            "v1.34.0",
            &|_, deployment| deployment.spec.rollout.after = Some(at(600).into()),
            (ConditionStatus::False, "NotUpToDate", "* MachineDeployment spec.rolloutAfter expired"),
        ),
        (
            "v1.35.0",
            &|_, _| (),
            (
                ConditionStatus::False,
                "Updating",
                "* Node.status.nodeInfo.kubeletVersion v1.34.0, v1.35.0 required",
            ),
        ),
    ];
    for (version, change, expected) in cases {
        let mut machine = right.clone();
        machine.spec.version = version.to_owned();
        assert_eq!(condition(&decide(machine, seen(change)), "UpToDate"), expected);
    }
    let alone = decide(right, running());
    assert!(alone.object.status.conditions.condition("UpToDate").is_none(), "nothing to compare with");
}
