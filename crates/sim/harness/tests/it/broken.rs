//! Every checker catches what it is there for: a controller with one flaw each.

use capstan_harness::{Fault, Report, crash_points, run};

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
