//! Every checker catches what it is there for: the whole plane with one saboteur in it.

use capstan_controller::Runtime;
use capstan_guest::Site;
use capstan_harness::run;
use capstan_scenarios::{Extra, named};

use crate::saboteur::{Flaw, Saboteur};

fn caught(story: &str, flaw: Flaw, extra: Extra, property: &str) {
    let mut story = named(story).expect("a story");
    story.extra = Some(extra);
    let report = run(&story, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some(property), "{flaw:?}\n{}", report.story());
}

/// One test for each flaw, so that they run side by side.
macro_rules! caught {
    ($($test:ident: $story:literal, $flaw:ident, $property:literal;)+) => {$(
        #[test]
        fn $test() {
            fn extra(site: &Site, runtime: &mut Runtime) {
                runtime.add(Saboteur::new(site, Flaw::$flaw));
            }
            caught($story, Flaw::$flaw, extra, $property);
        }
    )+};
}

caught! {
    a_second_machine_for_a_machine_is_caught: "bare", Copies, "S1";
    one_machine_too_many_is_caught: "bare", Adds, "S2";
    touching_somebody_elses_machine_is_caught: "bare", TouchesOthers, "S3";
    a_finalizer_that_goes_too_early_is_caught: "bare", DropsFinalizer, "S4";
    a_call_without_intent_is_caught: "bare", Hasty, "S5";
    the_loss_of_etcds_quorum_is_caught: "bare", CostsQuorum, "S6";
    a_second_founding_is_caught: "bare", FoundsAgain, "S7";
    a_worker_before_its_control_plane_is_caught: "bare", RushesWorkers, "S8";
    a_machine_destroyed_with_pods_on_it_is_caught: "bare", SkipsDrain, "S9";
    acting_on_a_paused_cluster_is_caught: "bare", IgnoresPause, "S10";
    a_machine_for_a_cluster_that_goes_is_caught: "small", FeedsTheDying, "S11";
    a_token_in_a_status_is_caught: "bare", Blabs, "S13";
    a_shared_address_is_caught: "bare", Confuses, "S17";
}
