use std::collections::BTreeMap;

use capstan_controller::operation::StepState;
use capstan_controller::operation::StepState::{Done, Skipped, Waiting};
use capstan_object::{Condition, ConditionStatus};

use super::*;
use crate::cluster::operation::progress::Role;
use crate::testing::{at, condition};

fn role(wanted: u32, present: u32, good: u32) -> Role {
    Role { wanted, present, good, going: 0 }
}

fn target(control_plane: u32, workers: u32, version: &str) -> BTreeMap<String, String> {
    [
        ("controlPlane", control_plane.to_string()),
        ("workers", workers.to_string()),
        ("version", version.to_owned()),
        ("workersVersion", version.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Three control plane machines and three workers, all healthy.
fn well() -> ClusterProgress<'static> {
    ClusterProgress {
        now: at(0),
        generation: 1,
        deleting: false,
        found: true,
        was_initialized: true,
        provisioned: true,
        has_endpoint: true,
        initialized: true,
        control_plane: role(3, 3, 3),
        workers: role(3, 3, 3),
        has_network: true,
        settled: true,
        remediating: false,
        rolling_out: false,
        infrastructure_is_gone: false,
        control_plane_is_gone: false,
        target: target(3, 3, "v1.35.0"),
        conditions: &[],
        waits: &[],
    }
}

/// A cluster without any of its objects.
fn nothing() -> ClusterProgress<'static> {
    ClusterProgress {
        was_initialized: false,
        provisioned: false,
        has_endpoint: false,
        initialized: false,
        control_plane: role(3, 0, 0),
        workers: role(3, 0, 0),
        has_network: false,
        settled: false,
        ..well()
    }
}

/// The operation after one reconcile.
fn after(held: Option<&Operation>, progress: &ClusterProgress<'_>) -> Option<Operation> {
    let mut operation = opened(held.cloned(), progress)?;
    steps::advance(&mut operation, progress);
    steps::blocked(&mut operation, held, progress);
    Some(operation)
}

fn created() -> Operation {
    let created = after(None, &nothing()).and_then(|begun| after(Some(&begun), &well())).expect("created");
    assert!(created.is_over(), "{created:?}");
    created
}

fn states(operation: &Operation) -> Vec<(&str, StepState)> {
    operation.steps.iter().map(|step| (step.name.as_str(), step.state)).collect()
}

#[test]
fn a_creation_advances_step_by_step() {
    let mut held = None;
    let mut progress_log = Vec::new();
    let stages = [
        ClusterProgress { found: false, ..nothing() },
        nothing(),
        ClusterProgress { provisioned: true, has_endpoint: true, ..nothing() },
        ClusterProgress {
            settled: false,
            control_plane: role(3, 1, 1),
            workers: role(3, 3, 0),
            has_network: false,
            ..well()
        },
        ClusterProgress { settled: false, control_plane: role(3, 2, 2), workers: role(3, 3, 3), ..well() },
        ClusterProgress { settled: false, ..well() },
        well(),
    ];
    for (second, progress) in stages.into_iter().enumerate() {
        let progress = ClusterProgress { now: at(10 * i64::try_from(second).expect("a second")), ..progress };
        held = after(held.as_ref(), &progress);
        let operation = held.as_ref().expect("an operation");
        let step = operation
            .current()
            .map_or("-".to_owned(), |step| format!("{} {}/{}", step.name, step.done, step.of));
        progress_log.push((step, operation.percent()));
    }
    let reported: Vec<(&str, u8)> =
        progress_log.iter().map(|(step, percent)| (step.as_str(), *percent)).collect();
    assert_eq!(
        reported,
        [
            ("Validate 0/1", 0),
            ("Network 0/1", 1),
            ("ControlPlaneInit 0/1", 7),
            ("ControlPlane 1/3", 46),
            ("ControlPlane 2/3", 86),
            ("Ready 0/1", 97),
            ("-", 100),
        ]
    );
    let over = held.expect("an operation");
    assert_eq!((over.intention, over.ended), (Intention::Create, Some(at(60).into())));
}

#[test]
fn changes_that_open_an_operation_after_the_creation() {
    let lost = ClusterProgress { workers: role(3, 2, 2), settled: false, ..well() };
    let deletes = ClusterProgress { workers: Role { going: 1, ..role(3, 3, 2) }, settled: false, ..well() };
    let table = [
        ("nothing", well(), None),
        ("a node that is silent for a moment", ClusterProgress { settled: false, ..well() }, None),
        (
            "another version",
            ClusterProgress { target: target(3, 3, "v1.36.0"), control_plane: role(3, 3, 0), ..well() },
            Some(Intention::Upgrade),
        ),
        (
            "more workers",
            ClusterProgress { target: target(3, 5, "v1.35.0"), workers: role(5, 3, 3), ..well() },
            Some(Intention::Scale),
        ),
        ("a lost machine", lost, Some(Intention::Heal)),
        ("a deleted machine", deletes, Some(Intention::Heal)),
        (
            "a machine to be replaced",
            ClusterProgress { remediating: true, workers: role(3, 3, 2), ..well() },
            Some(Intention::Heal),
        ),
        (
            "machines of another shape",
            ClusterProgress { rolling_out: true, workers: role(3, 4, 0), ..well() },
            Some(Intention::Change),
        ),
        (
            "objects that cannot be found",
            ClusterProgress { found: false, target: BTreeMap::new(), ..well() },
            None,
        ),
        ("the deletion", ClusterProgress { deleting: true, ..well() }, Some(Intention::Delete)),
    ];
    for (what, progress, wanted) in table {
        let opened = after(Some(&created()), &progress);
        assert_eq!(opened.map(|operation| operation.intention), wanted, "{what}");
    }
}

#[test]
fn a_moved_cluster_has_no_operation_until_it_changes() {
    assert_eq!(after(None, &well()), None);
    let scaled = ClusterProgress { workers: role(4, 3, 3), settled: false, ..well() };
    assert_eq!(after(None, &scaled).map(|operation| operation.intention), Some(Intention::Scale));
}

#[test]
fn an_upgrade_continues_with_the_workers_and_skips_what_is_up_to_date() {
    let progress = ClusterProgress {
        target: target(3, 3, "v1.36.0"),
        control_plane: role(3, 4, 1),
        settled: false,
        rolling_out: true,
        ..well()
    };
    let begun = after(Some(&created()), &progress).expect("an upgrade");
    assert_eq!(begun.step("ControlPlane").map(|step| (step.done, step.of)), Some((1, 3)));
    assert_eq!(begun.step("Workers").map(|step| step.state), Some(Skipped));
    let progress =
        ClusterProgress { workers: role(3, 4, 1), settled: false, target: target(3, 3, "v1.36.0"), ..well() };
    let workers = after(Some(&begun), &progress).expect("an upgrade");
    assert_eq!(workers.current().map(|step| (step.name.as_str(), step.done)), Some(("Workers", 1)));
    let over = after(Some(&workers), &ClusterProgress { target: target(3, 3, "v1.36.0"), ..well() })
        .expect("an end");
    assert!(over.is_over());
    assert_eq!(
        after(Some(&over), &ClusterProgress { target: target(3, 3, "v1.36.0"), ..well() }),
        None,
        "and rests"
    );
}

#[test]
fn scaling_down_is_done_when_surplus_machines_are_gone() {
    let progress = |present| ClusterProgress {
        target: target(1, 3, "v1.35.0"),
        control_plane: role(1, present, present),
        settled: present == 1,
        ..well()
    };
    let begun = after(Some(&created()), &progress(3)).expect("a scaling");
    assert_eq!(begun.step("ControlPlane").map(|step| (step.done, step.of)), Some((0, 1)));
    assert!(after(Some(&begun), &progress(1)).expect("a scaling").is_over());
}

#[test]
fn a_deletion_counts_deleted_machines() {
    let progress = |workers, control_plane, machinery: bool, network: bool| ClusterProgress {
        deleting: true,
        workers: role(3, workers, 0),
        control_plane: role(3, control_plane, 0),
        control_plane_is_gone: machinery,
        infrastructure_is_gone: network,
        settled: false,
        ..well()
    };
    let mut held = created();
    let mut progress_log = Vec::new();
    for progress in [
        progress(3, 3, false, false),
        progress(1, 3, false, false),
        progress(0, 3, false, false),
        progress(0, 0, true, false),
        progress(0, 0, true, true),
    ] {
        held = after(Some(&held), &progress).expect("a deletion");
        progress_log.push(held.current().map(|step| (step.name.clone(), step.done, step.of)));
    }
    let step = |name: &str, done, of| Some((name.to_owned(), done, of));
    assert_eq!(
        progress_log,
        [
            step("Workers", 0, 3),
            step("Workers", 2, 3),
            step("ControlPlane", 0, 3),
            step("Network", 0, 1),
            None
        ]
    );
}

#[test]
fn a_new_message_alone_is_not_written() {
    let blocked_by = |reason: &str, message: &str| {
        vec![Condition {
            kind: "InfrastructureReady".to_owned(),
            status: ConditionStatus::False,
            observed_generation: None,
            last_transition_time: at(0).into(),
            reason: reason.to_owned(),
            message: message.to_owned(),
        }]
    };
    let mut held = None;
    let mut progress_log = Vec::new();
    for conditions in [
        blocked_by("NotReady", "3 calls"),
        blocked_by("NotReady", "4 calls"),
        blocked_by("NotReady", "E-CS-QUOTA: no room"),
        blocked_by("Other", "5 calls"),
    ] {
        held = after(held.as_ref(), &ClusterProgress { conditions: &conditions, ..nothing() });
        let blocked = held.as_ref().and_then(|operation| operation.blocked_by.clone()).expect("a reason");
        progress_log.push((blocked.message, blocked.code));
    }
    let quota = Some("E-CS-QUOTA".to_owned());
    let reported: Vec<_> =
        progress_log.iter().map(|(message, code)| (message.as_str(), code.clone())).collect();
    assert_eq!(
        reported,
        [("3 calls", None), ("3 calls", None), ("E-CS-QUOTA: no room", quota), ("5 calls", None)]
    );
}

#[test]
fn a_failed_upgrade_that_is_taken_back_is_not_learned() {
    let at_version = |version: &str, good, message: &'static str| {
        let conditions = match message {
            "" => Vec::new(),
            _ => vec![condition("ControlPlaneAvailable", "False", "NotAvailable", message)],
        };
        (target(3, 3, version), role(3, 3, good), conditions)
    };
    for (what, stages, learned) in [
        ("an upgrade", vec![at_version("v1.36.0", 0, ""), at_version("v1.36.0", 3, "")], true),
        (
            "an upgrade that waits for a node",
            vec![at_version("v1.36.0", 0, "a node is not ready"), at_version("v1.36.0", 3, "")],
            true,
        ),
        (
            "an upgrade that is blocked for a while",
            vec![at_version("v1.36.0", 0, "E-CS-TEMPLATE: none"), at_version("v1.36.0", 3, "")],
            false,
        ),
        (
            "an upgrade that is taken back",
            vec![at_version("v1.36.0", 0, ""), at_version("v1.35.0", 2, ""), at_version("v1.35.0", 3, "")],
            false,
        ),
        (
            "an upgrade to another version than the first",
            vec![at_version("v1.36.0", 0, ""), at_version("v1.36.1", 0, ""), at_version("v1.36.1", 3, "")],
            true,
        ),
    ] {
        let mut held = created();
        for (target, control_plane, conditions) in &stages {
            let settled = control_plane.is_complete();
            let progress = ClusterProgress {
                target: target.clone(),
                control_plane: *control_plane,
                conditions,
                settled,
                ..well()
            };
            held = after(Some(&held), &progress).unwrap_or_else(|| panic!("{what}: no operation"));
        }
        assert!(held.is_over() && held.intention == Intention::Upgrade, "{what}: {held:?}");
        let mut history = History::default();
        history.learn(&held);
        let median = history.median(Intention::Upgrade, "ControlPlane");
        assert_eq!(median.is_some(), learned, "{what}: {held:?}");
    }
}

#[test]
fn an_external_control_plane_needs_no_network_and_zero_workers_are_skipped() {
    let none = ClusterProgress {
        control_plane: role(0, 0, 0),
        workers: role(0, 0, 0),
        has_network: false,
        ..well()
    };
    let begun = after(None, &ClusterProgress { was_initialized: false, ..none }).expect("a creation");
    let open: Vec<_> =
        states(&begun).into_iter().filter(|(_, state)| !matches!(state, Done | Waiting)).collect();
    assert_eq!(open, [("ControlPlane", Skipped), ("CNI", Skipped), ("Workers", Skipped)]);
    assert!(begun.is_over());
}

#[test]
fn progress_of_many_machines_is_reported_in_tenths() {
    let mut held = after(None, &nothing()).expect("a creation");
    let mut marks = 0;
    for good in 0..=500 {
        let progress = ClusterProgress { workers: role(500, 500, good), settled: good == 500, ..well() };
        let progress = ClusterProgress { target: held.target.clone(), ..progress };
        let next = after(Some(&held), &progress).expect("a creation");
        marks += usize::from(next != held);
        held = next;
    }
    assert!(held.is_over());
    assert!(marks <= 12, "{marks}");
}
