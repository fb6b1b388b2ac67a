//! What controllers write beside the conditions: reconciles that do not settle, errors of probes.

use capstan_view::{Paint, Problem, draw, why};
use serde_json::json;

use crate::cluster::{change, healthy, now, set_conditions, tree};

#[test]
fn a_controller_that_does_not_settle_is_a_blocker_even_if_all_conditions_are_fine() {
    let mut objects = healthy();
    let message = "E-NOT-SETTLED: controller kubeadm-control-plane does not settle";
    change(&mut objects, "KubeadmControlPlane/demo-cp", |object| {
        object["metadata"]["annotations"] = json!({"capstan.dev/not-settled-kubeadm-control-plane": format!("2026-01-01T00:01:00Z {message}")});
    });
    let why = why(&tree(&objects), now()).expect("a cause");
    let cause = &why.first.cause;
    assert_eq!((cause.part.as_str(), cause.problem), ("KubeadmControlPlane/demo-cp", Problem::Failed));
    assert_eq!(cause.code.as_deref(), Some("E-NOT-SETTLED"));
    assert_eq!(why.first.chain.last().map(|link| link.message.as_str()), Some(message));
    assert_eq!(why.first.since().expect("a time").to_string(), "2026-01-01T00:01:00Z");
    assert_eq!(why.others, []);
}

#[test]
fn a_reconcile_that_keeps_failing_is_a_blocker_beside_what_conditions_report() {
    let mut objects = healthy();
    let message = "E-SIM-SITE: controller simcluster fails on SimCluster default/demo: no answer";
    change(&mut objects, "SimCluster/demo", |object| {
        object["metadata"]["annotations"] =
            json!({"capstan.dev/not-settled-simcluster": format!("2026-01-01T00:01:00Z {message}")});
    });
    let refused = ("Ready", "False", "Refused", "E-CS-QUOTA: full");
    set_conditions(&mut objects, "SimMachine/demo-cp-a", &[refused]);
    let why = why(&tree(&objects), now()).expect("a cause");
    let found: Vec<_> = why.blockers().map(|it| (it.cause.part.as_str(), it.cause.code.as_deref())).collect();
    assert_eq!(
        found,
        [("SimCluster/demo", Some("E-SIM-SITE")), ("SimMachine/demo-cp-a", Some("E-CS-QUOTA"))]
    );
    let last = why.first.chain.last().expect("a link");
    assert_eq!((last.reason.as_str(), last.message.as_str()), ("ReconcileFailed", message));
}

#[test]
fn an_unreachable_cluster_has_the_address_and_the_error_of_the_last_probe() {
    let mut objects = healthy();
    let conditions = [
        ("Available", "False", "NotAvailable", ""),
        ("ControlPlaneInitialized", "True", "Initialized", ""),
        ("RemoteConnectionProbe", "False", "ProbeFailed", "Remote connection probe failed"),
    ];
    set_conditions(&mut objects, "Cluster/demo", &conditions);
    change(&mut objects, "Cluster/demo", |object| {
        object["spec"]["controlPlaneEndpoint"] = json!({"host": "10.0.0.1", "port": 6443});
        object["metadata"]["annotations"] = json!({"capstan.dev/unreachable": "no answer within 5s"});
    });
    let tree = tree(&objects);
    let expected = "Remote connection probe failed: 10.0.0.1:6443: no answer within 5s";
    let first = why(&tree, now()).expect("a cause").first;
    assert_eq!(first.chain.last().map(|link| link.message.as_str()), Some(expected));
    let text = draw(&tree, false, now(), Paint::Plain);
    assert!(text.contains(expected), "{text}");
}
