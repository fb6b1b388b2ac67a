//! The same rules as webhooks.

use base64::Engine as _;
use capstan_apiserver::Server;
use capstan_capi_plane::{Reviewer, Rules};
use capstan_capi_types::conversion::Converter;
use serde_json::{Value, json};

use crate::plane::management;

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
    let answer = reviewer.default(review("CREATE", "machines", machine(), object("c"), Value::Null)).unwrap();
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
    let answer = reviewer.default(review("DELETE", "machines", machine(), Value::Null, object("c"))).unwrap();
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
        assert!(reviewer.default(nonsense.clone()).is_err(), "{nonsense}");
    }
}
