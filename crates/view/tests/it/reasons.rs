use capstan_view::why;
use serde_json::json;

use crate::cluster::{change, healthy, say, tree};

fn chain(objects: &[serde_json::Value]) -> Vec<String> {
    let why = why(&tree(objects)).expect("something is not as wanted");
    why.chain.iter().map(|link| format!("{} {}: {}", link.part, link.condition, link.message)).collect()
}

#[test]
fn nothing_is_to_be_said_of_a_healthy_cluster() {
    assert_eq!(why(&tree(&healthy())), None);
}

#[test]
fn the_chain_ends_at_the_deepest_part_that_is_not_as_wanted() {
    let mut objects = healthy();
    say(&mut objects, "Cluster/demo", &[("Available", "False", "NotAvailable", "the control plane is not")]);
    say(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", "a machine is not")],
    );
    say(
        &mut objects,
        "Machine/demo-cp-b",
        &[
            ("Ready", "False", "NotReady", "summed up"),
            ("InfrastructureReady", "False", "NotReady", "its SimMachine is not"),
        ],
    );
    say(&mut objects, "SimMachine/demo-cp-b", &[("Ready", "False", "Booting", "boots since a while")]);
    assert_eq!(
        chain(&objects),
        [
            "Cluster/demo Available: the control plane is not",
            "KubeadmControlPlane/demo-cp Available: a machine is not",
            "Machine/demo-cp-b InfrastructureReady: its SimMachine is not",
            "SimMachine/demo-cp-b Ready: boots since a while",
        ]
    );
    let cause = why(&tree(&objects)).expect("a cause").cause;
    assert_eq!((cause.part.as_str(), cause.code, cause.failed), ("SimMachine/demo-cp-b", None, false));
}

#[test]
fn what_failed_is_the_cause_even_if_others_wait_before_it() {
    let mut objects = healthy();
    say(&mut objects, "Machine/demo-cp-a", &[("Ready", "False", "NotReady", "waits")]);
    say(
        &mut objects,
        "SimMachine/demo-cp-c",
        &[("Ready", "False", "Refused", "E-CS-QUOTA: no room for another machine")],
    );
    let why = why(&tree(&objects)).expect("a cause");
    assert_eq!(why.cause.part, "SimMachine/demo-cp-c");
    assert_eq!((why.cause.code.as_deref(), why.cause.failed), (Some("E-CS-QUOTA"), true));
}

#[test]
fn what_is_needed_first_explains_what_comes_after() {
    let mut objects = healthy();
    say(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", "waits for the network")],
    );
    say(&mut objects, "SimCluster/demo", &[("Ready", "False", "NotReady", "the network is made")]);
    assert_eq!(
        chain(&objects).last().map(String::as_str),
        Some("SimCluster/demo Ready: the network is made")
    );
}

#[test]
fn a_deletion_is_explained_by_what_still_stands() {
    let mut objects = healthy();
    for uid in ["Cluster/demo", "KubeadmControlPlane/demo-cp", "Machine/demo-cp-a", "SimMachine/demo-cp-a"] {
        change(&mut objects, uid, |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
            object["metadata"]["finalizers"] = json!(["example.org/keep"]);
        });
    }
    objects.retain(|object| object["kind"] != "KubeadmConfig" && object["kind"] != "SimCluster");
    let why = why(&tree(&objects)).expect("it goes");
    assert_eq!(why.cause.part, "SimMachine/demo-cp-a");
    assert_eq!(why.chain.last().expect("a link").message, "waits for its finalizers: example.org/keep");
}

#[test]
fn what_could_not_be_looked_at_is_no_failure() {
    let mut objects = healthy();
    say(
        &mut objects,
        "Machine/demo-cp-a",
        &[
            ("Ready", "Unknown", "ReadyUnknown", ""),
            ("NodeHealthy", "Unknown", "InspectionFailed", "nobody could ask"),
            ("InfrastructureReady", "False", "Booting", "it boots"),
        ],
    );
    let why = why(&tree(&objects)).expect("something is not as wanted");
    assert_eq!(
        (why.cause.failed, why.chain.last().map(|link| link.message.as_str())),
        (false, Some("it boots"))
    );
}

#[test]
fn what_is_paused_or_blocked_says_so_before_what_merely_waits() {
    let mut objects = healthy();
    let waits = ("Initialized", "False", "NotInitialized", "");
    let blocked = "Scaling up from 0 to 1 replicas is blocked because SimMachineTemplate does not exist";
    say(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", ""), waits, ("ScalingUp", "True", "ScalingUp", blocked)],
    );
    for machine in ["demo-cp-a", "demo-cp-b", "demo-cp-c"] {
        objects.retain(|object| object["metadata"]["uid"] != format!("Machine/{machine}"));
    }
    assert_eq!(chain(&objects)[1], format!("KubeadmControlPlane/demo-cp ScalingUp: {blocked}"));
    assert!(why(&tree(&objects)).expect("a cause").cause.failed, "nobody but its user can go on");
    say(
        &mut objects,
        "Cluster/demo",
        &[
            ("Available", "False", "NotAvailable", ""),
            waits,
            ("Paused", "True", "Paused", "spec.paused is true"),
        ],
    );
    assert_eq!(chain(&objects)[0], "Cluster/demo Paused: spec.paused is true");
}

#[test]
fn a_change_that_nobody_has_looked_at_is_not_done() {
    let mut objects = healthy();
    change(&mut objects, "KubeadmControlPlane/demo-cp", |object| {
        object["metadata"]["generation"] = json!(2);
        object["status"]["observedGeneration"] = json!(1);
    });
    assert_eq!(
        chain(&objects)[1],
        "KubeadmControlPlane/demo-cp : its controller has not seen the last change yet"
    );
}

#[test]
fn a_machine_that_says_why_it_does_not_go_is_the_cause_while_nothing_below_it_was_asked_to_go() {
    let mut objects = healthy();
    let drain = "Drain not completed yet: * Pod default/web: cannot evict pod as it would violate the pod's \
                 disruption budget. The disruption budget web needs 3 healthy pods and has 3 currently";
    say(&mut objects, "Machine/demo-cp-a", &[("Deleting", "True", "DrainingNode", drain)]);
    change(&mut objects, "Machine/demo-cp-a", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
    });
    let why = why(&tree(&objects)).expect("it goes");
    assert_eq!((why.cause.part.as_str(), why.cause.going), ("Machine/demo-cp-a", true));
    let advice = why.cause.advice.expect("what to do");
    assert!(advice.turn == "user" && advice.mend.contains("PodDisruptionBudget"), "{advice:?}");
}
