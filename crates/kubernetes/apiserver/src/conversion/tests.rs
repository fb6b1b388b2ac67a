//! Conversion by strategy, and validation of webhook responses.

use super::*;
use crate::auth::testing::Objects;
use crate::webhook_client::testing::Server;

fn conversions() -> Conversions {
    let env = Env::system();
    Conversions::new(Arc::new(WebhookClient::new(Arc::new(Objects::default()), env.clone())), env)
}

fn spec(conversion: Value) -> Value {
    json!({
        "group": "example.org", "names": {"kind": "Widget"}, "conversion": conversion,
        "versions": [{"name": "v1"}, {"name": "v1beta1"}],
    })
}

fn by_webhook(server: &Server, path: &str) -> Strategy {
    Strategy::from_spec(&spec(json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": server.client_config(path), "conversionReviewVersions": ["v2", "v1"]},
    })))
}

fn widget(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("example.org/{version}"), "kind": "Widget",
        "metadata": {
            "name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "labels": {"a": "b"}, "finalizers": ["f"],
        },
        "spec": {},
    })
}

fn list_kind() -> GroupVersionKind {
    GroupVersionKind::new("example.org", "v1", "WidgetList")
}

/// A webhook that converts correctly and then lets the test modify the response.
async fn server(spoil: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> Server {
    Server::start(&["127.0.0.1"], move |path, review| {
        let request = &review["request"];
        let convert = |object: &Value| {
            let mut object = object.clone();
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            object["spec"] = json!({"converted": true});
            object["metadata"]["labels"] = json!({"c": "d"});
            object["metadata"]["resourceVersion"] = "changed".into();
            object["metadata"].as_object_mut().unwrap().remove("finalizers");
            object
        };
        let converted: Vec<Value> = request["objects"].as_array().unwrap().iter().map(convert).collect();
        let mut answer = json!({
            "kind": "ConversionReview", "apiVersion": review["apiVersion"],
            "response": {
                "uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"},
            },
        });
        spoil(path.split('?').next().unwrap(), &mut answer);
        Some((200, answer.to_string()))
    })
    .await
}

#[tokio::test]
async fn strategy_none_changes_the_version_alone() {
    let strategy = Strategy::from_spec(&spec(json!({"strategy": "None"})));
    let converted = conversions().convert(&strategy, widget("v1", "w"), "v1beta1").await.unwrap();
    assert_eq!(converted, widget("v1beta1", "w"));
    for (object, to, message) in [
        (widget("v1", "w"), "v2", "request to convert CR to an invalid group/version: example.org/v2"),
        (widget("v0", "w"), "v1", "request to convert CR from an invalid group/version: example.org/v0"),
    ] {
        let failed = conversions().convert(&strategy, object, to).await.unwrap_err();
        assert_eq!(failed.to_string(), message);
    }
}

#[tokio::test]
async fn a_webhook_converts_what_is_in_another_version_and_may_touch_labels_only() {
    let server = server(|_, _| {}).await;
    let strategy = by_webhook(&server, "/convert");
    let objects = vec![widget("v1beta1", "a"), widget("v1", "b"), widget("v1beta1", "c")];
    let converted = conversions().convert_list(&strategy, objects, "v1", &list_kind()).await.unwrap();
    assert_eq!(converted[1], widget("v1", "b"));
    for (i, name) in [(0, "a"), (2, "c")] {
        let mut expected = widget("v1", name);
        expected["metadata"]["labels"] = json!({"c": "d"});
        expected["spec"] = json!({"converted": true});
        assert_eq!(converted[i], expected);
    }
    let calls = server.calls.lock();
    assert_eq!(calls.len(), 1);
    let (path, review) = &calls[0];
    assert_eq!(path, "/convert?timeout=30s");
    assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(review["request"]["desiredAPIVersion"], "example.org/v1");
    assert_eq!(review["request"]["objects"], json!([widget("v1beta1", "a"), widget("v1beta1", "c")]));
}

#[tokio::test]
async fn invalid_responses_are_rejected_with_upstreams_texts() {
    let server = server(|path, answer| {
        let object = "/response/convertedObjects/0";
        let mut set = |pointer: &str, value: Value| {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            answer.pointer_mut(parent).unwrap()[field] = value;
        };
        match path {
            "/kind" => set("/kind", "Other".into()),
            "/uid" => set("/response/uid", "x".into()),
            "/failed" => set("/response/result", json!({"status": "Failed", "message": "cannot"})),
            "/silent" => set("/response/result", json!({"status": "Failed"})),
            "/none" => set("/response/convertedObjects", json!([])),
            "/version" => set(&format!("{object}/apiVersion"), "example.org/v1beta1".into()),
            "/object-kind" => set(&format!("{object}/kind"), "Gadget".into()),
            "/name" => set(&format!("{object}/metadata/name"), "x".into()),
            "/namespace" => set(&format!("{object}/metadata/namespace"), "x".into()),
            "/object-uid" => set(&format!("{object}/metadata/uid"), "x".into()),
            "/labels" => set(&format!("{object}/metadata/labels"), json!({"a": 1})),
            "/bad-label" => set(&format!("{object}/metadata/labels"), json!({"-": "x"})),
            other => panic!("{other}"),
        }
    })
    .await;
    let of = "conversion webhook for example.org/v1beta1, Kind=Widget";
    let table = [
        (
            "/kind",
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Other",
        ),
        ("/failed", "failed: cannot"),
        ("/silent", "failed: response.result.status was 'Failed', not 'Success'"),
        ("/none", "returned 0 objects, expected 1"),
        (
            "/version",
            "returned invalid object at index 0: invalid groupVersion (expected example.org/v1, received example.org/v1beta1)",
        ),
        (
            "/object-kind",
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        ("/name", "returned invalid object: must have the same name: w != x"),
        ("/namespace", "returned invalid object: must have the same namespace: ns != x"),
        ("/object-uid", "returned invalid object: must have the same UID: u != x"),
        (
            "/labels",
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
    ];
    for (path, message) in table {
        let strategy = by_webhook(&server, path);
        let failed = conversions().convert(&strategy, widget("v1beta1", "w"), "v1").await.unwrap_err();
        assert_eq!(failed.to_string(), format!("{of} {message}"));
    }
    for (path, part) in
        [("/uid", "expected response.uid=\""), ("/bad-label", "metadata.labels: Invalid value: \"-\"")]
    {
        let strategy = by_webhook(&server, path);
        let failed = conversions().convert(&strategy, widget("v1beta1", "w"), "v1").await.unwrap_err();
        assert!(failed.to_string().contains(part), "{failed}");
    }
    let strategy = by_webhook(&server, "/name");
    let failed = conversions()
        .convert_list(&strategy, vec![widget("v1beta1", "w")], "v1", &list_kind())
        .await
        .unwrap_err();
    assert_eq!(
        failed.to_string(),
        "conversion webhook for example.org/v1, Kind=WidgetList returned invalid converted object at index 0: must have the same name: w != x"
    );
}

#[tokio::test]
async fn a_webhook_that_is_not_there_fails_the_request_unless_nothing_is_to_convert() {
    let strategy = Strategy::from_spec(&spec(json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"namespace": "ns", "name": "s", "path": "/c"}},
            "conversionReviewVersions": ["v1"],
        },
    })));
    let failed = conversions().convert(&strategy, widget("v1beta1", "w"), "v1").await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "conversion webhook for example.org/v1beta1, Kind=Widget failed: Post \"https://s.ns.svc:443/c?timeout=30s\": service \"s\" not found"
    );
    assert!(conversions().convert(&strategy, widget("v1", "w"), "v1").await.is_ok());
    let bare = json!({"apiVersion": "example.org/v1beta1", "kind": "Widget"});
    assert_eq!(
        conversions().convert(&strategy, bare, "v1").await.unwrap(),
        json!({"apiVersion": "example.org/v1", "kind": "Widget"})
    );
}

#[tokio::test]
async fn kinds_known_here_are_converted_here() {
    struct Renaming;
    impl Convert for Renaming {
        fn convert(&self, mut object: Value, version: &str) -> Result<Value, String> {
            if object["metadata"]["name"] == "bad" {
                return Err("no such thing".into());
            }
            object["apiVersion"] = format!("example.org/{version}").into();
            object["spec"] = json!({"here": true});
            Ok(object)
        }
    }
    let conversions = conversions().with_kind("example.org", "Widget", Arc::new(Renaming));
    let strategy = Strategy::from_spec(&spec(Value::Null));
    let converted = conversions.convert(&strategy, widget("v1", "w"), "v1beta1").await.unwrap();
    assert_eq!(converted["spec"], json!({"here": true}));
    assert!(conversions.convert(&strategy, widget("v1", "bad"), "v1beta1").await.is_err());
}
