//! Scenarios without faults; `cargo xtask simulate` runs them with faults.

use capstan_harness::run;
use capstan_scenarios::{ClusterScenario, all, named};

fn scenario(name: &str) -> ClusterScenario {
    named(name).expect("a scenario")
}

fn passes(name: &str) {
    let report = run(&scenario(name), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

macro_rules! scenarios {
    ($($claim:ident: $name:literal;)*) => {$(
        #[test]
        fn $claim() {
            passes($name);
        }
    )*};
}

// The missing ones take longer: `cargo xtask simulate --calm` runs all.
scenarios! {
    without_a_network_a_cluster_comes_and_is_scaled_but_not_while_it_is_paused: "bare";
    without_a_network_a_stripped_cluster_mends_itself_and_goes_without_a_trace: "bare-life";
    three_and_three_machines_become_a_cluster: "create";
    a_cluster_of_three_and_three_at_rest_is_not_written_to_for_ten_minutes: "idle";
    workers_are_scaled_both_ways: "scale-workers";
    a_control_plane_is_scaled_both_ways: "scale-control-plane";
    a_minor_upgrade_replaces_the_control_plane_and_then_the_workers: "upgrade";
    operations_report_the_steps_of_a_creation_an_upgrade_and_a_deletion: "upgrade-delete";
    a_dead_worker_is_replaced: "heal-worker";
    a_dead_machine_of_the_control_plane_is_replaced: "heal-control-plane";
    owners_and_finalizers_come_back: "strip";
    a_paused_cluster_is_left_alone: "pause";
    a_deleted_cluster_leaves_nothing_behind: "delete";
    a_pool_of_three_is_scaled_both_ways_upgraded_and_goes: "pool";
    a_pool_without_a_network_is_scaled_both_ways: "pool-bare";
    owners_and_finalizers_of_a_pool_come_back: "pool-strip";
    a_cluster_of_a_class_is_scaled_gets_a_variable_and_goes: "class";
    a_cluster_of_a_class_is_upgraded: "class-upgrade";
    an_upgrade_over_two_minors_passes_through_the_one_between: "class-chain";
    an_edit_of_a_class_replaces_its_machines: "class-edit";
    a_cluster_that_moves_to_another_class_is_scaled_and_goes: "class-rebase";
    a_pool_of_a_class_is_scaled_changed_upgraded_and_goes: "class-pool";
    a_cluster_of_a_class_at_rest_is_not_written_to: "class-idle";
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let scenario = scenario("bare");
    let first = run(&scenario, 11, &[]).trace.text();
    assert_eq!(first, run(&scenario, 11, &[]).trace.text());
    assert_ne!(first, run(&scenario, 12, &[]).trace.text(), "uids come from the seed");
}

#[test]
fn scenario_names_are_unique() {
    let mut names: Vec<&str> = all().iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
}
