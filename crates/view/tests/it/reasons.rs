use capstan_view::{Part, Problem, Tree, Why};
use serde_json::json;

use crate::cluster::{change, healthy, set_conditions, tree};

/// Why the tree is not ready, long after its last change.
fn why(tree: &Tree) -> Option<Why> {
    capstan_view::why(tree, "2100-01-01T00:00:00Z".parse().expect("a time"))
}

fn chain(objects: &[serde_json::Value]) -> Vec<String> {
    let why = why(&tree(objects)).expect("a cause");
    why.first.chain.iter().map(|link| format!("{} {}: {}", link.part, link.condition, link.message)).collect()
}

#[test]
fn a_healthy_cluster_has_no_cause() {
    assert_eq!(why(&tree(&healthy())), None);
}

#[test]
fn the_chain_ends_at_the_deepest_part_that_is_not_healthy() {
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "Cluster/demo",
        &[("Available", "False", "NotAvailable", "the control plane is not")],
    );
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", "a machine is not")],
    );
    set_conditions(
        &mut objects,
        "Machine/demo-cp-b",
        &[
            ("Ready", "False", "NotReady", "summed up"),
            ("InfrastructureReady", "False", "NotReady", "its SimMachine is not"),
        ],
    );
    set_conditions(
        &mut objects,
        "SimMachine/demo-cp-b",
        &[("Ready", "False", "Booting", "boots since a while")],
    );
    assert_eq!(
        chain(&objects),
        [
            "Cluster/demo Available: the control plane is not",
            "KubeadmControlPlane/demo-cp Available: a machine is not",
            "Machine/demo-cp-b InfrastructureReady: its SimMachine is not",
            "SimMachine/demo-cp-b Ready: boots since a while",
        ]
    );
    let cause = why(&tree(&objects)).expect("a cause").first.cause;
    assert_eq!((cause.part.as_str(), cause.code, cause.failed), ("SimMachine/demo-cp-b", None, false));
}

#[test]
fn a_failure_is_the_cause_even_if_earlier_parts_wait() {
    let mut objects = healthy();
    set_conditions(&mut objects, "Machine/demo-cp-a", &[("Ready", "False", "NotReady", "waits")]);
    set_conditions(
        &mut objects,
        "SimMachine/demo-cp-c",
        &[("Ready", "False", "Refused", "E-CS-QUOTA: no room for another machine")],
    );
    let why = why(&tree(&objects)).expect("a cause");
    assert_eq!(why.first.cause.part, "SimMachine/demo-cp-c");
    assert_eq!((why.first.cause.code.as_deref(), why.first.cause.failed), (Some("E-CS-QUOTA"), true));
}

#[test]
fn a_part_that_is_needed_first_is_the_cause() {
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", "waits for the network")],
    );
    set_conditions(&mut objects, "SimCluster/demo", &[("Ready", "False", "NotReady", "the network is made")]);
    assert_eq!(
        chain(&objects).last().map(String::as_str),
        Some("SimCluster/demo Ready: the network is made")
    );
}

#[test]
fn a_deletion_is_explained_by_what_is_left() {
    let mut objects = healthy();
    for uid in ["Cluster/demo", "KubeadmControlPlane/demo-cp", "Machine/demo-cp-a", "SimMachine/demo-cp-a"] {
        change(&mut objects, uid, |object| {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
            object["metadata"]["finalizers"] = json!(["example.org/keep"]);
        });
    }
    objects.retain(|object| object["kind"] != "KubeadmConfig" && object["kind"] != "SimCluster");
    let why = why(&tree(&objects)).expect("it is being deleted");
    assert_eq!(why.first.cause.part, "SimMachine/demo-cp-a");
    assert_eq!(why.first.chain.last().expect("a link").message, "waits for finalizers: example.org/keep");
}

/// A machine that could not be made failed before its deletion: nobody has to correct its template any more.
#[test]
fn what_is_deleted_with_its_parent_has_no_fix() {
    let mut objects = healthy();
    change(&mut objects, "Machine/demo-cp-a", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
    });
    let unfit =
        ("Ready", "False", "Unfit", "E-CS-TEMPLATE: the template is for v1.35: correct spec.template");
    set_conditions(&mut objects, "SimMachine/demo-cp-a", &[unfit]);
    let repeated = "* Machine demo-cp-a: E-CS-TEMPLATE: the template is for …";
    let summary = ("Available", "False", "NotAvailable", "");
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[summary, ("MachinesReady", "False", "NotReady", repeated)],
    );
    let deleting = |message| ("Deleting", "True", "Deleting", message);
    for (message, part, problem, expected) in [
        ("drains", "Machine/demo-cp-a", Problem::Deleting, "drains"),
        (
            "",
            "SimMachine/demo-cp-a",
            Problem::StillExists,
            "the controller of its parent has not deleted it yet",
        ),
    ] {
        set_conditions(&mut objects, "Machine/demo-cp-a", &[deleting(message)]);
        let why = why(&tree(&objects)).expect("it is being deleted");
        assert!(why.others.is_empty(), "{:?}", why.others);
        let last = why.first.chain.last().expect("a link").message.clone();
        let cause = why.first.cause;
        assert_eq!((cause.part.as_str(), cause.problem, last.as_str()), (part, problem, expected));
        assert_eq!((cause.code, cause.advice, cause.failed), (None, None, false));
    }
    // A cloud that does not answer keeps the deletion from its end.
    let silent = ("CloudReachable", "False", "Unreachable", "E-CS-UNREACHABLE: no answer");
    set_conditions(&mut objects, "SimMachine/demo-cp-a", &[("Ready", "True", "Running", ""), silent]);
    let causes: Vec<_> =
        why(&tree(&objects)).expect("a cause").blockers().map(|it| it.cause.clone()).collect();
    assert!(causes.iter().any(|it| it.code.as_deref() == Some("E-CS-UNREACHABLE")), "{causes:?}");
}

#[test]
fn a_failed_inspection_is_not_a_failure() {
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "Machine/demo-cp-a",
        &[
            ("Ready", "Unknown", "ReadyUnknown", ""),
            ("NodeHealthy", "Unknown", "InspectionFailed", "nobody could ask"),
            ("InfrastructureReady", "False", "Booting", "it boots"),
        ],
    );
    let why = why(&tree(&objects)).expect("a cause");
    assert_eq!(
        (why.first.cause.failed, why.first.chain.last().map(|link| link.message.as_str())),
        (false, Some("it boots"))
    );
}

#[test]
fn paused_and_blocked_come_before_waiting() {
    let mut objects = healthy();
    let waits = ("Initialized", "False", "NotInitialized", "");
    let blocked = "Scaling up from 0 to 1 replicas is blocked because SimMachineTemplate does not exist";
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", ""), waits, ("ScalingUp", "True", "ScalingUp", blocked)],
    );
    for machine in ["demo-cp-a", "demo-cp-b", "demo-cp-c"] {
        objects.retain(|object| object["metadata"]["uid"] != format!("Machine/{machine}"));
    }
    assert_eq!(chain(&objects)[1], format!("KubeadmControlPlane/demo-cp ScalingUp: {blocked}"));
    assert!(why(&tree(&objects)).expect("a cause").first.cause.failed, "only a user can unblock it");
    set_conditions(
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
fn an_unobserved_change_is_a_cause() {
    let mut objects = healthy();
    change(&mut objects, "KubeadmControlPlane/demo-cp", |object| {
        object["metadata"]["generation"] = json!(2);
        object["status"]["observedGeneration"] = json!(1);
    });
    assert_eq!(
        chain(&objects)[1],
        "KubeadmControlPlane/demo-cp : its controller has not observed the last change yet"
    );
}

#[test]
fn a_machine_that_reports_a_blocked_drain_is_the_cause() {
    let mut objects = healthy();
    let drain = "Drain not completed yet: * Pod default/web: cannot evict pod as it would violate the pod's \
                 disruption budget. The disruption budget web needs 3 healthy pods and has 3 currently";
    set_conditions(&mut objects, "Machine/demo-cp-a", &[("Deleting", "True", "DrainingNode", drain)]);
    change(&mut objects, "Machine/demo-cp-a", |object| {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:50Z");
    });
    let why = why(&tree(&objects)).expect("it is being deleted");
    assert_eq!((why.first.cause.part.as_str(), why.first.cause.deleting), ("Machine/demo-cp-a", true));
    let advice = why.first.cause.advice.expect("what to do");
    assert!(advice.fixed_by == "user" && advice.fix.contains("PodDisruptionBudget"), "{advice:?}");
}

#[test]
fn problems_are_named_by_what_they_are() {
    let gone = ("Ready", "False", "Gone", "the virtual machine does not exist any more");
    let stopped = ("Ready", "False", "Stopped", "the virtual machine is Stopped in CloudStack");
    let booting = ("Ready", "False", "Booting", "the machine executes its user data");
    let summary = ("Ready", "False", "NotReady", "");
    let node = |message| ("NodeReady", "False", "NodeNotReady", message);
    let cni = node(
        "* Node.Ready: container runtime network not ready: NetworkReady=false cni plugin not initialized",
    );
    let not_joined = node("Waiting for a Node with spec.providerID sim://1 to exist");
    let sim = "SimMachine/demo-cp-b";
    let machine = "Machine/demo-cp-b";
    for (uid, conditions, problem, failed, command) in [
        (
            sim,
            &[gone][..],
            Problem::DeletedInCloud,
            true,
            "capstan delete machine demo-cp-b -n default --yes",
        ),
        (sim, &[stopped], Problem::StoppedInCloud, true, "capstan delete machine demo-cp-b -n default --yes"),
        (sim, &[booting], Problem::Starting, false, "capstan console demo-cp-b -n default"),
        (
            machine,
            &[summary, cni],
            Problem::NoCni,
            true,
            "kubectl --kubeconfig demo.kubeconfig apply -f CNI.yaml",
        ),
        (machine, &[summary, not_joined], Problem::NotJoined, false, "capstan console demo-cp-b -n default"),
    ] {
        let mut objects = healthy();
        set_conditions(&mut objects, uid, conditions);
        let cause = why(&tree(&objects)).expect("a cause").first.cause;
        assert_eq!((cause.part.as_str(), cause.problem, cause.failed), (uid, problem, failed));
        let commands = cause.advice.expect("advice").commands;
        assert!(commands.iter().any(|it| it == command), "{problem:?}: {commands:?}");
    }
}

#[test]
fn a_reference_is_missing_only_if_the_object_does_not_exist() {
    let mut objects = healthy();
    let waits =
        ("InfrastructureReady", "False", "NotReady", "SimCluster status.initialization.provisioned is false");
    let absent = ("InfrastructureReady", "False", "DoesNotExist", "SimCluster does not exist");
    let summary = ("Available", "False", "NotAvailable", "");
    set_conditions(&mut objects, "Cluster/demo", &[summary, waits]);
    let waiting = why(&tree(&objects)).expect("a cause").first.cause;
    assert_eq!((waiting.part.as_str(), waiting.problem), ("Cluster/demo", Problem::Waiting));

    objects.retain(|object| object["kind"] != "SimCluster");
    set_conditions(&mut objects, "Cluster/demo", &[summary, absent]);
    let missing = why(&tree(&objects)).expect("a cause").first.cause;
    assert_eq!((missing.part.as_str(), missing.problem), ("SimCluster/demo", Problem::DoesNotExist));
    assert_eq!(missing.advice.expect("advice").commands, ["kubectl edit cluster demo -n default"]);
}

#[test]
fn a_cluster_that_answered_before_is_unreachable_and_its_machines_are_not_the_cause() {
    let mut objects = healthy();
    let probe = ("RemoteConnectionProbe", "False", "ProbeFailed", "Remote connection probe failed");
    let summary = ("Available", "False", "NotAvailable", "");
    for name in ["demo-cp-a", "demo-cp-b"] {
        let unknown = ("NodeHealthy", "Unknown", "ConnectionDown", "Last successful probe at 00:00:00");
        let conditions = [("Ready", "Unknown", "ReadyUnknown", ""), unknown];
        set_conditions(&mut objects, &format!("Machine/{name}"), &conditions);
    }
    set_conditions(&mut objects, "Cluster/demo", &[summary, probe]);
    let starting = why(&tree(&objects)).expect("a cause").first.cause;
    assert_ne!(starting.problem, Problem::Unreachable, "it has never answered");

    let was_up = ("ControlPlaneInitialized", "True", "Initialized", "");
    set_conditions(&mut objects, "Cluster/demo", &[summary, probe, was_up]);
    change(&mut objects, "Cluster/demo", |cluster| {
        cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "10.0.0.1", "port": 6443});
    });
    let why = why(&tree(&objects)).expect("a cause");
    let cause = &why.first.cause;
    assert_eq!((cause.part.as_str(), cause.problem), ("Cluster/demo", Problem::Unreachable));
    assert_eq!(cause.code.as_deref(), Some("E-WORKLOAD-UNREACHABLE"));
    assert_eq!(cause.endpoint.as_deref(), Some("10.0.0.1:6443"));
    assert_eq!(why.others, []);
}

#[test]
fn every_blocker_is_listed_and_the_same_problem_only_once() {
    let mut objects = healthy();
    for name in ["demo-cp-a", "demo-cp-b"] {
        let message = format!("E-CS-QUOTA: quota exceeded for {name}");
        set_conditions(
            &mut objects,
            &format!("SimMachine/{name}"),
            &[("Ready", "False", "Refused", &message)],
        );
        // Parents repeat what their children say.
        let repeated = ("InfrastructureReady", "False", "Refused", message.as_str());
        set_conditions(
            &mut objects,
            &format!("Machine/{name}"),
            &[("Ready", "False", "NotReady", ""), repeated],
        );
    }
    let gone = ("Ready", "False", "Gone", "the virtual machine does not exist any more");
    set_conditions(&mut objects, "SimMachine/demo-cp-c", &[gone]);
    set_conditions(
        &mut objects,
        "SimCluster/demo",
        &[("Ready", "False", "NotReady", "E-CS-CAPACITY: no address is free")],
    );
    let why = why(&tree(&objects)).expect("causes");
    let listed: Vec<_> = why
        .blockers()
        .map(|it| (it.cause.part.as_str(), it.cause.code.as_deref().unwrap_or_default(), it.also.clone()))
        .collect();
    assert_eq!(
        listed,
        [
            ("SimCluster/demo", "E-CS-CAPACITY", vec![]),
            ("SimMachine/demo-cp-a", "E-CS-QUOTA", vec!["SimMachine/demo-cp-b".to_owned()]),
            ("SimMachine/demo-cp-c", "", vec![]),
        ]
    );
}

#[test]
fn a_condition_that_only_aggregates_those_of_children_is_no_second_problem() {
    let blocked = "Scaling up from 0 to 3 replicas is blocked because:\n* SimMachineTemplate does not exist";
    let mut objects = healthy();
    set_conditions(
        &mut objects,
        "KubeadmControlPlane/demo-cp",
        &[("Available", "False", "NotAvailable", ""), ("ScalingUp", "True", "ScalingUp", blocked)],
    );
    let aggregated = format!("* KubeadmControlPlane demo-cp:\n  * {}", blocked.replace('\n', "\n    "));
    let of_cluster =
        [("Available", "False", "NotAvailable", ""), ("ScalingUp", "True", "ScalingUp", &*aggregated)];
    set_conditions(&mut objects, "Cluster/demo", &of_cluster);
    let answer = why(&tree(&objects)).expect("a cause");
    assert_eq!((answer.first.cause.part.as_str(), answer.others.len()), ("KubeadmControlPlane/demo-cp", 0));

    // A problem of the cluster's own is listed beside it.
    let own = [
        ("Available", "False", "NotAvailable", ""),
        ("ScalingUp", "True", "ScalingUp", "is blocked because: * SimCluster does not exist"),
    ];
    set_conditions(&mut objects, "Cluster/demo", &own);
    assert_eq!(why(&tree(&objects)).expect("causes").others.len(), 1);
}

#[test]
fn a_paused_cluster_is_the_only_blocker() {
    let mut objects = healthy();
    let paused = ("Paused", "True", "Paused", "Cluster spec.paused is set to true");
    set_conditions(&mut objects, "Cluster/demo", &[("Available", "False", "NotAvailable", ""), paused]);
    set_conditions(
        &mut objects,
        "SimMachine/demo-cp-a",
        &[("Ready", "False", "Refused", "E-CS-QUOTA: full"), paused],
    );
    let why = why(&tree(&objects)).expect("a cause");
    assert_eq!((why.first.cause.problem, why.others.len()), (Problem::Paused, 0));
    assert_eq!(why.first.cause.advice.expect("advice").commands, ["capstan resume demo -n default"]);
}

#[test]
fn a_cluster_is_paused_before_its_controller_says_so() {
    let mut objects = healthy();
    let written = "2026-01-01T00:05:00Z";
    change(&mut objects, "Cluster/demo", |cluster| {
        cluster["spec"]["paused"] = true.into();
        let fields = json!({"f:spec": {"f:paused": {}}});
        cluster["metadata"]["managedFields"] =
            json!([{"manager": "capstan", "operation": "Update", "time": written, "fieldsV1": fields}]);
    });
    let paused = ("Paused", "True", "Paused", "Cluster spec.paused is set to true");
    set_conditions(&mut objects, "SimMachine/demo-cp-a", &[("Ready", "False", "Waiting", ""), paused]);
    let why = why(&tree(&objects)).expect("a cause");
    assert_eq!((why.first.cause.part.as_str(), why.others.len()), ("Cluster/demo", 0));
    assert_eq!(why.first.cause.problem, Problem::Paused);
    let part = Part::of(&objects[0]).expect("a part");
    let condition = part.conditions.iter().find(|condition| condition.kind == "Paused");
    assert_eq!(condition.map(|paused| paused.last_transition_time.to_string()).as_deref(), Some(written));
}

#[test]
fn a_first_machine_that_runs_and_initializes_nothing_has_not_joined() {
    let mut objects = healthy();
    set_conditions(&mut objects, "Cluster/demo", &[("Available", "False", "NotAvailable", "")]);
    let waiting = "Waiting for Cluster control plane to be initialized";
    let running = [
        ("Ready", "False", "NotReady", ""),
        ("BootstrapConfigReady", "True", "Ready", ""),
        ("InfrastructureReady", "True", "Ready", ""),
        ("NodeHealthy", "Unknown", "WaitingForControlPlaneInitialized", waiting),
    ];
    set_conditions(&mut objects, "Machine/demo-cp-a", &running);
    let cause = why(&tree(&objects)).expect("a cause").first.cause;
    assert_eq!((cause.part.as_str(), cause.problem), ("Machine/demo-cp-a", Problem::NotJoined));
    let fix = cause.advice.expect("advice").fix;
    assert!(fix.contains("the endpoint"), "{fix}");
    set_conditions(&mut objects, "Machine/demo-cp-a", &[running[0], running[3]]);
    let cause = why(&tree(&objects)).expect("a cause").first.cause;
    assert_ne!(cause.problem, Problem::NotJoined, "it does not run yet");
}

#[test]
fn states_of_openstack_servers_have_the_words_of_other_clouds() {
    for (reason, message, problem) in [
        ("InstanceDeleted", "The server was unexpectedly deleted", Problem::DeletedInCloud),
        ("InstanceNotReady", "the server is in state SHUTOFF", Problem::StoppedInCloud),
        ("InstanceNotReady", "the server is in state REBOOT", Problem::Waiting),
    ] {
        let mut objects = healthy();
        set_conditions(&mut objects, "Machine/demo-cp-b", &[("Ready", "False", "NotReady", "")]);
        set_conditions(&mut objects, "SimMachine/demo-cp-b", &[("Ready", "False", reason, message)]);
        let cause = why(&tree(&objects)).expect("a cause").first.cause;
        assert_eq!((cause.part.as_str(), cause.problem), ("SimMachine/demo-cp-b", problem), "{message}");
    }
}

#[test]
fn a_silent_cloud_is_reported_of_parts_that_are_ready() {
    let mut objects = healthy();
    let silent = ("CloudReachable", "False", "Unreachable", "E-CS-UNREACHABLE: no answer");
    set_conditions(&mut objects, "SimMachine/demo-cp-b", &[("Ready", "True", "Running", ""), silent]);
    let cause = why(&tree(&objects)).expect("a cause").first.cause;
    assert_eq!(
        (cause.part.as_str(), cause.code.as_deref()),
        ("SimMachine/demo-cp-b", Some("E-CS-UNREACHABLE"))
    );
}

#[test]
fn a_kubelet_that_stopped_has_advice() {
    let mut objects = healthy();
    let stopped = "* Node.AllConditions: Kubelet stopped posting node status.";
    set_conditions(
        &mut objects,
        "Machine/demo-cp-b",
        &[("Ready", "False", "NotReady", ""), ("NodeHealthy", "Unknown", "NodeNotHealthy", stopped)],
    );
    let advice = why(&tree(&objects)).expect("a cause").first.cause.advice.expect("advice");
    assert!(advice.fix.starts_with("the kubelet does not report"), "{}", advice.fix);
}
