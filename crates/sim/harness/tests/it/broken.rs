//! Every checker catches its defect: a controller, a store or a server with one defect each.

use std::time::Duration;

use capstan_harness::{Fault, Report, crash_points, run};

use crate::faulty::Defect;
use crate::lifecycle::Lifecycle;
use crate::widget::Flaw;

/// The properties violated in the run without faults, or with a fault at some effect.
fn broken(lifecycle: &Lifecycle, faults: &[fn(usize) -> Fault]) -> Vec<String> {
    let (reference, reports) = crash_points(lifecycle, 5, faults);
    let property = |report: &Report| report.violation.as_ref().map(|violation| violation.property.clone());
    let mut properties: Vec<String> =
        std::iter::once(&reference).chain(&reports).filter_map(property).collect();
    properties.sort_unstable();
    properties.dedup();
    properties
}

#[test]
fn flaws_that_need_no_fault_are_caught() {
    for (flaw, property) in [
        (Flaw::SkipsIntent, "S5"),
        (Flaw::DropsFinalizer, "S4"),
        (Flaw::TouchesOthers, "S3"),
        (Flaw::IgnoresPause, "S10"),
        (Flaw::CreatesWhileDeleting, "S11"),
        (Flaw::WritesWhenIdle, "L1/L2"),
    ] {
        let report = run(&Lifecycle::with(flaw), 5, &[]);
        let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
        assert_eq!(broken, Some(property), "{flaw:?}\n{}", report.transcript());
    }
}

#[test]
fn leftover_machines_are_caught() {
    // Without the finalizer checker, it shows only at the end.
    let lifecycle = Lifecycle { only: Some("L3"), ..Lifecycle::with(Flaw::DropsFinalizer) };
    let report = run(&lifecycle, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some("L3"), "{}", report.transcript());
}

#[test]
fn decisions_on_old_state_are_caught() {
    let lifecycle = Lifecycle { write_through: false, ..Lifecycle::with(Flaw::None) };
    let report = run(&lifecycle, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some("S12"), "{}", report.transcript());
}

#[test]
fn taking_a_lost_response_for_a_failure_is_caught() {
    for (flaw, property) in [(Flaw::Assumes, "S2"), (Flaw::Repeats, "S1")] {
        let properties = broken(&Lifecycle::with(flaw), &[Fault::LoseReply]);
        assert!(properties.iter().any(|broken| broken == property), "{flaw:?}: {properties:?}");
    }
}

/// The defect violates a property with a fault at one of the first effects; without the defect the property holds
/// with the same fault.
fn only_the_defect_breaks(lifecycle: Lifecycle, property: &str, fault: fn(usize) -> Fault) {
    let broken = |lifecycle: &Lifecycle, fault: Fault| {
        let report = run(lifecycle, 5, &[fault]);
        report.violation.is_some_and(|violation| violation.what.contains(property))
    };
    let caught = (0..20).map(fault).find(|fault| broken(&lifecycle, *fault));
    let caught = caught.expect("the defect is caught");
    assert!(!broken(&Lifecycle { defect: Defect::None, ..lifecycle }, caught), "{caught}");
}

#[test]
fn servers_with_wrong_watch_events_are_caught() {
    for (defect, property) in [
        (Defect::RepeatsEvent, "A2"),
        (Defect::ReordersEvents, "A2"),
        (Defect::DropsEvent, "A2"),
        (Defect::DropsFromList, "A4"),
    ] {
        let lifecycle = Lifecycle { only: Some("A2/A4"), ..Lifecycle::on(defect) };
        let report = run(&lifecycle, 5, &[]);
        let what = report.violation.as_ref().map(|violation| violation.what.as_str()).unwrap_or_default();
        assert!(what.contains(&format!("{property}: ")), "{defect:?}: {what}\n{}", report.transcript());
    }
}

#[test]
fn a_server_that_ignores_preconditions_is_caught() {
    let lifecycle = Lifecycle { only: Some("A1/A3"), ..Lifecycle::on(Defect::IgnoresPreconditions) };
    only_the_defect_breaks(lifecycle, "A1: ", |effect| Fault::Delay(effect, Duration::from_secs(800)));
}

#[test]
fn a_disk_that_does_not_sync_is_caught_at_the_next_start() {
    // By the store itself, before any checker sees that an acknowledged write is gone.
    only_the_defect_breaks(Lifecycle::on(Defect::DropsSyncs), "was cut off", Fault::CrashAfter);
}
