//! The same rules as webhooks.

use base64::Engine as _;
use capstan_apiserver::Server;
use capstan_capi_plane::{Reviewer, Rules};
use capstan_capi_types::conversion::Converter;
use capstan_controller::{Client, Patch};
use capstan_object::Key;
use serde_json::{Value, json};

use crate::plane::{core, management};

async fn reviewer() -> (Server, Reviewer) {
    let (plane, client) = management().await;
    (plane, Reviewer::new(Rules::default(), Converter::default(), client))
}

fn review(operation: &str, resource: &str, kind: Value, object: Value, old: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": kind, "operation": operation, "namespace": "default", "name": "m",
            "resource": {"group": "cluster.x-k8s.io", "version": "v1beta2", "resource": resource},
            "object": object, "oldObject": old,
        },
    })
}

fn machine() -> Value {
    json!({"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": "Machine"})
}

fn object(cluster: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default", "labels": {"a/b": "c"}},
        "spec": {"clusterName": cluster, "version": "1.34.0", "bootstrap": {"dataSecretName": "s"}},
    })
}

#[tokio::test(start_paused = true)]
async fn defaults_are_a_minimal_patch() {
    let (_plane, reviewer) = reviewer().await;
    let create = review("CREATE", "machines", machine(), object("c"), Value::Null);
    let answer = reviewer.default(create).await.unwrap();
    assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u"), &json!(true)));
    let patch = answer["response"]["patch"].as_str().expect("a patch");
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(
        patch,
        json!([
            {"op": "add", "path": "/metadata/labels/cluster.x-k8s.io~1cluster-name", "value": "c"},
            {"op": "add", "path": "/spec/deletion", "value": {"nodeDeletionTimeoutSeconds": 10}},
            {"op": "replace", "path": "/spec/version", "value": "v1.34.0"},
        ])
    );
    let delete = review("DELETE", "machines", machine(), Value::Null, object("c"));
    let answer = reviewer.default(delete).await.unwrap();
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
}

#[tokio::test(start_paused = true)]
async fn a_rejection_names_the_field_and_the_error() {
    let (_plane, reviewer) = reviewer().await;
    let review = review("UPDATE", "machines", machine(), object("other"), object("c"));
    let answer = reviewer.validate(review).await.unwrap();
    let status = &answer["response"]["status"];
    assert_eq!((&answer["response"]["allowed"], &status["code"]), (&json!(false), &json!(422)));
    assert_eq!(status["details"]["causes"][0]["field"], "spec.clusterName");
}

#[tokio::test(start_paused = true)]
async fn a_request_in_another_version_is_rejected() {
    let (_plane, reviewer) = reviewer().await;
    let kind = json!({"group": "cluster.x-k8s.io", "version": "v1beta1", "kind": "Machine"});
    let review = review("CREATE", "machines", kind, object("c"), Value::Null);
    let answer = reviewer.validate(review).await.unwrap();
    assert_eq!(answer["response"]["status"]["code"], 400);
}

#[tokio::test(start_paused = true)]
async fn a_conversion_review_converts_all_objects_or_none() {
    let (_plane, reviewer) = reviewer().await;
    let ask = |objects: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "cluster.x-k8s.io/v1beta1", "objects": objects},
        })
    };
    let answer = reviewer.convert(ask(json!([object("c"), object("d")]))).unwrap();
    let objects = answer["response"]["convertedObjects"].as_array().expect("objects");
    assert_eq!(answer["response"]["result"]["status"], "Success");
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[1]["apiVersion"], "cluster.x-k8s.io/v1beta1");
    let alien = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Alien"});
    let answer = reviewer.convert(ask(json!([object("c"), alien]))).unwrap();
    assert_eq!(answer["response"]["result"]["status"], "Failure");
    for nonsense in [json!(null), json!([]), json!({"kind": "AdmissionReview"}), ask(json!("no list"))] {
        assert!(reviewer.convert(nonsense.clone()).is_err(), "{nonsense}");
        assert!(reviewer.default(nonsense.clone()).await.is_err(), "{nonsense}");
    }
}

fn class() -> Value {
    let template = |kind: &str| json!({"templateRef": {"apiVersion": "g/v1", "kind": kind, "name": "t"}});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "k", "namespace": "default"},
        "spec": {
            "infrastructure": template("ATemplate"),
            "controlPlane": template("BTemplate"),
            "variables": [
                {"name": "size", "required": false, "schema": {"openAPIV3Schema": {"type": "integer", "default": 3}}},
            ],
        },
    })
}

/// Creates a class whose controller has seen its variables.
async fn reconciled_class(client: &Client) {
    let classes = core("ClusterClass", "clusterclasses");
    client.create(&classes, "default", &class()).await.expect("a class");
    let definition =
        json!({"from": "inline", "required": false, "schema": class()["spec"]["variables"][0]["schema"]});
    let status = json!({"status": {
        "observedGeneration": 1,
        "variables": [{"name": "size", "definitionsConflict": false, "definitions": [definition]}],
        "conditions": [{
            "type": "VariablesReady", "status": "True", "reason": "VariablesReady",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "",
        }],
    }});
    let key = Key::new("default", "k");
    client.patch(&classes, &key, Some("status"), &Patch::Merge(status)).await.expect("a status");
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"topology": {"classRef": {"name": "k"}, "version": "v1.35.0"}},
    })
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_defaulted_and_its_class_protected_by_what_the_api_server_has() {
    let (_plane, client) = management().await;
    let reviewer = Reviewer::new(Rules::default(), Converter::default(), client.clone());
    let kind = |kind: &str| json!({"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": kind});
    let create = review("CREATE", "clusters", kind("Cluster"), cluster(), Value::Null);

    let answer = reviewer.default(create.clone()).await.unwrap();
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}), "no class, no defaults");
    let answer = reviewer.validate(create.clone()).await.unwrap();
    let warning = answer["response"]["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("refers to ClusterClass default/k, but this ClusterClass does not exist"),
        "{warning}"
    );

    reconciled_class(&client).await;
    let answer = reviewer.default(create.clone()).await.unwrap();
    let patch = answer["response"]["patch"].as_str().expect("a patch");
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    let variables = json!([{"name": "size", "value": 3}]);
    assert_eq!(patch, json!([{"op": "add", "path": "/spec/topology/variables", "value": variables}]));
    let answer = reviewer.validate(create).await.unwrap();
    assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));

    let mut delete = review("DELETE", "clusterclasses", kind("ClusterClass"), Value::Null, class());
    delete["request"]["name"] = "k".into();
    let answer = reviewer.validate(delete.clone()).await.unwrap();
    assert_eq!(answer["response"]["allowed"], true, "nobody uses it");
    client.create(&core("Cluster", "clusters"), "default", &cluster()).await.expect("a cluster");
    let answer = reviewer.validate(delete).await.unwrap();
    assert_eq!(
        answer["response"]["status"]["message"],
        "ClusterClass.cluster.x-k8s.io \"k\" is forbidden: ClusterClass cannot be deleted because it is used by Cluster(s): default/c"
    );
}
