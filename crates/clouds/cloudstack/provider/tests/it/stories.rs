//! Stories as they should go, and with a misfortune.

use capstan_harness::{Fault, Sample, inject_faults, run};
use capstan_sim_cloudstack::Settings;

use crate::manifests::Shape;
use crate::story::Act::{Create, Delete, Destroy, ScaleControlPlane, ScaleWorkers, Upgrade};
use crate::story::Story;

fn goes_well(story: &Story) {
    let report = run(story, 1, &[]);
    assert!(report.violation.is_none(), "{}", report.transcript());
}

#[test]
fn the_example_becomes_a_cluster_and_goes_without_a_trace() {
    goes_well(&Story::of(&[Create, Delete]));
}

#[test]
fn an_account_that_may_expunge_does_not_wait_for_the_server() {
    let settings = Settings { allow_user_expunge_recover_vm: true, ..Settings::default() };
    goes_well(&Story { settings, bare: true, ..Story::of(&[Create, Delete]) });
}

#[test]
fn a_worker_that_somebody_destroyed_is_replaced_and_both_failure_domains_go_without_a_trace() {
    let shape = Shape { workers: 2, domains: 2, ..Shape::EXAMPLE };
    let acts = [Create, Destroy { control_plane: false }, Delete];
    goes_well(&Story { shape, ..Story::of(&acts) }.expunging_soon());
}

/// A cluster of 3+3 in two failure domains with everything that may befall it.
fn life() -> Story {
    let shape = Shape { control_plane: 3, workers: 3, version: "v1.35.0", domains: 2 };
    let acts = [
        Create,
        ScaleWorkers(4),
        ScaleWorkers(2),
        Upgrade("v1.36.0"),
        Destroy { control_plane: false },
        Destroy { control_plane: true },
        ScaleControlPlane(1),
        ScaleControlPlane(3),
        Delete,
    ];
    Story { shape, ..Story::of(&acts) }
}

#[test]
#[ignore = "takes minutes: the whole life of a cluster"]
fn a_cluster_in_two_failure_domains_is_scaled_upgraded_healed_and_goes_without_a_trace() {
    goes_well(&life());
}

/// The number of the first call of a verb in a trace.
pub fn first(trace: &str, verb: &str) -> usize {
    let line = trace.lines().find(|line| line.contains(&format!(": call {verb}"))).expect("a call");
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#')).expect("a number");
    number.parse().expect("a number")
}

const FAULTS: [fn(usize) -> Fault; 2] = [Fault::CrashAfter, Fault::LoseReply];

#[test]
fn nothing_is_made_twice_or_left_behind_when_the_process_dies_or_an_answer_is_lost() {
    let story = Story { bare: true, ..Story::of(&[Create, Delete]) }.expunging_soon();
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

/// The numbers of all calls to the cloud in a trace.
fn calls(trace: &str) -> Vec<usize> {
    let calls = trace.lines().filter(|line| line.contains(": call "));
    let numbers = calls.filter_map(|line| line.split_whitespace().find_map(|word| word.strip_prefix('#')));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Which of many runs are made: `PART=2/8` makes the third of eight parts, so that several machines can share them.
fn part() -> (usize, usize) {
    let given = std::env::var("PART").unwrap_or_else(|_| "0/1".to_owned());
    let parts = given.split_once('/').and_then(|(one, of)| Some((one.parse().ok()?, of.parse().ok()?)));
    parts.filter(|(one, of)| one < of).expect("PART is a number, a slash, and how many parts there are")
}

/// Plays a story once for every call to the cloud and every fault at it.
fn survives_at_every_call(story: &Story) {
    let reference = run(story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    let (one, of) = part();
    let (mut runs, mut broken) = (0, Vec::new());
    for call in calls(&reference.trace.text()).into_iter().skip(one).step_by(of) {
        for fault in FAULTS {
            let report = run(story, 1, &[fault(call)]);
            runs += 1;
            if let Some(violation) = &report.violation {
                broken.push(format!("{}: {violation}", fault(call)));
            }
        }
    }
    assert!(broken.is_empty(), "{} of {runs} runs:\n{}", broken.len(), broken.join("\n"));
}

#[test]
#[ignore = "takes many minutes: every call to the cloud, each with two faults"]
fn nothing_is_made_twice_or_left_behind_whatever_call_is_disturbed() {
    survives_at_every_call(&Story {
        bare: true,
        ..Story::of(&[Create, ScaleWorkers(2), ScaleWorkers(1), Delete])
    });
}

#[test]
#[ignore = "takes hours: every call to the cloud of the whole life, each with two faults"]
fn nothing_is_made_twice_or_left_behind_whatever_call_of_a_life_is_disturbed() {
    survives_at_every_call(&life());
}

#[test]
#[ignore = "takes many minutes: every effect of the story, each with three faults"]
fn nothing_is_made_twice_or_left_behind_whatever_effect_is_disturbed() {
    let faults = [FAULTS[0], FAULTS[1], Fault::CrashBefore];
    let story = Story { bare: true, ..Story::of(&[Create, Delete]) };
    let survey = inject_faults(&story, 1, &faults, Sample::ALL);
    assert!(survey.reference.violation.is_none(), "{}", survey.reference.transcript());
    let stories: Vec<String> = survey.broken.iter().map(capstan_harness::Report::transcript).collect();
    assert!(stories.is_empty(), "{} of {} runs:\n{}", stories.len(), survey.runs, stories.join("\n"));
}
