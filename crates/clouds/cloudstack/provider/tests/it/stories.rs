//! Stories as they should go.

use capstan_harness::run;
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
#[ignore = "takes a minute"]
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
