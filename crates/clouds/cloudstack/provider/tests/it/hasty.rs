//! Clusters that are deleted before the process that made something for them could record it.

use capstan_harness::{Fault, run};

use crate::lifecycles::{EXISTING, Ground, OWN_VPC, TIER};
use crate::stories::first;
use crate::story::Act::{CreateOrGiveUp, Delete};

/// The process dies after the first call of each verb, and the cluster is deleted before it is back.
fn leaves_nothing(ground: Ground, verbs: &[&str]) {
    let story = ground.script(&[CreateOrGiveUp, Delete]).expunging_soon();
    let reference = run(&story, 1, &[]);
    assert!(reference.violation.is_none(), "{}", reference.transcript());
    for verb in verbs {
        let report = run(&story, 1, &[Fault::CrashAfter(first(&reference.trace.text(), verb))]);
        assert!(report.violation.is_none(), "after {verb}: {}", report.transcript());
    }
}

#[test]
fn nothing_is_left_of_a_vpc_that_was_just_made() {
    leaves_nothing(OWN_VPC, &["create-vpc", "create-network", "take-address", "create-rule"]);
}

/// The machine is ordered right after the machines of the account were listed, and deleted within a second.
#[test]
fn a_machine_that_is_younger_than_the_last_list_is_not_taken_for_gone() {
    leaves_nothing(OWN_VPC, &["extend"]);
}

#[test]
fn nothing_is_left_on_a_tier_of_somebody_else() {
    leaves_nothing(TIER, &["take-address", "create-rule"]);
}

#[test]
fn nothing_is_left_on_a_network_and_an_address_of_somebody_else() {
    leaves_nothing(
        EXISTING,
        &["let-out", "create-rule", "let-in", "create-group", "deploy-vm", "forward-ssh", "open-firewall"],
    );
}
