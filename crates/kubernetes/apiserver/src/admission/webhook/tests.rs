//! Webhooks over loopback: which are called, what they receive, what their responses do.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::admission::{Operation, Warnings};
use crate::auth::testing::Objects;
use crate::auth::{AlwaysAllow, User};
use crate::webhook_client::testing::Server;

/// A resource served as v1 (with `size`) and v1beta1 (with `replicas`).
struct Widgets;

impl Representations for Widgets {
    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        _: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let form = |version: &str| {
            (
                GroupVersionResource::new(&resource.group, version, &resource.resource),
                GroupVersionKind::new(&resource.group, version, "Widget"),
            )
        };
        vec![form("v1"), form("v1beta1")]
    }

    fn convert<'a>(&'a self, mut object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value>> {
        let (from, into) = if to.version == "v1" { ("replicas", "size") } else { ("size", "replicas") };
        object["apiVersion"] = to.api_version().into();
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(into.into(), value);
        }
        Box::pin(std::future::ready(Ok(object)))
    }

    fn normalise(&self, mut object: Value, _: &GroupVersionKind) -> Result<Value> {
        if object["spec"].is_string() {
            return Err(Status::bad_request("spec must be an object"));
        }
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("unknown");
            spec.entry("defaulted").or_insert(true.into());
        }
        Ok(object)
    }
}

fn create(object: Value) -> AdmissionAttributes {
    AdmissionAttributes {
        operation: Operation::Create,
        kind: GroupVersionKind::of(&object),
        resource: GroupVersionResource::new("example.org", "v1", "widgets"),
        subresource: String::new(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().into(),
        namespace: "ns".into(),
        object: Some(object),
        old_object: None,
        options: Some(json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"})),
        dry_run: false,
        user: User::new("ada", ["devs"]).into(),
        warnings: Warnings::default(),
        annotations: Default::default(),
        reinvocations: Default::default(),
    }
}

fn widget() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "ns", "labels": {"color": "red"}},
        "spec": {"size": 1},
    })
}

/// A rule for everything about widgets of one version.
fn rule(version: &str) -> Value {
    json!({
        "operations": ["*"], "apiGroups": ["example.org"], "apiVersions": [version],
        "resources": ["widgets", "widgets/status"],
    })
}

fn hook(server: &Server, name: &str, changes: Value) -> Value {
    let mut hook = json!({
        "name": name, "clientConfig": server.client_config(&format!("/{name}")),
        "rules": [rule("v1")], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10, "failurePolicy": "Fail", "matchPolicy": "Equivalent",
        "namespaceSelector": {}, "objectSelector": {},
    });
    for (field, value) in changes.as_object().unwrap() {
        hook[field] = value.clone();
    }
    hook
}

struct Plane {
    objects: Arc<Objects>,
    webhooks: Webhooks,
}

fn plane(mutating: &[Value], validating: &[Value]) -> Plane {
    let objects = Arc::new(Objects::default());
    let configuration = |hooks: &[Value]| json!({"metadata": {"name": "c"}, "webhooks": hooks});
    objects.put(bucket::MUTATING_WEBHOOKS, configuration(mutating));
    objects.put(bucket::VALIDATING_WEBHOOKS, configuration(validating));
    objects.put(bucket::NAMESPACES, json!({"metadata": {"name": "ns", "labels": {"team": "a"}}}));
    let env = Env::system();
    let client = Arc::new(WebhookClient::new(objects.clone(), env.clone()));
    Plane { webhooks: Webhooks::new(client, objects.clone(), Arc::new(AlwaysAllow), env), objects }
}

/// A response to a review.
fn respond(review: &Value, response: Value) -> Option<(u16, String)> {
    let mut response = response;
    response["uid"] = review["request"]["uid"].clone();
    let answer = json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response});
    Some((200, answer.to_string()))
}

fn patched(review: &Value, patch: Value) -> Option<(u16, String)> {
    let patch = STANDARD.encode(patch.to_string());
    respond(review, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

async fn allowing() -> Server {
    Server::start(&["127.0.0.1"], |_, review| respond(&review, json!({"allowed": true}))).await
}

fn called(server: &Server) -> Vec<String> {
    let calls = server.calls.lock();
    calls.iter().map(|(path, _)| path.trim_start_matches('/').split('?').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_review_has_all_attributes_of_the_request() {
    let server = allowing().await;
    let plane = plane(&[], &[hook(&server, "v", json!({}))]);
    let mut request = create(widget());
    request.operation = Operation::Update;
    request.old_object = Some(Arc::new(widget()));
    request.subresource = "status".into();
    plane.webhooks.validate(&request, &Widgets).await.unwrap();
    let mut sent = server.calls.lock()[0].1.clone();
    assert!(sent["request"]["uid"].take().as_str().is_some_and(|uid| uid.len() == 36));
    assert_eq!(
        sent,
        json!({
            "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": null,
                "kind": {"group": "example.org", "version": "v1", "kind": "Widget"},
                "resource": {"group": "example.org", "version": "v1", "resource": "widgets"},
                "subResource": "status",
                "requestKind": {"group": "example.org", "version": "v1", "kind": "Widget"},
                "requestResource": {"group": "example.org", "version": "v1", "resource": "widgets"},
                "requestSubResource": "status",
                "name": "w", "namespace": "ns", "operation": "UPDATE",
                "userInfo": {"username": "ada", "groups": ["devs"]},
                "object": widget(), "oldObject": widget(), "dryRun": false,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        })
    );
}

#[tokio::test]
async fn only_webhooks_that_match_are_asked() {
    let server = allowing().await;
    let one = |changes: Value| json!([merged(rule("v1"), changes)]);
    let expectations = [
        ("plain", json!({}), true),
        ("other-version-exact", json!({"rules": [rule("v1beta1")], "matchPolicy": "Exact"}), false),
        ("other-version", json!({"rules": [rule("v1beta1")]}), true),
        ("no-such-version", json!({"rules": [rule("v2")]}), false),
        ("delete-only", json!({"rules": one(json!({"operations": ["DELETE"]}))}), false),
        ("all-resources", json!({"rules": one(json!({"resources": ["*"]}))}), true),
        ("all-subresources", json!({"rules": one(json!({"resources": ["*/*"]}))}), true),
        ("one-subresource", json!({"rules": one(json!({"resources": ["widgets/status"]}))}), false),
        ("other-group", json!({"rules": one(json!({"apiGroups": ["apps"]}))}), false),
        ("cluster-scope", json!({"rules": one(json!({"scope": "Cluster"}))}), false),
        ("namespaced-scope", json!({"rules": one(json!({"scope": "Namespaced"}))}), true),
        ("namespace-label", json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), true),
        ("other-namespace-label", json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), false),
        ("object-label", json!({"objectSelector": {"matchLabels": {"color": "red"}}}), true),
        ("other-object-label", json!({"objectSelector": {"matchLabels": {"color": "blue"}}}), false),
        (
            "condition",
            json!({"matchConditions": [{"name": "a", "expression": "object.spec.size == 1 && request.userInfo.username == 'ada' && oldObject == null"}]}),
            true,
        ),
        (
            "other-condition",
            json!({"matchConditions": [{"name": "a", "expression": "object.spec.size > 1"}]}),
            false,
        ),
        (
            "converted-condition",
            json!({"rules": [rule("v1beta1")], "matchConditions": [{"name": "a", "expression": "object.spec.replicas == 1"}]}),
            true,
        ),
    ];
    let hooks: Vec<Value> =
        expectations.iter().map(|(name, changes, _)| hook(&server, name, changes.clone())).collect();
    let plane = plane(&[], &hooks);
    plane.webhooks.validate(&create(widget()), &Widgets).await.unwrap();
    let mut asked = called(&server);
    asked.sort();
    let mut wanted: Vec<&str> = expectations.iter().filter(|e| e.2).map(|e| e.0).collect();
    wanted.sort_unstable();
    assert_eq!(asked, wanted);
}

fn merged(mut rule: Value, changes: Value) -> Value {
    for (field, value) in changes.as_object().unwrap() {
        rule[field] = value.clone();
    }
    rule
}

#[tokio::test]
async fn webhooks_see_and_change_the_object_in_the_version_they_asked_for() {
    let server = Server::start(&["127.0.0.1"], |path, review| match path {
        "/old?timeout=10s" => {
            assert_eq!(review["request"]["object"]["apiVersion"], "example.org/v1beta1");
            assert_eq!(review["request"]["kind"]["version"], "v1beta1");
            assert_eq!(review["request"]["requestKind"]["version"], "v1");
            patched(
                &review,
                json!([
                    {"op": "replace", "path": "/spec/replicas", "value": 3},
                    {"op": "add", "path": "/spec/unknown", "value": 1},
                ]),
            )
        }
        _ => {
            assert_eq!(review["request"]["object"]["spec"], json!({"size": 3, "defaulted": true}));
            respond(&review, json!({"allowed": true, "warnings": ["mind the gap"]}))
        }
    })
    .await;
    let hooks = [hook(&server, "old", json!({"rules": [rule("v1beta1")]})), hook(&server, "new", json!({}))];
    let plane = plane(&hooks, &[]);
    let mut request = create(widget());
    plane.webhooks.mutate(&mut request, &Widgets).await.unwrap();
    assert_eq!(called(&server), ["old", "new"]);
    let object = request.object.unwrap();
    assert_eq!(object["apiVersion"], "example.org/v1");
    assert_eq!(object["spec"], json!({"size": 3, "defaulted": true}));
    assert_eq!(request.warnings.texts(), ["mind the gap"]);
}

#[tokio::test]
async fn a_webhook_is_asked_again_if_a_later_one_changed_the_object() {
    let server = Server::start(&["127.0.0.1"], |path, review| match path {
        "/grow?timeout=10s" => {
            let size = review["request"]["object"]["spec"]["size"].as_i64().unwrap();
            patched(&review, json!([{"op": "replace", "path": "/spec/size", "value": size + 1}]))
        }
        _ => respond(&review, json!({"allowed": true})),
    })
    .await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = [
        hook(&server, "first", again.clone()),
        hook(&server, "once", json!({})),
        hook(&server, "grow", again.clone()),
        hook(&server, "last", again),
    ];
    let plane = plane(&hooks, &[]);
    let mut request = create(widget());
    let webhooks: Arc<dyn Admission> = Arc::new(plane.webhooks);
    crate::admission::mutate(&[webhooks], &mut request, &Widgets).await.unwrap();
    // The change is the third's own, so it and those after it have seen it.
    assert_eq!(called(&server), ["first", "once", "grow", "last", "first"]);
    assert_eq!(request.object.unwrap()["spec"]["size"], 2);
}

#[tokio::test]
async fn refusals_and_broken_answers_read_as_upstream() {
    let server = Server::start(&["127.0.0.1"], |path, review| {
        let denied = |status: Value| respond(&review, json!({"allowed": false, "status": status}));
        match path.split('?').next().unwrap() {
            "/bare" => denied(Value::Null),
            "/reason" => denied(json!({"reason": "TooUgly"})),
            "/message" => denied(json!({"message": "no", "code": 418, "reason": "Teapot"})),
            "/details" => denied(json!({
                "message": "no", "code": 422, "reason": "Invalid",
                "details": {"kind": "Widget", "causes": [{"reason": "r", "message": "m", "field": "f"}]},
            })),
            "/ok-code" => denied(json!({"message": "no", "code": 200})),
            "/absent" => Some((200, json!({"kind": "AdmissionReview"}).to_string())),
            "/uid" => {
                let answer = json!({
                    "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "response": {"uid": "x", "allowed": true},
                });
                Some((200, answer.to_string()))
            }
            "/kind" => {
                let uid = &review["request"]["uid"];
                let answer = json!({"kind": "Other", "apiVersion": "v1", "response": {"uid": uid}});
                Some((200, answer.to_string()))
            }
            "/patch" => patched(&review, json!([])),
            "/patch-type" => respond(&review, json!({"allowed": true, "patchType": "JSONPatch"})),
            "/500" => Some((500, "boom".into())),
            "/beta" => {
                let mut review = review.clone();
                review["apiVersion"] = "admission.k8s.io/v1beta1".into();
                respond(&review, json!({"allowed": true}))
            }
            "/text" => respond(&review, json!({"allowed": "yes"})),
            other => panic!("{other}"),
        }
    })
    .await;
    let invalid = |name: &str, why: &str| {
        format!(
            "Internal error occurred: failed calling webhook \"{name}\": received invalid webhook response: {why}"
        )
    };
    let table = [
        ("bare", 400, "", "admission webhook \"bare\" denied the request without explanation".to_owned()),
        ("reason", 400, "TooUgly", "admission webhook \"reason\" denied the request: TooUgly".into()),
        ("message", 418, "Teapot", "admission webhook \"message\" denied the request: no".into()),
        ("details", 422, "Invalid", "admission webhook \"details\" denied the request: no".into()),
        ("ok-code", 400, "", "admission webhook \"ok-code\" denied the request: no".into()),
        ("absent", 500, "InternalError", invalid("absent", "webhook response was absent")),
        (
            "kind",
            500,
            "InternalError",
            invalid("kind", "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /v1, Kind=Other"),
        ),
        ("patch", 500, "InternalError", invalid("patch", "validating webhook may not return response.patch")),
        (
            "patch-type",
            500,
            "InternalError",
            invalid("patch-type", "validating webhook may not return response.patchType"),
        ),
        (
            "beta",
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"beta\": failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion".into(),
        ),
        (
            "text",
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"text\": failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool".into(),
        ),
        (
            "500",
            500,
            "InternalError",
            "Internal error occurred: failed calling webhook \"500\": failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding".into(),
        ),
    ];
    for (name, code, reason, message) in table {
        let plane = plane(&[], &[hook(&server, name, json!({}))]);
        let refusal = plane.webhooks.validate(&create(widget()), &Widgets).await.unwrap_err();
        assert_eq!(
            (refusal.code, &*refusal.reason, refusal.message.as_str()),
            (code, reason, &*message),
            "{name}"
        );
        if name == "details" {
            let details = refusal.details.unwrap();
            assert_eq!((details.kind.as_str(), details.causes[0].field.as_str()), ("Widget", "f"));
        }
    }
    let plane = plane(&[], &[hook(&server, "uid", json!({}))]);
    let refusal = plane.webhooks.validate(&create(widget()), &Widgets).await.unwrap_err();
    assert!(refusal.message.contains("received invalid webhook response: expected response.uid=\""));
}

#[tokio::test]
async fn a_policy_to_ignore_lets_failures_pass_but_not_refusals() {
    let server = Server::start(&["127.0.0.1"], |path, review| match path {
        "/broken?timeout=10s" => Some((500, "boom".into())),
        _ => respond(&review, json!({"allowed": false})),
    })
    .await;
    let ignore = json!({"failurePolicy": "Ignore"});
    let broken = hook(&server, "broken", ignore.clone());
    let denying = hook(&server, "denying", ignore);
    let lenient = plane(std::slice::from_ref(&broken), std::slice::from_ref(&broken));
    let mut request = create(widget());
    lenient.webhooks.mutate(&mut request, &Widgets).await.unwrap();
    assert_eq!(request.object, Some(widget()));
    lenient.webhooks.validate(&request, &Widgets).await.unwrap();
    let strict = plane(&[], &[broken, denying]);
    assert_eq!(strict.webhooks.validate(&request, &Widgets).await.unwrap_err().code, 400);
}

#[tokio::test]
async fn patches_that_cannot_be_used_fail_the_request() {
    let server = Server::start(&["127.0.0.1"], |path, review| {
        let raw = |patch: &str| {
            let patch = STANDARD.encode(patch);
            respond(&review, json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
        };
        match path.split('?').next().unwrap() {
            "/unreadable" => raw("{"),
            "/empty" => raw("[]"),
            "/missing" => patched(&review, json!([{"op": "remove", "path": "/spec/nothing"}])),
            "/unsettled" => patched(&review, json!([{"op": "replace", "path": "/spec", "value": "x"}])),
            "/merge" => {
                let patch = STANDARD.encode("[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]");
                respond(&review, json!({"allowed": true, "patchType": "Merge", "patch": patch}))
            }
            "/no-type" => respond(&review, json!({"allowed": true, "patch": STANDARD.encode("[]")})),
            _ => patched(&review, json!([{"op": "add", "path": "/x", "value": 1}])),
        }
    })
    .await;
    let failing =
        |name: &str, why: &str| format!("Internal error occurred: failed calling webhook \"{name}\": {why}");
    let table = [
        ("unreadable", Some("received undecodable patch in webhook response: unexpected end of JSON input")),
        ("empty", None),
        (
            "missing",
            Some(
                "Internal error occurred: error in remove for path: '/spec/nothing': Unable to remove nonexistent key: nothing: missing value",
            ),
        ),
        ("unsettled", Some("Internal error occurred: spec must be an object")),
        ("merge", Some("unsupported patch type \"Merge\"")),
        (
            "no-type",
            Some(
                "received invalid webhook response: webhook returned response.patch but not response.patchType",
            ),
        ),
    ];
    for (name, why) in table {
        let plane = plane(&[hook(&server, name, json!({}))], &[]);
        let outcome = plane.webhooks.mutate(&mut create(widget()), &Widgets).await;
        match why {
            None => outcome.unwrap(),
            Some(why) => {
                let message = outcome.unwrap_err().message;
                assert!(message.starts_with(&failing(name, why)) || message.starts_with(why), "{message}");
            }
        }
    }
    let plane = plane(&[hook(&server, "m", json!({}))], &[]);
    let mut delete = create(widget());
    delete.operation = Operation::Delete;
    delete.old_object = delete.object.take().map(Arc::new);
    assert_eq!(
        plane.webhooks.mutate(&mut delete, &Widgets).await.unwrap_err().message,
        "Internal error occurred: admission webhook \"m\" attempted to modify the object, which is not supported for this operation"
    );
}

#[tokio::test]
async fn dry_runs_need_webhooks_without_side_effects() {
    let server = allowing().await;
    for (side_effects, expected) in [
        (json!("None"), Ok(())),
        (json!("NoneOnDryRun"), Ok(())),
        (json!("Some"), Err((400, "admission webhook \"h\" does not support dry run"))),
        (
            Value::Null,
            Err((500, "Internal error occurred: failed calling webhook \"h\": Webhook SideEffects is nil")),
        ),
    ] {
        let plane = plane(&[], &[hook(&server, "h", json!({"sideEffects": side_effects}))]);
        let mut request = create(widget());
        request.dry_run = true;
        let outcome = plane.webhooks.validate(&request, &Widgets).await;
        let outcome = outcome.as_ref().map(|&()| ()).map_err(|s| (s.code, s.message.as_str()));
        assert_eq!(outcome, expected);
    }
}

#[tokio::test]
async fn conditions_that_fail_stop_the_request_unless_failures_are_ignored() {
    let server = allowing().await;
    let failing = json!([{"name": "a", "expression": "object.spec.missing == 1"}]);
    let strict = plane(&[], &[hook(&server, "h", json!({"matchConditions": failing}))]);
    let refusal = strict.webhooks.validate(&create(widget()), &Widgets).await.unwrap_err();
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (
            403,
            "widgets.example.org \"w\" is forbidden: expression 'object.spec.missing == 1' resulted in error: no such key: missing"
        )
    );
    // A false one decides, whatever fails.
    let mixed = json!([failing[0], {"name": "b", "expression": "false"}]);
    for changes in
        [json!({"matchConditions": mixed}), json!({"matchConditions": failing, "failurePolicy": "Ignore"})]
    {
        let plane = plane(&[], &[hook(&server, "h", changes)]);
        plane.webhooks.validate(&create(widget()), &Widgets).await.unwrap();
    }
    let unknown = json!([{"name": "a", "expression": "params.x"}]);
    let refused = plane(&[], &[hook(&server, "h", json!({"matchConditions": unknown}))]);
    let refusal = refused.webhooks.validate(&create(widget()), &Widgets).await.unwrap_err();
    assert!(refusal.message.contains("undeclared reference to 'params'"), "{}", refusal.message);
    let asks = json!([{"name": "a", "expression": "!authorizer.path('/').check('get').allowed()"}]);
    let plane = plane(&[], &[hook(&server, "h", json!({"matchConditions": asks}))]);
    plane.webhooks.validate(&create(widget()), &Widgets).await.unwrap();
    assert!(called(&server).is_empty());
}

#[tokio::test]
async fn webhook_configurations_are_never_sent_to_webhooks() {
    let server = allowing().await;
    let all = json!({
        "rules": [{
            "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
        }],
    });
    let plane = plane(&[hook(&server, "m", all.clone())], &[hook(&server, "v", all)]);
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
    });
    let mut request = create(object);
    plane.webhooks.mutate(&mut request, &Widgets).await.unwrap();
    plane.webhooks.validate(&request, &Widgets).await.unwrap();
    assert!(called(&server).is_empty());
    let mut ordinary = create(widget());
    plane.webhooks.mutate(&mut ordinary, &Widgets).await.unwrap();
    assert_eq!(called(&server), ["m"]);
}

#[tokio::test]
async fn namespaces_are_selected_by_their_own_labels_and_missing_ones_are_not_found() {
    let server = allowing().await;
    let changes = json!({
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}],
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    });
    let plane = plane(&[], &[hook(&server, "h", changes)]);
    let mut request = create(json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": {"team": "a"}},
    }));
    request.resource = GroupVersionResource::new("", "v1", "namespaces");
    request.namespace = "new".into();
    plane.webhooks.validate(&request, &Widgets).await.unwrap();
    assert_eq!(called(&server).len(), 1);
    request.object.as_mut().unwrap()["metadata"]["labels"] = json!({});
    plane.webhooks.validate(&request, &Widgets).await.unwrap();
    assert_eq!(called(&server).len(), 1);

    let mut stray = create(widget());
    stray.namespace = "gone".into();
    let refusal = plane.webhooks.validate(&stray, &Widgets).await.unwrap_err();
    assert_eq!((refusal.code, refusal.message.as_str()), (404, "namespaces \"gone\" not found"));
    plane.objects.put(bucket::VALIDATING_WEBHOOKS, json!({"metadata": {"name": "c"}, "webhooks": []}));
    plane.webhooks.validate(&stray, &Widgets).await.unwrap();
}
