//! Scripts without faults, and with one fault each.

use capstan_harness::{Fault, run};

use crate::lifecycles;
use crate::story::Act::{Create, Delete};
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
fn three_and_three_in_two_zones_scale_upgrade_heal_and_go_without_a_trace() {
    goes_well(&lifecycles::whole());
}

/// The number of the first call of a verb in a trace.
fn first(trace: &str, verb: &str) -> usize {
    let line = trace.lines().find(|line| line.contains(&format!(": call {verb}"))).expect("a call");
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
    number.parse().expect("a number")
}

#[test]
fn nothing_is_created_twice_or_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = lifecycles::brief();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let number = |verb| first(&reference.trace.text(), verb);
    for fault in [
        Fault::CrashAfter(number("create-network")),
        Fault::LoseReply(number("create-balancer")),
        Fault::LoseReply(number("create-address")),
        Fault::CrashAfter(number("create-port")),
        Fault::CrashAfter(number("create-server")),
        Fault::LoseReply(number("create-server")),
        Fault::LoseReply(number("delete-server")),
        Fault::CrashAfter(number("delete-network")),
    ] {
        let report = run(&story, 1, &[fault]);
        assert!(report.violation.is_none(), "{fault:?}: {}", report.transcript());
    }
}
