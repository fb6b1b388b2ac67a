//! Add-ons of a cluster, as its tree shows them.

use capstan_view::{Paint, Problem, draw, why};
use serde_json::{Value, json};

use crate::cluster::{healthy, now, object, tree};

/// A cluster with a binding, and the set that wrote it.
fn with_add_on(applied: Value, errors: &str) -> Vec<Value> {
    let status = if errors.is_empty() { "True" } else { "False" };
    let mut objects = healthy();
    objects.push(object(
        "ClusterResourceSet",
        "cni",
        "",
        &[("ResourcesApplied", status, "NotApplied", errors)],
    ));
    let mut binding = object("ClusterResourceSetBinding", "demo", "ClusterResourceSet/cni", &[]);
    binding["spec"] = json!({"clusterName": "demo", "bindings": [{
        "clusterResourceSetName": "cni",
        "resources": [{
            "kind": "ConfigMap", "name": "cni", "applied": applied, "lastAppliedTime": "2026-01-01T00:01:00Z",
        }],
    }]});
    objects.push(binding);
    objects
}

#[test]
fn an_add_on_that_was_applied_is_healthy() {
    let tree = tree(&with_add_on(json!(true), ""));
    let drawn = draw(&tree, true, now(), Paint::Plain);
    let row = drawn.lines().find(|line| line.contains("ClusterResourceSetBinding/demo")).expect("a row");
    assert!(row.contains("Applied"), "{drawn}");
    assert!(why(&tree, now()).is_none());
}

#[test]
fn an_add_on_that_the_cluster_refuses_is_the_cause_with_the_object_and_its_error() {
    let errors = "Failed to apply ClusterResourceSet resources to Cluster: DaemonSet cilium: it is forbidden";
    let why = why(&tree(&with_add_on(json!(false), errors)), now()).expect("a cause");
    let cause = &why.first.cause;
    assert_eq!((cause.part.as_str(), cause.problem), ("ClusterResourceSetBinding/demo", Problem::Failed));
    let says = &why.first.chain.last().expect("a link").message;
    assert_eq!(*says, format!("ClusterResourceSet cni: ConfigMap cni could not be applied: {errors}"));
    assert!(cause.advice.as_ref().is_some_and(|it| it.fix.starts_with("correct the manifests")));
}

#[test]
fn an_add_on_that_is_not_applied_yet_is_waited_for() {
    let why = why(&tree(&with_add_on(Value::Null, "")), now()).expect("a cause");
    assert_eq!(why.first.cause.problem, Problem::Waiting);
    assert_eq!(why.first.chain.last().map(|link| link.reason.as_str()), Some("Applying"));
}
