//! `plan`, `get`, `describe` and `why` of clusters of a class.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::output::Transcript;
use crate::plan::{machines, written};
use crate::program::{Server, succeeded};
use crate::sample::{create, example, of_kind, simulated};
use crate::schemas::{check, schema};
use crate::verbs::on;
use crate::why::why;

/// The class `quick` with cluster `one`, and cluster `two` of it, which has no workers.
async fn two_clusters(server: &Server) -> Vec<Value> {
    let mut objects = example("sim-class.yaml");
    let mut two = of_kind(&mut objects, "Cluster").clone();
    two["metadata"]["name"] = "two".into();
    two["spec"]["topology"].as_object_mut().unwrap().remove("workers");
    objects.push(two);
    create(server, &example("cni.yaml")).await;
    create(server, &objects).await;
    for name in ["one", "two"] {
        succeeded(on(server, &["wait", name, "--timeout", "5m"]));
    }
    objects
}

/// The plan of a manifest that changes something.
fn plan(server: &Server, dir: &Path, objects: &[Value]) -> Value {
    let file = written(dir, "plan.json", objects);
    let output = on(server, &["plan", "-f", file.to_str().unwrap(), "-o", "json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn starts_with(value: &Value, text: &str) -> bool {
    value.as_str().unwrap().starts_with(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_names_the_clusters_that_a_change_of_their_class_touches() {
    let (data, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = simulated(data.path());
    let mut objects = two_clusters(&server).await;
    let before = machines(&server).await;

    // Another template for workers: the cluster without workers does not change.
    let mut larger = of_kind(&mut objects, "SimMachineTemplate").clone();
    larger["metadata"]["name"] = "larger".into();
    larger["spec"]["template"]["spec"]["cpus"] = 4.into();
    let mut class = of_kind(&mut objects, "ClusterClass").clone();
    let workers = &mut class["spec"]["workers"]["machineDeployments"][0];
    workers["infrastructure"]["templateRef"]["name"] = "larger".into();
    let found = plan(&server, dir.path(), &[larger.clone(), class.clone()]);
    let topologies = &found["topologies"];
    assert_eq!(
        (&topologies[0]["cluster"], &topologies[1]["cluster"]),
        (&json!("one"), &json!("two")),
        "{found:#}"
    );
    assert_eq!(topologies[1]["parts"], json!([]), "{found:#}");
    let parts = topologies[0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1, "{found:#}");
    assert!(starts_with(&parts[0]["object"], "MachineDeployment/one-md-0-"), "{found:#}");
    assert_eq!(parts[0]["rotated"], json!(["SimMachineTemplate"]), "{found:#}");
    assert_eq!(parts[0]["machines"]["replaced"], 1, "{found:#}");
    assert_eq!(found["warnings"], json!([]), "{found:#}");
    let file = written(dir.path(), "text.json", &[larger, class.clone()]);
    check(&schema(), &server, "plan", &["plan", "-f", file.to_str().unwrap()]);
    let mut transcript = Transcript::new(dir.path());
    transcript.run_on(data.path(), &["plan", "-f", file.to_str().unwrap()]);
    transcript.assert("plan-of-class");

    // A template that does not exist.
    let workers = &mut class["spec"]["workers"]["machineDeployments"][0];
    workers["infrastructure"]["templateRef"]["name"] = "nowhere".into();
    let found = plan(&server, dir.path(), &[class]);
    let message = "SimMachineTemplate default/nowhere does not exist";
    assert_eq!(found["topologies"][0]["notReconciled"], message, "{found:#}");
    assert!(found["warnings"][0].as_str().unwrap().contains(message), "{found:#}");
    assert_eq!(found["steps"], json!([]), "{found:#}");

    // The topology of one cluster, with a class that is changed in the same manifest.
    let mut class = of_kind(&mut objects, "ClusterClass").clone();
    let mut variable = class["spec"]["variables"][0].clone();
    variable["name"] = "disk".into();
    class["spec"]["variables"].as_array_mut().unwrap().push(variable);
    let mut one = of_kind(&mut objects, "Cluster").clone();
    one["spec"]["topology"]["version"] = "v1.36.1".into();
    one["spec"]["topology"]["variables"] = json!([{"name": "disk", "value": 1024}]);
    let found = plan(&server, dir.path(), &[class, one]);
    let changed: Vec<&Value> =
        found["changes"].as_array().unwrap().iter().map(|change| &change["object"]).collect();
    assert_eq!(changed, ["ClusterClass/quick", "Cluster/one"], "{found:#}");
    let parts = found["topologies"][0]["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{found:#}");
    for (part, kind, field) in [
        (&parts[0], "KubeadmControlPlane/one-", "spec.version: v1.36.0 → v1.36.1"),
        (&parts[1], "MachineDeployment/one-md-0-", "spec.template.spec.version: v1.36.0 → v1.36.1"),
    ] {
        assert!(starts_with(&part["object"], kind), "{found:#}");
        assert_eq!(
            (&part["fields"][0], &part["machines"]["replaced"]),
            (&json!(field), &json!(1)),
            "{found:#}"
        );
    }
    assert_eq!(machines(&server).await, before, "a plan changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_and_their_class_are_shown_together() {
    let data = TempDir::new().unwrap();
    let server = simulated(data.path());
    let mut objects = two_clusters(&server).await;
    let rows = |arguments: &[&str]| -> Vec<Vec<String>> {
        let text = succeeded(on(&server, arguments));
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let classes = rows(&["get", "clusterclasses"]);
    assert_eq!(classes[0], ["NAME", "WORKERS", "CLUSTERS", "AGE", "MESSAGE"]);
    assert_eq!(classes[1][..4], ["quick", "default-worker", "2", "(one,two)"]);
    let clusters = rows(&["get", "clusters"]);
    assert_eq!(clusters[1][..6], ["one", "quick", "Available", "1/1", "1/1", "v1.36.0"]);
    let mut transcript = Transcript::new(data.path());
    transcript.run_on(data.path(), &["describe", "one"]);

    let mut lost = of_kind(&mut objects, "Cluster").clone();
    lost["metadata"]["name"] = "lost".into();
    lost["spec"]["topology"]["classRef"]["name"] = "nowhere".into();
    create(&server, &[lost]).await;
    why(&server, "lost", "ClusterClass default/nowhere does not exist");
    check(&schema(), &server, "why", &["why", "lost"]);
    check(&schema(), &server, "describe", &["describe", "lost"]);
    transcript.run_on(data.path(), &["why", "lost"]);
    transcript.assert("topologies");
    // Above it is what has been created so far, and below it how long the rest may take.
    let tree = succeeded(on(&server, &["describe", "lost"]));
    let ends = "topology: ClusterClass/nowhere, v1.36.0\n  not reconciled: ReconcileFailed: ClusterClass \
                default/nowhere does not exist\n";
    assert!(tree.contains(ends), "{tree}");
}
