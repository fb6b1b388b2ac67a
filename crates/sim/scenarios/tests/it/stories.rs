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

#[test]
fn a_cluster_comes_and_is_scaled_but_not_while_it_is_paused() {
    goes_well("bare");
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
