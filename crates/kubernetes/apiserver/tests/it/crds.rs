//! Custom resources from definition to clean-up.

use serde_json::{Value, json};

use crate::client::Client;

pub const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"size": {"type": "integer", "default": 3}},
                        "x-kubernetes-validations": [{"rule": "self.size < 10", "message": "too large"}],
                    },
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn foo(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec})
}

async fn established() -> Client {
    let client = Client::start().await;
    establish(&client, &definition()).await;
    client
}

/// Creates a definition and waits until its kind is served.
pub async fn establish(client: &Client, definition: &Value) {
    let (code, created) = client.create(CRDS, definition).await;
    assert_eq!(code, 201, "{created}");
    let name = definition["metadata"]["name"].as_str().expect("a name");
    client
        .until(&format!("{CRDS}/{name}"), |(_, crd)| {
            let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
        })
        .await;
}

#[tokio::test]
async fn a_custom_resource_is_pruned_defaulted_and_held_to_its_rules() {
    let client = established().await;
    let (code, created) = client.create(FOOS, &foo(json!({"unknown": 1}))).await;
    assert_eq!((code, &created["spec"]), (201, &json!({"size": 3})), "{created}");
    assert_eq!(created["metadata"]["generation"], 1);
    let path = format!("{FOOS}/a");
    let merge = "application/merge-patch+json";
    let (code, refused) = client.patch(&path, merge, &json!({"spec": {"size": 11}})).await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().is_some_and(|m| m.contains("too large")), "{refused}");
    let strict = format!("{FOOS}?fieldValidation=Strict");
    assert_eq!(client.create(&strict, &foo(json!({"unknown": 1}))).await.0, 400);
}

#[tokio::test]
async fn a_default_of_the_status_shows_before_anybody_wrote_one() {
    let client = Client::start().await;
    let mut definition = definition();
    let status = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    status["default"] = json!({"observedGeneration": -1});
    establish(&client, &definition).await;
    let (_, created) = client.create(FOOS, &foo(json!({"size": 1}))).await;
    assert_eq!(created["status"], json!({"observedGeneration": -1}), "{created}");
    let (_, read) = client.get(&format!("{FOOS}/a")).await;
    assert_eq!(read["status"], json!({"observedGeneration": -1}), "{read}");
    let merge = "application/merge-patch+json";
    let written = json!({"status": {"observedGeneration": 1}});
    let (_, status) = client.patch(&format!("{FOOS}/a/status"), merge, &written).await;
    assert_eq!(status["status"], written["status"]);
    let (_, removed) = client.patch(&format!("{FOOS}/a/status"), merge, &json!({"status": null})).await;
    assert_eq!(removed["status"], json!({"observedGeneration": -1}), "{removed}");
}

#[tokio::test]
async fn status_and_spec_are_written_through_their_own_doors() {
    let client = established().await;
    client.create(FOOS, &foo(json!({"size": 1}))).await;
    let merge = "application/merge-patch+json";
    let both = json!({"spec": {"size": 2}, "status": {"ready": true}});
    let (_, main) = client.patch(&format!("{FOOS}/a"), merge, &both).await;
    assert_eq!((&main["spec"]["size"], main.get("status")), (&json!(2), None));
    assert_eq!(main["metadata"]["generation"], 2);
    let (_, status) = client.patch(&format!("{FOOS}/a/status"), merge, &both).await;
    assert_eq!(status["status"]["ready"], true);
    assert_eq!(status["metadata"]["generation"], 2);
}

#[tokio::test]
async fn deleting_a_definition_deletes_its_objects_and_stops_serving_it() {
    let client = established().await;
    client.create(FOOS, &foo(json!({}))).await;
    client.delete(&format!("{CRDS}/foos.example.com")).await;
    client.until(&format!("{CRDS}/foos.example.com"), |(code, _)| *code == 404).await;
    client.until(FOOS, |(code, _)| *code == 404).await;

    // Old objects do not reappear with a new definition of the same name.
    client.create(CRDS, &definition()).await;
    let (_, list) = client.until(FOOS, |(code, _)| *code == 200).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn a_rule_that_does_not_compile_is_refused_with_its_place() {
    let client = Client::start().await;
    let mut broken = definition();
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.nothing > 1"}]);
    let (code, status) = client.create(CRDS, &broken).await;
    assert_eq!(code, 422);
    assert!(status["message"].as_str().is_some_and(|m| m.contains("undefined field 'nothing'")), "{status}");
}
