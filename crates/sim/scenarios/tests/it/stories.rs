//! Stories as they should go; with misfortunes they go in `cargo xtask simulate`.

use capstan_harness::run;
use capstan_scenarios::{Story, all, named};

fn story(name: &str) -> Story {
    named(name).expect("a story")
}

fn goes_well(name: &str) {
    let report = run(&story(name), 1, &[]);
    assert!(report.violation.is_none(), "{}", report.story());
}

macro_rules! stories {
    ($($claim:ident: $name:literal;)*) => {$(
        #[test]
        fn $claim() {
            goes_well($name);
        }
    )*};
}

// Those that are missing here take longer: `cargo xtask simulate --calm` plays them all.
stories! {
    without_a_network_a_cluster_comes_and_is_scaled_but_not_while_it_is_paused: "bare";
    without_a_network_a_stripped_cluster_mends_itself_and_goes_without_a_trace: "bare-life";
    three_and_three_machines_become_a_cluster: "create";
    a_cluster_of_three_and_three_at_rest_is_not_written_to_for_ten_minutes: "idle";
    workers_are_scaled_both_ways: "scale-workers";
    a_control_plane_is_scaled_both_ways: "scale-control-plane";
    a_minor_upgrade_replaces_the_control_plane_and_then_the_workers: "upgrade";
    operations_tell_the_course_of_a_creation_an_upgrade_and_a_deletion: "course";
    a_dead_worker_is_replaced: "heal-worker";
    a_dead_machine_of_the_control_plane_is_replaced: "heal-control-plane";
    owners_and_finalizers_come_back: "strip";
    a_paused_cluster_is_left_alone: "pause";
    a_deleted_cluster_leaves_nothing_behind: "delete";
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let story = story("bare");
    let first = run(&story, 11, &[]).trace.text();
    assert_eq!(first, run(&story, 11, &[]).trace.text());
    assert_ne!(first, run(&story, 12, &[]).trace.text(), "uids come from the seed");
}

#[test]
fn every_story_has_a_name_of_its_own() {
    let mut names: Vec<&str> = all().iter().map(|story| story.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
}
