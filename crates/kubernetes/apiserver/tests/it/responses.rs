//! Responses as clients see them on the wire: encodings, order, texts of errors. `cargo xtask raw-parity` compares many
//! more with kube-apiserver.

use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

struct Text {
    code: u16,
    headers: http::HeaderMap,
    body: String,
}

impl Text {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn send(client: &Client, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Text {
    let reply = client.reply(method, path, headers, body.to_owned()).await;
    let (code, headers) = (reply.status().as_u16(), reply.headers().clone());
    let bytes = reply.into_body().collect().await.expect("a body").to_bytes();
    Text { code, headers, body: String::from_utf8_lossy(&bytes).into_owned() }
}

/// A server with a custom kind whose `spec.color` is required and whose `spec.size` is not.
async fn with_widgets() -> Client {
    let client = Client::start().await;
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["color"],
        "properties": {"color": {"type": "string"}, "size": {"type": "string"}},
    }}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.create(path, &definition).await.0, 201);
    client.until(WIDGETS, |(code, _)| *code == 200).await;
    client
}

#[tokio::test]
async fn what_is_not_served_is_plain_text_outside_of_the_api() {
    let client = Client::start().await;
    for path in ["/nothing", "/apis/nothing.example.com/v1", "/healthz/nothing"] {
        let text = send(&client, "GET", path, &[("accept", "text/html")], "").await;
        assert_eq!((text.code, text.body.as_str()), (404, "404 page not found\n"), "{path}");
        assert_eq!(text.header("x-content-type-options"), "nosniff", "{path}");
    }
    for path in ["/api/v1/nothing", "/apis/apps/v2", "/version/x"] {
        let text = send(&client, "GET", path, &[], "").await;
        assert_eq!((text.code, &text.json()["kind"]), (404, &json!("Status")), "{path}");
    }
}

#[tokio::test]
async fn errors_have_the_encoding_that_the_client_accepts() {
    let client = Client::start().await;
    let path = &format!("{MAPS}/missing");
    for (accept, kind, begin) in [
        ("", "application/json", "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"),
        ("application/yaml", "application/yaml", "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n"),
        ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf", "k8s\0"),
        ("application/json;pretty=1", "application/json", "{\n  \"kind\": \"Status\",\n"),
    ] {
        let text = send(&client, "GET", path, &[("accept", accept)], "").await;
        assert_eq!((text.code, text.header("content-type")), (404, kind), "{accept}");
        assert!(text.body.starts_with(begin), "{accept}: {}", text.body);
    }
    // An error is not hidden behind one of negotiation.
    let text = send(&client, "GET", "/api/v1/nothing", &[("accept", "text/html")], "").await;
    assert!(text.code == 404 && text.body.starts_with("{\n  \"kind\""), "{}: {}", text.code, text.body);
}

#[tokio::test]
async fn built_in_objects_and_lists_have_the_order_of_upstream() {
    let client = Client::start().await;
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    client.create(MAPS, &object).await;
    let one = send(&client, "GET", &format!("{MAPS}/a"), &[], "").await;
    assert!(
        one.body.starts_with("{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",")
    );
    assert!(one.body.ends_with("\"data\":{\"k\":\"v\"}}\n"), "{}", one.body);
    let all = send(&client, "GET", &format!("{MAPS}?fieldSelector=metadata.name%3Da"), &[], "").await;
    assert!(
        all.body.starts_with("{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resource")
    );
    assert!(all.body.contains("\"items\":[{\"metadata\":{\"name\":\"a\","), "{}", all.body);
    let pretty = send(&client, "GET", &format!("{MAPS}/a?pretty=true"), &[], "").await;
    assert!(pretty.body.starts_with("{\n  \"kind\": \"ConfigMap\",\n"), "{}", pretty.body);
    let accept = [("accept", "application/vnd.kubernetes.protobuf, application/json")];
    let protobuf = send(&client, "GET", MAPS, &accept, "").await;
    assert_eq!(protobuf.header("content-type"), "application/vnd.kubernetes.protobuf");
}

#[tokio::test]
async fn lists_of_custom_resources_always_have_a_continue_field() {
    let client = with_widgets().await;
    let text = send(&client, "GET", WIDGETS, &[], "").await;
    assert!(text.body.contains("\"metadata\":{\"continue\":\"\",\"resourceVersion\":"), "{}", text.body);
}

#[tokio::test]
async fn bodies_that_are_no_object_of_the_kind_are_refused() {
    let client = with_widgets().await;
    for (path, body, code, why) in [
        (
            MAPS,
            "",
            400,
            "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        ),
        (MAPS, "null", 422, "name or generateName is required"),
        (MAPS, r#"{"kind":1}"#, 400, "cannot unmarshal number into Go struct field .kind of type string"),
        (
            MAPS,
            r#"{"kind":"Other","apiVersion":"v1"}"#,
            400,
            "no kind \"Other\" is registered for version \"v1\"",
        ),
        (MAPS, r#"{"kind":"ConfigMap","apiVersion":"a/b/c"}"#, 400, "unexpected GroupVersion string: a/b/c"),
        (WIDGETS, "null", 400, "Object 'Kind' is missing in 'null'"),
        (WIDGETS, r#"{"kind":"Widget"}"#, 400, "the API version in the data () does not match"),
    ] {
        let text = send(&client, "POST", path, &[("content-type", "application/json")], body).await;
        assert_eq!(text.code, code, "{body}: {}", text.body);
        let message = text.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(why), "{body}: {message}");
    }
}

#[tokio::test]
async fn duplicate_keys_are_warned_of_in_every_format() {
    let client = Client::start().await;
    let path = format!("{MAPS}?dryRun=All");
    let json = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d","name":"d","x":1}}"#;
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: d\n  name: d\n---\nkind: other\n";
    for (kind, body, first) in [
        ("application/json", json, r#"299 - "duplicate field \"metadata.name\"""#),
        ("application/yaml", yaml, r#"299 - "line 5: key \"name\" already set in map""#),
    ] {
        let text = send(&client, "POST", &path, &[("content-type", kind)], body).await;
        assert_eq!((text.code, text.header("warning")), (201, first), "{}", text.body);
    }
    client.create(MAPS, &json!({"metadata": {"name": "p"}, "data": {}})).await;
    let patch = r#"[{"op":"add","path":"/data","value":{},"value":{},"extra":1}]"#;
    let kind = [("content-type", "application/json-patch+json")];
    let text = send(&client, "PATCH", &format!("{MAPS}/p"), &kind, patch).await;
    let all: Vec<_> = text.headers.get_all("warning").iter().filter_map(|v| v.to_str().ok()).collect();
    assert_eq!(
        all,
        [
            r#"299 - "json patch duplicate field \"[0].value\"""#,
            r#"299 - "json patch unknown field \"[0].extra\"""#
        ]
    );
}

#[tokio::test]
async fn a_patch_of_nothing_is_not_found_whatever_it_contains() {
    let client = Client::start().await;
    for (kind, body) in [("json-patch", "{}"), ("merge-patch", "data: x"), ("strategic-merge-patch", "")] {
        let kind = format!("application/{kind}+json");
        let text = send(&client, "PATCH", &format!("{MAPS}/missing"), &[("content-type", &kind)], body).await;
        assert_eq!(text.code, 404, "{kind}: {}", text.body);
    }
}

#[tokio::test]
async fn an_apply_does_not_hide_nulls_nor_create_what_another_uid_names() {
    let client = with_widgets().await;
    let apply = |name: &str, meta: Value, spec: Value| {
        let mut metadata = json!({"name": name});
        if let (Some(all), Value::Object(more)) = (metadata.as_object_mut(), meta) {
            all.extend(more);
        }
        let body = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": metadata, "spec": spec});
        (format!("{WIDGETS}/{name}?fieldManager=m"), body)
    };
    let kind = "application/apply-patch+yaml";
    for (meta, spec, code) in [
        (json!({"uid": "x"}), json!({"color": "red"}), 409),
        (json!({}), json!({"color": "red", "size": null}), 422),
        (json!({}), json!({"color": null}), 422),
        (json!({}), json!({"color": "red", "size": "s"}), 201),
        (json!({}), json!({"color": "red", "size": null}), 422),
    ] {
        let (path, body) = apply("w", meta, spec);
        let (got, answer) = client.patch(&path, kind, &body).await;
        assert_eq!(got, code, "{body}: {answer}");
    }
}

#[tokio::test]
async fn a_forged_continue_token_leads_nowhere_else() {
    let client = Client::start().await;
    let token = |start: &str| {
        use base64::Engine as _;
        let text = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start}).to_string();
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    for start in ["../kube-system/x", "a/../b", "."] {
        let (code, answer) = client.get(&format!("{MAPS}?continue={}", token(start))).await;
        assert_eq!(code, 400, "{start}: {answer}");
    }
    // A key is relative to the namespace of the list.
    for n in 0..3 {
        client.create(MAPS, &json!({"metadata": {"name": format!("m{n}")}})).await;
    }
    let (_, page) = client.get(&format!("{MAPS}?limit=2")).await;
    let next = page["metadata"]["continue"].as_str().expect("more");
    let (code, rest) = client.get(&format!("{MAPS}?continue={next}")).await;
    let names = |list: &Value| {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(code, 200);
    assert_eq!([names(&page), names(&rest)].concat().last().map(String::as_str), Some("m2"));
    assert!(!names(&rest).iter().any(|name| names(&page).contains(name)), "{page} {rest}");
}

#[tokio::test]
async fn the_removal_of_the_last_finalizer_is_not_stored() {
    let client = Client::start().await;
    let object = json!({"metadata": {"name": "f", "finalizers": ["ex.io/f"]}});
    let (_, created) = client.create(MAPS, &object).await;
    let version = created["metadata"]["resourceVersion"].as_str().expect("a version");
    let mut events = client.watch(&format!("{MAPS}?watch=true&resourceVersion={version}")).await;
    let path = format!("{MAPS}/f");
    let (_, deleted) = client.delete(&path).await;
    let patch = json!({"metadata": {"finalizers": null, "selfLink": "/x"}});
    let (code, answer) = client.patch(&path, "application/merge-patch+json", &patch).await;
    assert_eq!(code, 200);
    assert_eq!(answer["metadata"]["resourceVersion"], deleted["metadata"]["resourceVersion"]);
    assert_eq!(
        (&answer["metadata"]["finalizers"], &answer["metadata"]["selfLink"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(events.next().await.expect("an event")["type"], "MODIFIED");
    let last = events.next().await.expect("an event");
    assert_eq!(
        (&last["type"], &last["object"]["metadata"]["finalizers"]),
        (&json!("DELETED"), &json!(["ex.io/f"]))
    );
}

#[tokio::test]
async fn a_token_request_is_of_its_kind_and_has_owners_of_its_fields() {
    let client = Client::start().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/t/token";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "t"}});
    client.create("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let (code, refused) = client.create(path, &json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    assert_eq!(code, 400, "{refused}");
    assert_eq!(
        refused["message"],
        "ConfigMap in version \"v1\" cannot be handled as a TokenRequest: converting (v1.ConfigMap) to \
         (authentication.TokenRequest): unknown conversion"
    );
    // Nothing is stored, so a dry run issues a token too, and checks as much.
    for query in ["", "?dryRun=All"] {
        let (code, issued) = client.create(&format!("{path}{query}"), &json!({})).await;
        assert_eq!(code, 201, "{issued}");
        assert!(issued["status"]["token"].as_str().is_some_and(|token| !token.is_empty()));
        let owner = &issued["metadata"]["managedFields"][0];
        assert_eq!(owner["fieldsV1"], json!({"f:spec": {"f:expirationSeconds": {}}}), "{owner}");
        assert_eq!(owner["subresource"], "token");
        let missing = json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "x"}}});
        assert_eq!(client.create(&format!("{path}{query}"), &missing).await.0, 404);
    }
}

#[tokio::test]
async fn a_pod_that_is_gone_at_once_is_returned_as_a_deleted_one() {
    let client = Client::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.create(pods, &pod).await;
    let (code, gone) = client.delete(&format!("{pods}/p")).await;
    let metadata = &gone["metadata"];
    assert_eq!((code, &metadata["deletionGracePeriodSeconds"]), (200, &json!(0)), "{gone}");
    assert!(metadata["deletionTimestamp"].is_string() && metadata["generation"] == 2, "{gone}");
    assert_eq!(client.get(&format!("{pods}/p")).await.0, 404);
}

#[tokio::test]
async fn labels_that_a_status_cannot_change_are_not_owned_by_its_writer() {
    let client = Client::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    assert_eq!(client.create(path, &deployment).await.0, 201);
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "status": {"observedGeneration": 1}});
    let merge = "application/merge-patch+json";
    let (_, patched) = client.patch(&format!("{path}/d/status"), merge, &patch).await;
    let owners = patched["metadata"]["managedFields"].as_array().expect("owners");
    let writer = owners.iter().find(|owner| owner["subresource"] == "status").expect("the writer");
    assert_eq!(writer["fieldsV1"], json!({"f:status": {"f:observedGeneration": {}}}));
}

#[tokio::test]
async fn a_continue_token_that_is_no_base64_has_gos_error() {
    let client = Client::start().await;
    for (token, at) in [("x", 0), ("eyJ!", 3), ("abcde", 4)] {
        let (code, refused) = client.get(&format!("/api/v1/configmaps?limit=1&continue={token}")).await;
        assert_eq!(code, 400, "{refused}");
        let why = format!(
            "invalid continue token: continue key is not valid: illegal base64 data at input byte {at}"
        );
        assert_eq!(refused["message"], why);
    }
}

#[tokio::test]
async fn a_delete_has_preconditions_in_its_query_too() {
    let client = Client::start().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let (_, created) = client.create(MAPS, &map).await;
    for (query, code) in [
        ("uid=other".to_owned(), 409),
        ("resourceVersion=1".to_owned(), 409),
        (format!("uid={}", created["metadata"]["uid"].as_str().expect("a uid")), 200),
    ] {
        assert_eq!(client.delete(&format!("{MAPS}/a?{query}")).await.0, code, "{query}");
    }
}
