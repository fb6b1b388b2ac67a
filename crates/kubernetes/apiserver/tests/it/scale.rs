//! The scale subresource: reads, writes and field ownership.

use serde_json::{Value, json};

use crate::client::Client;
use crate::crds::establish;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

/// Managers of `spec.replicas` with operation and subresource.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or("-").to_owned();
    entries
        .iter()
        .filter(|entry| entry["fieldsV1"]["f:spec"].get("f:replicas").is_some())
        .map(|entry| {
            ["manager", "operation", "apiVersion", "subresource"].map(|key| text(entry, key)).join(" ")
        })
        .collect()
}

#[tokio::test]
async fn the_manager_that_scales_owns_the_replicas() {
    let client = Client::start().await;
    let path = format!("{DEPLOYMENTS}/d");
    client.create(&format!("{DEPLOYMENTS}?fieldManager=maker"), &deployment(1)).await;
    let scale = format!("{path}/scale");
    let (code, scaled) =
        client.patch(&format!("{scale}?fieldManager=scaler"), MERGE, &json!({"spec": {"replicas": 3}})).await;
    assert_eq!((code, &scaled["kind"], &scaled["spec"]), (200, &json!("Scale"), &json!({"replicas": 3})));
    let stored = client.get(&path).await.1;
    assert_eq!(
        (&stored["spec"]["replicas"], owners(&stored)),
        (&json!(3), vec!["scaler Update apps/v1 scale".to_owned()])
    );

    let applied = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 4}});
    let (code, status) = client.patch(&format!("{scale}?fieldManager=applier"), APPLY, &applied).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (409, &json!(".spec.replicas")), "{status}");
    let (code, _) = client.patch(&format!("{scale}?fieldManager=applier&force=true"), APPLY, &applied).await;
    let stored = client.get(&path).await.1;
    assert_eq!((code, owners(&stored)), (200, vec!["applier Apply apps/v1 scale".to_owned()]));
}

#[tokio::test]
async fn a_scale_that_is_wrong_is_refused_as_a_scale() {
    let client = Client::start().await;
    client.create(DEPLOYMENTS, &deployment(1)).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let (code, status) = client.patch(&path, MERGE, &json!({"spec": {"replicas": "many"}})).await;
    let message = status["message"].as_str().unwrap_or_default();
    assert_eq!(code, 422, "{status}");
    assert!(message.contains(r#"\"kind\":\"Scale\""#), "{message}");
    assert!(
        message.ends_with(
            "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"
        ),
        "{message}"
    );
    let (code, status) = client.patch(&path, MERGE, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!((code, &status["details"]["kind"]), (422, &json!("Scale")), "{status}");
    let mut scale = client.get(&path).await.1;
    scale["metadata"]["uid"] = "another".into();
    assert_eq!(client.call("PUT", &path, &scale).await.0, 409);
    assert_eq!(client.get(&path).await.1["spec"]["replicas"], 1);
}

#[tokio::test]
async fn a_custom_resource_without_replicas_gets_them_by_scaling_only() {
    let client = Client::start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}},
            }],
        },
    });
    establish(&client, &definition).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    client
        .create(
            widgets,
            &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}),
        )
        .await;
    let path = format!("{widgets}/w/scale");
    assert_eq!(client.get(&path).await.0, 500);
    let (code, status) = client.patch(&path, MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (400, Some("the spec replicas field \".spec.replicas\" cannot be empty"))
    );
    let (code, scaled) = client.patch(&path, MERGE, &json!({"spec": {"replicas": 2}})).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(2)), "{scaled}");
    assert_eq!(client.get(&format!("{widgets}/w")).await.1["spec"]["replicas"], 2);
}
