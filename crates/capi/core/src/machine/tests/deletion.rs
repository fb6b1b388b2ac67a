//! Deleting a machine.

use super::*;

#[test]
fn a_machine_is_deleted_stage_by_stage() {
    let hooked = |name: &str| {
        let mut machine = deleting();
        machine.metadata.annotations.insert(format!("{name}/x"), String::new());
        machine
    };
    let to_evict = Plan { evict_now: pods(&["a"]), ..Plan::default() };
    let attached =
        volumes::Attached { claims: ["n/claim".to_owned()].into(), ..volumes::Attached::default() };
    let gone = || Observed { infrastructure: Lookup::Missing, bootstrap: Lookup::Missing, ..going() };
    let stages = [
        (hooked(annotation::PRE_DRAIN_HOOK_PREFIX), going(), vec![], "WaitingForPreDrainHook"),
        (
            deleting(),
            Observed { pods: Some(Ok(to_evict)), volumes: None, ..going() },
            vec!["cordon node node", "evict pods n/a"],
            "DrainingNode",
        ),
        (
            deleting(),
            Observed { volumes: Some(Ok(attached)), ..going() },
            vec!["cordon node node"],
            "WaitingForVolumeDetach",
        ),
        (
            hooked(annotation::PRE_TERMINATE_HOOK_PREFIX),
            going(),
            vec!["cordon node node"],
            "WaitingForPreTerminateHook",
        ),
        (
            deleting(),
            going(),
            vec!["cordon node node", "delete fakemachines.g n/x"],
            "WaitingForInfrastructureDeletion",
        ),
        (
            deleting(),
            Observed { infrastructure: Lookup::Missing, ..going() },
            vec!["delete fakeconfigs.g n/x"],
            "WaitingForBootstrapDeletion",
        ),
        (deleting(), gone(), vec!["delete node node"], "DeletingNode"),
        (deleting(), Observed { node: ObservedNode::Missing, ..gone() }, vec![], "DeletionCompleted"),
    ];
    for (machine, seen, expected, reason) in stages {
        let decision = decide(machine, seen);
        assert_eq!(effects(&decision), expected, "{reason}");
        assert_eq!(condition(&decision, "Deleting").1, reason);
        assert_eq!(decision.object.metadata.finalizers.is_empty(), reason == "DeletionCompleted", "{reason}");
        assert_eq!(decision.object.status.phase, Some(MachinePhase::Deleting));
    }
}

/// A workload cluster that rejects every patch of a Node would keep its machines for ever otherwise.
#[test]
fn a_node_that_cannot_be_patched_does_not_stop_a_deletion() {
    let mut machine = deleting();
    machine.metadata.labels.insert("node.cluster.x-k8s.io/pool".to_owned(), "a".to_owned());
    let decision = decide(machine, going());
    assert_eq!(
        effects(&decision),
        ["patch node node", "cordon node node", "delete fakemachines.g n/x"],
        "{:?}",
        decision.effects
    );
    assert_eq!(best_efforts(&decision), ["patch node node"]);
}

#[test]
fn the_drain_is_skipped_where_it_is_pointless() {
    let busy = || Observed {
        pods: Some(Ok(Plan { evict_now: pods(&["a"]), ..Plan::default() })),
        volumes: None,
        ..going()
    };
    let mut going_cluster = Cluster::clone(&cluster());
    going_cluster.metadata.deletion_timestamp = Some(at(1).into());
    let mut excluded = deleting();
    excluded.metadata.annotations.insert(annotation::EXCLUDE_NODE_DRAINING.to_owned(), String::new());
    excluded
        .metadata
        .annotations
        .insert(annotation::EXCLUDE_WAIT_FOR_NODE_VOLUME_DETACH.to_owned(), String::new());
    let mut timed_out = deleting();
    timed_out.spec.deletion.node_drain_timeout_seconds = Some(60);
    timed_out.spec.deletion.node_volume_detach_timeout_seconds = Some(60);
    timed_out.status.deletion = Some(MachineDeletionStatus {
        node_drain_start_time: Some(at(NOW - 60).into()),
        wait_for_node_volume_detach_start_time: Some(at(NOW - 60).into()),
        ..MachineDeletionStatus::default()
    });
    let mut no_node = deleting();
    no_node.status.node_ref.name.clear();
    for (what, machine, seen) in [
        ("the cluster goes", deleting(), Observed { cluster: Some(Arc::new(going_cluster)), ..busy() }),
        ("no control plane is left", deleting(), Observed { control_plane_machines: 0, ..busy() }),
        ("excluded by annotation", excluded, busy()),
        ("its time is up", timed_out, busy()),
        ("it never was a node", no_node, Observed { node: ObservedNode::NotAsked, ..busy() }),
    ] {
        let decision = decide(machine, seen);
        assert_eq!(condition(&decision, "Deleting").1, "WaitingForInfrastructureDeletion", "{what}");
    }
}

#[test]
fn refused_evictions_are_reported_and_retried_later() {
    let plan = Plan { evict_now: pods(&["a"]), ..Plan::default() };
    let mut look = look(deleting(), Observed { pods: Some(Ok(plan)), volumes: None, ..going() });
    let refused = Evicted {
        refused: vec![(
            pods(&["a"])[0].clone(),
            "Cannot evict pod as it would violate the pod's disruption budget.".to_owned(),
        )],
    };
    look.concluded = vec![
        Concluded { call: MachineCall::Cordon { node: "node".to_owned() }, result: Some(Value::Null) },
        Concluded {
            call: MachineCall::Evict { pods: pods(&["a"]), grace_seconds: None },
            result: Some(serde_json::to_value(refused).expect("a result")),
        },
    ];
    let decision = controller().decide(&look);
    assert_eq!(effects(&decision), [""; 0]);
    assert_eq!(
        condition(&decision, "Deleting").2,
        "Drain not completed yet (started at 1970-01-01T00:16:40Z):\n\
         * Pod n/a: cannot evict pod as it would violate the pod's disruption budget."
    );
    assert_eq!(decision.look_again, Some(std::time::Duration::from_secs(20)));
}

#[test]
fn an_undeletable_node_blocks_the_machine_only_until_its_timeout() {
    let gone = || Observed { infrastructure: Lookup::Missing, bootstrap: Lookup::Missing, ..going() };
    let failed = |limit, tried| {
        let mut machine = deleting();
        machine.spec.deletion.node_deletion_timeout_seconds = limit;
        let mut look = look(machine, gone());
        let call = MachineCall::DeleteNode { node: "node".to_owned() };
        look.failures = vec![Failure {
            effect: "delete node node".to_owned(),
            call: Some(call),
            error: capstan_controller::Error {
                code: catalogue::WORKLOAD_UNREACHABLE,
                message: "refused".to_owned(),
            },
            since: at(NOW - tried),
            attempts: 2,
        }];
        let decision = controller().decide(&look);
        (condition(&decision, "Deleting").1.to_owned(), decision.object.metadata.finalizers.is_empty())
    };
    assert_eq!(failed(None, 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(0), 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(60), 9), ("DeletingNode".to_owned(), false));
    assert_eq!(failed(Some(10), 0), ("DeletingNode".to_owned(), false), "one refusal is not the end");
    assert_eq!(failed(Some(10), 10), ("DeletionCompleted".to_owned(), true));
}

#[test]
fn a_changed_node_reference_does_not_have_another_machines_node_deleted() {
    let mut machine = deleting();
    machine.status.node_ref.name = "node-of-another-machine".to_owned();
    let node = super::deletion_stage::node_to_delete(&machine, &going());
    assert_eq!(node.as_deref(), Some("node"));
}
