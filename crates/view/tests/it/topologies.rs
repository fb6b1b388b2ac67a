//! Clusters of a class: what `why` and `describe` say of their topology.

use capstan_view::{Paint, Problem, State, Why, draw, why};
use serde_json::{Value, json};

use crate::cluster::{healthy, now, set_conditions, tree};

/// A healthy cluster of a class, with this `TopologyReconciled` condition.
fn of_class(status: &str, reason: &str, message: &str, available: bool) -> Vec<Value> {
    let mut objects = healthy();
    let summary = if available { ("True", "Available") } else { ("False", "NotAvailable") };
    set_conditions(
        &mut objects,
        "Cluster/demo",
        &[
            ("Available", summary.0, summary.1, ""),
            ("ControlPlaneAvailable", summary.0, "Waiting", "something that follows from the topology"),
            ("TopologyReconciled", status, reason, message),
        ],
    );
    objects[0]["spec"]["topology"] = json!({"classRef": {"name": "quick"}, "version": "v1.37.0"});
    objects
}

fn answer(objects: &[Value]) -> Why {
    why(&tree(objects), now()).expect("a cause")
}

#[test]
fn a_topology_that_cannot_be_reconciled_has_a_fix_of_its_own() {
    for (reason, message, fix, command) in [
        (
            "ReconcileFailed",
            "ClusterClass default/quick does not exist",
            "create the ClusterClass",
            "capstan get clusterclasses -n default",
        ),
        (
            "ReconcileFailed",
            "spec.topology.variables[memory].value: Invalid value: 1: should be greater than or equal to 512",
            "correct the variables of the Cluster",
            "kubectl edit cluster demo -n default",
        ),
        (
            "ReconcileFailed",
            "SimMachineTemplate default/quick does not exist",
            "correct the reference in the ClusterClass",
            "kubectl edit clusterclass quick -n default",
        ),
        (
            "ReconcileFailed",
            "GeneratePatches of patch \"flavors\": connection refused",
            "make the extension server answer",
            "kubectl get extensionconfigs",
        ),
        (
            "ClusterClassNotReconciled",
            "ClusterClass not reconciled. If this condition persists please check ClusterClass status.",
            "see the conditions of the ClusterClass",
            "kubectl describe clusterclass quick -n default",
        ),
    ] {
        let Why { first, others } = answer(&of_class("False", reason, message, false));
        assert_eq!((first.cause.problem, first.cause.failed), (Problem::TopologyFailed, true), "{message}");
        assert_eq!(others, [], "{message}");
        assert_eq!(first.chain.last().expect("a link").message, message);
        let advice = first.cause.advice.expect("advice");
        assert!(advice.fix.contains(fix), "{message}: {advice:?}");
        assert!(advice.commands.contains(&command.to_owned()), "{message}: {advice:?}");
    }
}

#[test]
fn a_hook_that_blocks_is_the_cause_of_an_upgrade_that_does_not_begin() {
    let upgrade =
        "Cluster is upgrading to v1.37.0\n  * Following hooks are blocking upgrade: BeforeClusterUpgrade: ";
    for (hook, fixed_by) in [
        ("backup first", "extension"),
        ("annotation before-upgrade.hook.cluster.cluster.x-k8s.io/backup is set", "user"),
    ] {
        let objects = of_class("False", "ClusterUpgrading", &format!("{upgrade}{hook}"), true);
        let cause = answer(&objects).first.cause;
        assert_eq!((cause.part.as_str(), cause.problem), ("Cluster/demo", Problem::HookBlocks));
        assert_eq!(cause.advice.expect("advice").fixed_by, fixed_by);
    }
    let mut deleting =
        of_class("False", "Deleting", "Cluster is deleting. Following hooks are blocking delete: x", false);
    deleting[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    assert_eq!(answer(&deleting).first.cause.problem, Problem::HookBlocks);
}

#[test]
fn a_cluster_that_is_upgraded_is_not_ready_and_one_whose_upgrade_is_deferred_is() {
    let message =
        "Cluster is upgrading to v1.37.0\n  * MachineDeployment md pending upgrade to version v1.37.0";
    let mut objects = of_class("False", "ClusterUpgrading", message, true);
    objects[0]["status"]["workers"] = json!({"upgradePlan": [{"version": "v1.37.0"}]});
    let upgrading = tree(&objects);
    assert_eq!((upgrading.part.state(), upgrading.is_ready()), (State::Waiting, false));
    assert_eq!(answer(&objects).first.cause.problem, Problem::Upgrading);
    let text = draw(&upgrading, false, now(), Paint::Plain);
    assert!(text.starts_with("Cluster/demo"), "{text}");
    assert!(text.lines().next().expect("a line").contains("Upgrading"), "{text}");
    assert!(
        text.ends_with(
            "topology: ClusterClass/quick, v1.37.0\n  workers: pending upgrade to v1.37.0\n  not reconciled: \
             ClusterUpgrading: Cluster is upgrading to v1.37.0; MachineDeployment md pending upgrade to version v1.37.0\n"
        ),
        "{text}"
    );

    let deferred =
        of_class("False", "MachineDeploymentsUpgradeDeferred", "deferred using defer-upgrade", true);
    let deferred = tree(&deferred);
    assert!(deferred.is_ready() && deferred.part.deferred_upgrade().is_some());
    assert_eq!(why(&deferred, now()), None);
    let reconciled = tree(&of_class("True", "ReconcileSucceeded", "", true));
    let text = draw(&reconciled, false, now(), Paint::Plain);
    assert!(text.ends_with("topology: ClusterClass/quick, v1.37.0, reconciled\n"), "{text}");
}

/// What the machines report is the cause as long as the topology only waits for them.
#[test]
fn a_failed_machine_explains_an_upgrade_that_does_not_go_on() {
    let mut objects = of_class("False", "ClusterUpgrading", "Cluster is upgrading to v1.37.0", false);
    set_conditions(
        &mut objects,
        "SimMachine/demo-cp-b",
        &[("Ready", "False", "BootFailed", "the console ends with: no space left")],
    );
    let Why { first, others } = answer(&objects);
    assert_eq!((first.cause.part.as_str(), first.cause.problem), ("SimMachine/demo-cp-b", Problem::Failed));
    assert_eq!(others, []);
}
