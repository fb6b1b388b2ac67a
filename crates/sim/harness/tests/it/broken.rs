//! Every checker catches what it is there for: a controller, a store or a server with one flaw each.

use std::time::Duration;

use capstan_harness::{Fault, Report, crash_points, run};

use crate::faulty::Ground;
use crate::story::Life;
use crate::widget::Flaw;

/// The properties that broke, in the plain run or with a fault at some effect.
fn broken(life: &Life, faults: &[fn(usize) -> Fault]) -> Vec<String> {
    let (reference, reports) = crash_points(life, 5, faults);
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
        (Flaw::Hasty, "S5"),
        (Flaw::DropsFinalizer, "S4"),
        (Flaw::TouchesOthers, "S3"),
        (Flaw::IgnoresPause, "S10"),
        (Flaw::BearsLate, "S11"),
        (Flaw::Restless, "L1/L2"),
    ] {
        let report = run(&Life::with(flaw), 5, &[]);
        let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
        assert_eq!(broken, Some(property), "{flaw:?}\n{}", report.story());
    }
}

#[test]
fn what_is_left_behind_is_caught() {
    // With nobody who looks at finalizers, it shows only at the end.
    let life = Life { only: Some("L3"), ..Life::with(Flaw::DropsFinalizer) };
    let report = run(&life, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some("L3"), "{}", report.story());
}

#[test]
fn decisions_on_old_state_are_caught() {
    let life = Life { write_through: false, ..Life::with(Flaw::None) };
    let report = run(&life, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some("S12"), "{}", report.story());
}

#[test]
fn taking_silence_for_failure_is_caught() {
    for (flaw, property) in [(Flaw::Assumes, "S2"), (Flaw::Repeats, "S1")] {
        let properties = broken(&Life::with(flaw), &[Fault::LoseReply]);
        assert!(properties.iter().any(|broken| broken == property), "{flaw:?}: {properties:?}");
    }
}

/// The ground breaks a property with a fault at one of the first effects, and a sound one holds it with the same fault.
fn only_the_faulty_ground_breaks(life: Life, property: &str, fault: fn(usize) -> Fault) {
    let broken = |life: &Life, fault: Fault| {
        let report = run(life, 5, &[fault]);
        report.violation.is_some_and(|violation| violation.what.contains(property))
    };
    let caught = (0..20).map(fault).find(|fault| broken(&life, *fault));
    let caught = caught.expect("what is wrong with the ground is caught");
    assert!(!broken(&Life { ground: Ground::Sound, ..life }, caught), "{caught}");
}

#[test]
fn servers_that_tell_less_or_more_than_happened_are_caught() {
    for (ground, property) in [
        (Ground::TellsTwice, "A2"),
        (Ground::TellsLate, "A2"),
        (Ground::TellsNothing, "A2"),
        (Ground::ListsLess, "A4"),
    ] {
        let life = Life { only: Some("A2/A4"), ..Life::on(ground) };
        let report = run(&life, 5, &[]);
        let what = report.violation.as_ref().map(|violation| violation.what.as_str()).unwrap_or_default();
        assert!(what.contains(&format!("{property}: ")), "{ground:?}: {what}\n{}", report.story());
    }
}

#[test]
fn a_server_that_forgets_what_a_write_was_guarded_by_is_caught() {
    let life = Life { only: Some("A1/A3"), ..Life::on(Ground::ForgetsGuards) };
    only_the_faulty_ground_breaks(life, "A1: ", |effect| Fault::Delay(effect, Duration::from_secs(800)));
}

#[test]
fn a_disk_that_says_synced_and_is_not_is_caught_at_the_next_start() {
    for (checked, property) in [("A1/A3", "A3: "), ("A2/A4", "A2: ")] {
        let life = Life { only: Some(checked), ..Life::on(Ground::ForgetsWrites) };
        only_the_faulty_ground_breaks(life, property, Fault::CrashAfter);
    }
}
