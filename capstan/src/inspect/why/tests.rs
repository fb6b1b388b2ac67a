//! Answers of `capstan why`, as users read them.

use capstan_view::{Part, Tree, why};
use serde_json::{Value, json};

use super::explain;
use crate::plugins::Plugins;

fn object(kind: &str, name: &str, owner: &str, conditions: Value) -> Value {
    let conditions: Vec<Value> = conditions
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            json!({"type": it[0], "status": it[1], "reason": it[2], "message": it[3],
                "lastTransitionTime": "2026-01-01T00:01:30Z"})
        })
        .collect();
    json!({
        "kind": kind,
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("{kind}/{name}"),
            "ownerReferences": [{"apiVersion": "x/v1", "kind": "x", "name": "x", "uid": owner, "controller": true}],
        },
        "status": {"conditions": conditions},
    })
}

/// The answer for a cluster of these objects, two minutes after their creation.
fn answer(objects: &[Value]) -> String {
    answer_at("2026-01-01T00:02:00Z", objects)
}

fn answer_at(now: &str, objects: &[Value]) -> String {
    let tree = Tree::below("Cluster/demo", objects.iter().filter_map(Part::of).collect()).expect("a tree");
    let now = now.parse().expect("a time");
    let why = why(&tree, now).expect("a cause");
    explain(&Plugins::new(crate::providers()), &tree, &why, now)
}

fn machine(name: &str, conditions: Value) -> [Value; 2] {
    let owner = format!("Machine/{name}");
    [
        object("Machine", name, "Cluster/demo", json!([["Ready", "False", "NotReady", ""]])),
        object("SimMachine", name, &owner, conditions),
    ]
}

fn cluster(conditions: Value) -> Value {
    object("Cluster", "demo", "", conditions)
}

const NOT_AVAILABLE: [&str; 4] = ["Available", "False", "NotAvailable", "* WorkersAvailable: 0 of 2"];

#[test]
fn a_failure_with_a_code_shows_the_fix_of_the_catalogue() {
    let failure = "E-SIM-REFUSED: no host has the capacity; next try at 2026-01-01T00:02:40Z";
    let [machine, infrastructure] = machine("w1", json!([["Ready", "False", "DeployFailed", failure]]));
    insta::assert_snapshot!(answer(&[cluster(json!([NOT_AVAILABLE])), machine, infrastructure]));
}

#[test]
fn every_problem_is_listed() {
    let unread = json!([["Ready", "False", "OrderFailed", "E-SIM-BOOT-DATA: the Secret has no value"]]);
    let gone = json!([["Ready", "False", "Gone", "the virtual machine does not exist any more"]]);
    let mut objects = vec![cluster(json!([NOT_AVAILABLE]))];
    objects.extend(machine("w1", unread.clone()));
    objects.extend(machine("w2", unread));
    objects.extend(machine("w3", gone));
    insta::assert_snapshot!(answer(&objects));
}

#[test]
fn an_unreachable_cluster_shows_its_address() {
    let mut cluster = cluster(json!([
        NOT_AVAILABLE,
        ["ControlPlaneInitialized", "True", "Initialized", ""],
        ["RemoteConnectionProbe", "False", "ProbeFailed", "Remote connection probe failed"],
    ]));
    cluster["spec"]["controlPlaneEndpoint"] = json!({"host": "10.0.0.1", "port": 6443});
    insta::assert_snapshot!(answer(&[cluster]));
}

#[test]
fn a_missing_object_is_named() {
    let absent = ["InfrastructureReady", "False", "DoesNotExist", "SimCluster does not exist"];
    let mut cluster = cluster(json!([NOT_AVAILABLE, absent]));
    cluster["spec"]["infrastructureRef"] = json!({"kind": "SimCluster", "name": "demo"});
    insta::assert_snapshot!(answer(&[cluster]));
}

#[test]
fn nodes_without_a_cni_get_the_command_that_installs_one() {
    let message = "* Node.Ready: container runtime network not ready: cni plugin not initialized";
    let conditions =
        json!([["Ready", "False", "NotReady", ""], ["NodeReady", "False", "NodeNotReady", message]]);
    let machine = object("Machine", "w1", "Cluster/demo", conditions);
    let objects = [cluster(json!([NOT_AVAILABLE])), machine];
    // A ClusterResourceSet may still apply it in the first minute.
    assert!(!answer(&objects).contains("CNI"), "{}", answer(&objects));
    insta::assert_snapshot!(answer_at("2026-01-01T00:03:00Z", &objects));
}

#[test]
fn a_paused_cluster_shows_how_to_resume_it() {
    let paused = ["Paused", "True", "Paused", "Cluster spec.paused is set to true"];
    insta::assert_snapshot!(answer(&[cluster(json!([NOT_AVAILABLE, paused]))]));
}

#[test]
fn a_blocked_drain_shows_the_budget() {
    let drain = "Drain not completed yet:\n* Pod default/web: cannot evict pod as it would violate the pod's disruption \
                 budget. The disruption budget web needs 3 healthy pods and has 3 currently";
    let mut machine =
        object("Machine", "w1", "Cluster/demo", json!([["Deleting", "True", "DrainingNode", drain]]));
    machine["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    insta::assert_snapshot!(answer(&[cluster(json!([NOT_AVAILABLE])), machine]));
}

#[test]
fn a_cluster_stays_ready_while_its_cloud_does_not_answer() {
    let ready = json!(["Ready", "True", "Running", ""]);
    let silent = "E-SIM-SITE: the site at http://10.0.0.9:7480 does not answer: refused; the rest of the status is as last \
                  observed";
    let mut objects = vec![cluster(json!([["Available", "True", "Available", ""]]))];
    for name in ["w1", "w2"] {
        let silent = json!(["CloudReachable", "False", "Unreachable", silent]);
        let [mut machine, infrastructure] = machine(name, json!([ready, silent]));
        machine["status"]["conditions"][0]["status"] = "True".into();
        objects.extend([machine, infrastructure]);
    }
    let text = answer(&objects);
    let verdict = "Cluster/demo is ready, but the cloud of SimMachine/w1 does not answer (and 1 more)\n";
    assert!(text.starts_with(verdict), "{text}");
    let silent = json!([ready, ["CloudReachable", "False", "Unreachable", silent]]);
    objects.push(object("SimCluster", "demo", "Cluster/demo", silent));
    let text = answer(&objects);
    assert!(text.starts_with("Cluster/demo is ready, but has 2 problems\n"), "{text}");
}

#[test]
fn a_cloud_that_was_not_asked_cannot_be_used() {
    let incomplete = "E-CS-SECRET: Secret default/keys has no text in its field api-key";
    let conditions =
        json!([["Ready", "True", "Running", ""], ["CloudReachable", "False", "SecretInvalid", incomplete]]);
    let ready = cluster(json!([["Available", "True", "Available", ""]]));
    let text = answer(&[ready, object("SimCluster", "demo", "Cluster/demo", conditions)]);
    let verdict = "Cluster/demo is ready, but the cloud of SimCluster/demo cannot be used\n";
    assert!(text.starts_with(verdict), "{text}");
}

/// A cluster whose second control plane machine cannot be made: of this version, in place of one of another.
fn upgraded(from: &str, joined: bool) -> String {
    let mut control_plane = object("KubeadmControlPlane", "demo", "Cluster/demo", json!([NOT_AVAILABLE]));
    control_plane["spec"] = json!({"version": "v1.36.0"});
    let unfit = "E-CS-TEMPLATE: template \"kube-v1.35.0\" has another version: correct spec.template";
    let mut objects = vec![cluster(json!([NOT_AVAILABLE])), control_plane];
    for (name, version, state) in [("cp-1", from, "True"), ("cp-2", "v1.36.0", "False")] {
        let mut machine =
            object("Machine", name, "KubeadmControlPlane/demo", json!([["Ready", state, "R", ""]]));
        machine["spec"] = json!({"version": version});
        if state == "True" || joined {
            machine["status"]["nodeRef"] = json!({"name": name});
        }
        objects.push(machine);
    }
    let owner = "Machine/cp-2";
    objects.push(object("SimMachine", "cp-2", owner, json!([["Ready", "False", "Unfit", unfit]])));
    answer(&objects)
}

#[test]
fn an_upgrade_whose_image_does_not_fit_can_be_taken_back() {
    insta::assert_snapshot!(upgraded("v1.35.0", false));
    for text in [upgraded("v1.35.0", true), upgraded("v1.36.0", false)] {
        assert!(text.contains("E-CS-TEMPLATE") && !text.contains("capstan upgrade"), "{text}");
    }
}

#[test]
fn a_problem_that_nothing_retries_says_so() {
    for (reason, message, expected) in [
        (
            "Gone",
            "the machine was there and is gone",
            "next retry: none: a machine that is gone is not made again\n",
        ),
        (
            "PoweredOff",
            "the machine is switched off",
            "next retry: none: a machine that was stopped is not started again\n",
        ),
        (
            "BootFailed",
            "the user data failed; the console ends with: kubeadm: refused",
            "next retry: none: a machine runs its boot data once\n",
        ),
        ("Creating", "E-SIM-REFUSED: full", "next retry: automatic, on a change and at least every 5 min\n"),
    ] {
        let [machine, infrastructure] = machine("w1", json!([["Ready", "False", reason, message]]));
        let text = answer(&[cluster(json!([NOT_AVAILABLE])), machine, infrastructure]);
        assert!(text.contains(expected), "{reason}: {text}");
    }
}
