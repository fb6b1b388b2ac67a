//! Bodies of at most 3 MiB that would expand to gigabytes.

use capstan_apiserver::auth::User;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::confined;
use crate::client::Client;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
pub(super) const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";

/// Sends a body and reads the response, which must be small.
async fn send(client: &Client, method: &str, path: &str, content_type: &str, body: String) -> (u16, Value) {
    assert!(body.len() <= 3 * 1024 * 1024, "{} bytes are refused for their length alone", body.len());
    let reply = client.reply(method, path, &[("content-type", content_type)], body).await;
    let code = reply.status().as_u16();
    let headers: usize = reply.headers().values().map(http::HeaderValue::len).sum();
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    assert!(bytes.len() + headers < 2 * 1024 * 1024, "{method} {path}: {code}, {} bytes", bytes.len());
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// A kind whose `spec` has a few fields and whose `any` accepts everything.
pub(super) async fn define_widgets(client: &Client) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "texts": {"type": "array", "items": {"type": "string", "pattern": "^a$"}},
            "entries": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {
                "type": "integer"}}},
            "defaulted": {"type": "array", "items": {"type": "object", "properties": {
                "text": {"type": "string", "default": "x".repeat(1000)}}}},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = client.create(path, &definition).await;
    assert_eq!(code, 201, "{answer}");
    client.until("/apis/ex.io/v1/widgets", |(code, _)| *code == 200).await;
}

pub(super) fn widget(spec: &str) -> String {
    format!(r#"{{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#)
}

/// The same JSON many times, separated by commas.
pub(super) fn repeated(entry: &str, bytes: usize) -> String {
    vec![entry; bytes / (entry.len() + 1)].join(",")
}

/// Different fields, each of one digit.
fn fields(bytes: usize) -> String {
    let mut out = String::new();
    for n in 0.. {
        out.push_str(&format!("\"{n:x}\":0,"));
        if out.len() >= bytes {
            break;
        }
    }
    out.pop();
    out
}

#[test]
fn duplicates_below_long_keys() {
    confined(module_path!(), "duplicates_below_long_keys", |client| async move {
        define_widgets(&client).await;
        let key = "k".repeat(50_000);
        let duplicates = repeated("\"a\":0", 2_400_000);
        let nested = format!("\"{key}\":{{\"{key}\":{{{duplicates}}}}}");
        let anybody = client.as_user(User::new("mallory", ["system:authenticated"]));
        let review = format!(
            "{{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\
             \"spec\":{{\"resourceAttributes\":{{\"verb\":\"get\",\"resource\":\"pods\"}}}},{nested}}}"
        );
        for strictness in ["Strict", "Warn", "Ignore"] {
            let query = |path: &str| format!("{path}?fieldValidation={strictness}");
            for content_type in [JSON, YAML] {
                let (code, _) = send(&anybody, "POST", &query(REVIEWS), content_type, review.clone()).await;
                assert!(matches!(code, 201 | 400 | 413), "{content_type}: {code}");
                let body = widget(&format!("\"any\":{{{nested}}}"));
                let (code, _) = send(&client, "POST", &query(WIDGETS), content_type, body).await;
                assert!(matches!(code, 201 | 400 | 409 | 413), "{content_type}: {code}");
            }
            let path = format!("{WIDGETS}/a?fieldManager=m&force=true&fieldValidation={strictness}");
            let body = widget(&format!("\"any\":{{{nested}}}"));
            let (code, _) = send(&client, "PATCH", &path, APPLY, body).await;
            assert!(matches!(code, 200 | 201 | 400 | 413), "{code}");
        }
    });
}

#[test]
fn unknown_and_invalid_fields_below_long_keys() {
    confined(module_path!(), "unknown_and_invalid_fields_below_long_keys", |client| async move {
        define_widgets(&client).await;
        let key = "k".repeat(300_000);
        let fields = fields(1_000_000);
        let texts = fields.replace(":0", ":\"\"");
        for (spec, codes) in [
            (format!("\"{key}\":0,{fields}"), [400, 413]),
            (format!("\"any\":{{}},{fields}"), [400, 413]),
            (format!("\"entries\":{{\"{key}\":{{{texts}}}}}"), [422, 413]),
            (format!("\"texts\":[{}]", repeated("\"b\"", 2_000_000)), [422, 413]),
            (format!("\"texts\":[{}]", repeated("{}", 2_000_000)), [422, 413]),
        ] {
            let path = format!("{WIDGETS}?fieldValidation=Strict");
            let (code, answer) = send(&client, "POST", &path, JSON, widget(&spec)).await;
            assert!(codes.contains(&code), "{code} {}", answer["message"].as_str().unwrap_or_default());
        }
        let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},{fields}}}"#);
        let (code, _) =
            send(&client, "POST", &format!("{CONFIG_MAPS}?fieldValidation=Strict"), JSON, body).await;
        assert_eq!(code, 400);
    });
}

#[test]
fn many_tiny_values() {
    confined(module_path!(), "many_tiny_values", |client| async move {
        define_widgets(&client).await;
        for entry in [r#"{"":0}"#, "[0]", "0", "{}", r#"{"a":{"b":{}}}"#] {
            let body = widget(&format!("\"any\":{{\"l\":[{}]}}", repeated(entry, 3_000_000)));
            for content_type in [JSON, YAML] {
                let (code, _) = send(&client, "POST", WIDGETS, content_type, body.clone()).await;
                assert!(matches!(code, 400 | 413), "{entry}: {code}");
            }
            let (code, _) = send(&client, "PATCH", &format!("{WIDGETS}/a?fieldManager=m"), APPLY, body).await;
            assert!(matches!(code, 400 | 413), "{entry}: {code}");
        }
    });
}

#[test]
fn tiny_values_that_stand_for_large_objects() {
    confined(module_path!(), "tiny_values_that_stand_for_large_objects", |client| async move {
        define_widgets(&client).await;
        for entry in ["{}", "null"] {
            let list = repeated(entry, 3_000_000);
            let pod = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"spec":{{"containers":[{list}]}}}}"#
            );
            let (code, answer) = send(&client, "POST", PODS, JSON, pod).await;
            assert_eq!(code, 413, "{entry}: {}", answer["message"]);
            assert_eq!(answer["reason"], "RequestEntityTooLarge");
        }
        let list = repeated("{}", 2_900_000);
        let (code, _) =
            send(&client, "POST", WIDGETS, JSON, widget(&format!("\"defaulted\":[{list}]"))).await;
        assert_eq!(code, 413);
    });
}

#[test]
fn owners_that_are_all_shown_with_every_error() {
    confined(module_path!(), "owners_that_are_all_shown_with_every_error", |client| async move {
        let owner = |n: usize| {
            format!(r#"{{"apiVersion":"v1","kind":"A","name":"n","uid":"{n}","controller":true}}"#)
        };
        let owners = (0..20_000).map(owner).collect::<Vec<_>>().join(",");
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","ownerReferences":[{owners}]}}}}"#
        );
        let (code, answer) = send(&client, "POST", CONFIG_MAPS, JSON, body).await;
        assert_eq!(code, 422);
        assert!(answer["message"].as_str().unwrap_or_default().contains("more errors"));
    });
}

#[test]
fn patches_that_multiply() {
    confined(module_path!(), "patches_that_multiply", |client| async move {
        define_widgets(&client).await;
        let list = repeated("{}", 1_000_000);
        let (code, answer) =
            send(&client, "POST", WIDGETS, JSON, widget(&format!("\"any\":{{\"l\":[{list}]}}"))).await;
        assert_eq!(code, 201, "{answer}");
        let copies: Vec<String> = (0..9_000)
            .map(|n| format!(r#"{{"op":"copy","from":"/spec/any/l","path":"/spec/any/c{n}"}}"#))
            .collect();
        let body = format!("[{}]", copies.join(","));
        let path = format!("{WIDGETS}/a");
        let (code, _) = send(&client, "PATCH", &path, "application/json-patch+json", body).await;
        assert!(matches!(code, 413 | 422), "{code}");
        for content_type in ["application/merge-patch+json", "application/json-patch+json"] {
            let body = format!("[{}]", repeated(r#"{"":0}"#, 3_000_000));
            let (code, _) = send(&client, "PATCH", &path, content_type, body).await;
            assert_eq!(code, 413, "{content_type}");
        }
    });
}

#[test]
fn patches_that_move_a_long_list_again_and_again() {
    confined(module_path!(), "patches_that_move_a_long_list_again_and_again", |client| async move {
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#.to_owned();
        assert_eq!(send(&client, "POST", CONFIG_MAPS, JSON, body).await.0, 201);
        let path = format!("{CONFIG_MAPS}/a");
        let removals = vec![r#"{"op":"remove","path":"/x/0"}"#; 9_999].join(",");
        let list = vec!["0"; 800_000].join(",");
        let body = format!(r#"[{{"op":"add","path":"/x","value":[{list}]}},{removals}]"#);
        let (code, answer) = send(&client, "PATCH", &path, "application/json-patch+json", body).await;
        assert_eq!(code, 413, "{answer}");
    });
}
