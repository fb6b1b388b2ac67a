//! Stories as they should go, and with a misfortune.

use capstan_harness::{Fault, Sample, run, survey};
use capstan_sim_cloudstack::Settings;

use crate::story::Act::{Create, Delete, ScaleControlPlane, ScaleWorkers};
use crate::story::Story;

fn goes_well(story: &Story) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.story());
}

#[test]
fn the_example_becomes_a_cluster_and_goes_without_a_trace() {
    goes_well(&Story::of(&[Create, Delete]));
}

#[test]
fn an_account_that_may_expunge_does_not_wait_for_the_server() {
    let settings = Settings { allow_user_expunge_recover_vm: true, ..Settings::default() };
    goes_well(&Story { settings, ..Story::of(&[Create, Delete]) });
}

#[test]
fn a_cluster_is_scaled_both_ways() {
    goes_well(&Story::of(&[
        Create,
        ScaleControlPlane(3),
        ScaleWorkers(3),
        ScaleControlPlane(1),
        ScaleWorkers(1),
        Delete,
    ]));
}

#[test]
fn nothing_is_made_twice_or_left_behind_whenever_the_process_dies_or_an_answer_is_lost() {
    let faults: [fn(usize) -> Fault; 3] = [Fault::CrashAfter, Fault::CrashBefore, Fault::LoseReply];
    // Every effect takes minutes: CAPSTAN_EVERY_EFFECT=1 asks for it.
    let every = if std::env::var_os("CAPSTAN_EVERY_EFFECT").is_some() { 1 } else { 31 };
    let survey = survey(&Story::of(&[Create, Delete]), 1, &faults, Sample { first: 3, every });
    assert!(survey.reference.violation.is_none(), "{}", survey.reference.story());
    let stories: Vec<String> = survey.broken.iter().map(capstan_harness::Report::story).collect();
    assert!(stories.is_empty(), "{} of {} runs:\n{}", stories.len(), survey.runs, stories.join("\n"));
}
