//! A mutating webhook cannot change the identity of an object.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::auth::User;
use crate::webhook_client::testing;
use crate::{Config, Server};
use capstan_env::Env;
use capstan_pki::Pki;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

async fn call(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(body.to_string()))).expect("a request");
    let reply = server.handle_as(User::privileged("tester"), request).await;
    let code = reply.status().as_u16();
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// A server whose webhook applies the patch in an annotation of the object.
async fn server() -> Server {
    let hook = testing::Server::start(&["127.0.0.1"], |_, review| {
        let request = &review["request"];
        let patch = request["object"]["metadata"]["annotations"]["patch"].as_str().unwrap_or("[]");
        let response = json!({
            "uid": request["uid"], "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch),
        });
        let answer =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Some((200, answer.to_string()))
    })
    .await;
    let pki = Pki::ephemeral(Env::system()).into();
    let server = Server::start(Config::in_memory(), pki).await.expect("a server");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(call(&server, "POST", definitions, &definition).await.0, 201);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [{
            "name": "patch.example.org", "clientConfig": hook.client_config("/"), "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": ["configmaps", "widgets"]}],
        }],
    });
    let configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let (code, answer) = call(&server, "POST", configurations, &configuration).await;
    assert_eq!(code, 201, "{answer}");
    server
}

fn object(api_version: &str, kind: &str, patch: &Value) -> Value {
    let metadata = json!({"name": "a", "annotations": {"patch": patch.to_string()}});
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
}

fn replace(path: &str, value: &str) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

#[tokio::test]
async fn a_patch_cannot_move_an_object_or_make_it_another_kind() {
    let server = server().await;
    let cases = [
        (
            MAPS,
            "v1",
            "ConfigMap",
            replace("/metadata/namespace", "kube-system"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            WIDGETS,
            "example.org/v1",
            "Widget",
            replace("/metadata/namespace", "kube-system"),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            MAPS,
            "v1",
            "ConfigMap",
            replace("/kind", "Secret"),
            500,
            "Internal error occurred: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            WIDGETS,
            "example.org/v1",
            "Widget",
            replace("/kind", "Gadget"),
            422,
            "Widget.example.org \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget",
        ),
        (
            WIDGETS,
            "example.org/v1",
            "Widget",
            replace("/apiVersion", "example.org/v2"),
            422,
            "Widget.example.org \"a\" is invalid: apiVersion: Invalid value: \"example.org/v2\": must be example.org/v1",
        ),
    ];
    for (path, api_version, kind, patch, code, message) in cases {
        let (got, answer) = call(&server, "POST", path, &object(api_version, kind, &patch)).await;
        assert_eq!((got, answer["message"].as_str()), (code, Some(message)), "{patch}: {answer}");
    }
    for namespace in ["default", "kube-system"] {
        for kind in ["configmaps", "secrets"] {
            let path = format!("/api/v1/namespaces/{namespace}/{kind}/a");
            assert_eq!(call(&server, "GET", &path, &Value::Null).await.0, 404, "{path}");
        }
    }
}

#[tokio::test]
async fn a_patch_changes_neither_name_nor_uid_of_an_object_that_exists() {
    let server = server().await;
    for (path, api_version, kind) in [(MAPS, "v1", "ConfigMap"), (WIDGETS, "example.org/v1", "Widget")] {
        let (code, made) = call(&server, "POST", path, &object(api_version, kind, &json!([]))).await;
        assert_eq!(code, 201, "{made}");
        for field in ["name", "uid"] {
            let mut changed = made.clone();
            let patch = replace(&format!("/metadata/{field}"), "other");
            changed["metadata"]["annotations"]["patch"] = patch.to_string().into();
            let (code, answer) = call(&server, "PUT", &format!("{path}/a"), &changed).await;
            assert_eq!(code, 422, "{field}: {answer}");
            let message = answer["message"].as_str().unwrap_or_default();
            let expected = format!("metadata.{field}: Invalid value: \"other\": field is immutable");
            assert!(message.contains(&expected), "{message}");
        }
        assert_eq!(call(&server, "GET", &format!("{path}/other"), &Value::Null).await.0, 404);
    }
}
