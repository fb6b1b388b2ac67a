//! Scripts without faults, and with one fault each.

use capstan_harness::{Fault, run};
use capstan_sim_cloudstack::Settings;

use crate::manifests::Shape;
use crate::story::Act::{Create, Delete, Destroy};
use crate::story::Script;

fn goes_well(story: &Script) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn the_example_becomes_a_cluster_and_goes_without_a_trace() {
    goes_well(&Script::of(&[Create, Delete]));
}

#[test]
fn an_account_that_may_expunge_does_not_wait_for_the_server() {
    let settings = Settings { allow_user_expunge_recover_vm: true, ..Settings::default() };
    goes_well(&Script { settings, bare: true, ..Script::of(&[Create, Delete]) });
}

#[test]
fn a_worker_that_somebody_destroyed_is_replaced_and_both_failure_domains_go_without_a_trace() {
    let shape = Shape { workers: 2, domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Destroy { control_plane: false }, Delete];
    goes_well(&Script { shape, ..Script::of(&acts) }.expunging_soon());
}

/// The number of the first call of a verb in a trace.
pub fn first(trace: &str, verb: &str) -> usize {
    let line = trace.lines().find(|line| line.contains(&format!(": call {verb}"))).expect("a call");
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
    number.parse().expect("a number")
}

#[test]
fn nothing_is_made_twice_or_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = Script { bare: true, ..Script::of(&[Create, Delete]) }.expunging_soon();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let number = |verb| first(&reference.trace.text(), verb);
    for fault in [
        Fault::CrashAfter(number("create-network")),
        Fault::LoseReply(number("take-address")),
        Fault::CrashAfter(number("deploy-vm")),
        Fault::LoseReply(number("destroy-vm")),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{}", report.transcript());
    }
}
