//! Every checker catches its defect: the whole management cluster with one defective controller.

use capstan_controller::Runtime;
use capstan_guest::Site;
use capstan_harness::run;
use capstan_scenarios::{Extra, named};

use crate::saboteur::{Flaw, Saboteur};

fn caught(scenario: &str, flaw: Flaw, extra: Extra, property: &str) {
    let mut scenario = named(scenario).expect("a scenario");
    scenario.extra = Some(extra);
    let report = run(&scenario, 5, &[]);
    let broken = report.violation.as_ref().map(|violation| violation.property.as_str());
    assert_eq!(broken, Some(property), "{flaw:?}\n{}", report.transcript());
}

/// One test per defect, so that they run in parallel.
macro_rules! caught {
    ($($test:ident: $scenario:literal, $flaw:ident, $property:literal;)+) => {$(
        #[test]
        fn $test() {
            fn extra(site: &Site, runtime: &mut Runtime) {
                runtime.add(Saboteur::new(site, Flaw::$flaw));
            }
            caught($scenario, Flaw::$flaw, extra, $property);
        }
    )+};
}

caught! {
    a_second_machine_for_a_machine_is_caught: "bare", DuplicatesVm, "S1";
    one_machine_too_many_is_caught: "bare", AddsMachine, "S2";
    touching_a_foreign_machine_is_caught: "bare", TouchesOthers, "S3";
    a_finalizer_that_goes_too_early_is_caught: "bare", DropsFinalizer, "S4";
    a_call_without_intent_is_caught: "bare", SkipsIntent, "S5";
    the_loss_of_etcds_quorum_is_caught: "bare", CostsQuorum, "S6";
    a_second_initialization_is_caught: "bare", InitializesAgain, "S7";
    a_worker_newer_than_its_control_plane_is_caught: "bare", UpgradesWorkersFirst, "S8";
    a_machine_destroyed_with_pods_on_it_is_caught: "bare", SkipsDrain, "S9";
    acting_on_a_paused_cluster_is_caught: "bare", IgnoresPause, "S10";
    a_machine_for_a_cluster_being_deleted_is_caught: "small", CreatesWhileDeleting, "S11";
    a_token_in_a_status_is_caught: "bare", LeaksToken, "S13";
    a_shared_address_is_caught: "bare", SharesAddress, "S17";
}
